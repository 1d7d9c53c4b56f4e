"""Ready-made settings for a kind of network: `--profile lan`, one TOML file each."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from overlay.errors import ConfigError
from overlay.toml_source import Source, read_toml

PACKAGE = Path(__file__).resolve().parent


def profile_folder(package: Path = PACKAGE) -> Path:
    """Where the profiles are: inside of an installed package, or beside it in a clone."""
    for folder in (package / "_configs", package.parent / "configs"):
        if folder.is_dir():
            return folder
    raise ConfigError(f"no profiles in {package / '_configs'}: install zmq-overlay again")


def profile_names() -> list[str]:
    """The profiles that this installation brings."""
    return sorted(path.stem for path in profile_folder().glob("*.toml"))


def load_profile(name: str) -> Source:
    """Read a profile; sections of protocols that a node does not run are no error in it."""
    names = profile_names()
    if name not in names:  # so that a name never reaches outside of the folder
        close = get_close_matches(name[:60], names, n=1)
        hint = f"did you mean {close[0]}?" if close else f"use one of {', '.join(names)}"
        raise ConfigError(f"profile {name[:60]!a}: no such profile: {hint}")
    source = read_toml(profile_folder() / f"{name}.toml")
    return replace(source, skips_unknown_sections=True)
