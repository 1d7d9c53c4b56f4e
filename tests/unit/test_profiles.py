"""The profiles that ship: readable, complete, and each value with its reason."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import pytest

from overlay.config import Settings, bounded, load_settings
from overlay.errors import ConfigError
from overlay.profiles import load_profile, profile_folder, profile_names


class Net(Settings, frozen=True, kw_only=True):
    """The part of the driver's settings that every profile sets."""

    idle_close: Annotated[float, bounded("s", 0.0, 86_400, "see overlay.net")] = 1.0
    heartbeat: Annotated[float, bounded("s", 0.0, 3600, "see overlay.net")] = 1.0


def test_the_four_networks_have_a_profile() -> None:
    assert {"lan", "wan", "local", "sim"} <= set(profile_names())


def test_a_profile_sets_values_and_later_sources_win() -> None:
    source = load_profile("wan")
    table = source.tables["net"]
    assert isinstance(table, dict)
    known = {key: value for key, value in table.items() if key in ("idle_close", "heartbeat")}
    assert len(known) == 2
    assert Net(**known) != Net()


def test_sections_of_protocols_that_do_not_run_here_are_skipped() -> None:
    assert load_settings({}, load_profile("lan")) == {}


def test_an_installed_package_brings_its_profiles_and_a_clone_has_them_beside(
    tmp_path: Path,
) -> None:
    package = tmp_path / "overlay"
    with pytest.raises(ConfigError, match="install zmq-overlay again"):
        profile_folder(package)
    (tmp_path / "configs").mkdir()
    assert profile_folder(package) == tmp_path / "configs"
    (package / "_configs").mkdir(parents=True)
    assert profile_folder(package) == package / "_configs"


@pytest.mark.parametrize("name", profile_names())
def test_every_value_of_a_profile_has_its_reason_on_its_line(name: str) -> None:
    text = (profile_folder() / f"{name}.toml").read_text()
    values = [line for line in text.splitlines() if re.match(r"\s*[\w-]+\s*=", line)]
    assert values
    for line in values:
        assert re.search(r"#\s*\S+.*\s\S", line), f"{name}.toml: {line}"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("lann", "did you mean lan?"),
        ("zzzz", "use one of"),
        ("../configs/lan", "no such profile"),
        ("a\nb", r"profile 'a\nb': no such profile"),
        ("", "no such profile"),
    ],
)
def test_an_unknown_profile_suggests_a_known_one(name: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_profile(name)
    assert hint in str(caught.value)
    assert str(caught.value).isprintable()
