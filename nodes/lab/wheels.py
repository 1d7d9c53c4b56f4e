"""One wheel of this program, and for each kind of host a wheelhouse with all that it needs.

    ~/.cache/zmq-overlay/wheels/own/CONTENT/  the wheel, by the content of the sources
                                needs/KEY/    what it needs, for one Python and platform
                                houses/KEY/   both together; also the environment's name on hosts

Each is made once: a second `up` finds it, and changed code asks no index for others' wheels.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nodes.lab.installed_wheel import pack_installed
from nodes.lab.onhost.facts import digest
from nodes.lab.operator import LabError

DISTRIBUTION = "zmq-overlay"
ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("overlay", "protocols", "nodes", "configs", "pyproject.toml", "README.md", "LICENSE")
OLDEST_GLIBC = 17  # manylinux2014; wheels for older ones are not made any more
PIP_SECONDS = 900


class Target(msgspec.Struct, frozen=True):
    """The kind of Python that a host has, as far as wheels differ by it."""

    version: str  # "3.11"
    implementation: str  # "cp"
    platforms: tuple[str, ...]  # tags, the best first; empty: this machine's own

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Target:
        """From what the host told of itself."""
        version = ".".join(facts["python"].split(".")[:2])
        implementation = {"cpython": "cp", "pypy": "pp"}.get(facts["implementation"], "py")
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        same = facts["platform"] == sysconfig.get_platform() and version == here
        if same and implementation == "cp" and sys.implementation.name == "cpython":
            return cls(version, implementation, ())
        return cls(version, implementation, tuple(_platforms(facts["platform"], facts["libc"])))


class House(msgspec.Struct, frozen=True):
    """A folder of wheels, ready to be copied."""

    key: str
    folder: Path
    wheels: dict[str, str]  # file name: SHA-256


def own_wheel(cache: Path) -> Path:
    """The wheel of this program, as it is now."""
    if not (ROOT / "pyproject.toml").exists():
        return _once(cache / "own" / _installed_version(), pack_installed)
    content = _content(ROOT / part for part in SOURCES)

    def build(folder: Path) -> None:
        _pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))

    return _once(cache / "own" / content, build)


def _once(place: Path, make: Callable[[Path], None]) -> Path:
    """The wheel in that folder, made there if it is not."""
    if not place.is_dir():
        _whole(place, make)
    return next(place.glob("*.whl"))


def wheelhouse(cache: Path, wheel: Path, target: Target, requirement: str) -> House:
    """All wheels for hosts of that kind, asked of pip only if they are not here."""
    needs = _needs(cache, wheel, target, requirement)
    place = cache / "houses" / _key(wheel.parent.name, needs.name)

    def gather(folder: Path) -> None:
        for path in (wheel, *needs.glob("*.whl")):
            os.link(path, folder / path.name)

    if not place.is_dir():
        _whole(place, gather)
    wheels = {path.name: digest(path) for path in sorted(place.glob("*.whl"))}
    return House(place.name, place, wheels)


def _needs(cache: Path, wheel: Path, target: Target, requirement: str) -> Path:
    """The folder of all wheels but our own, and of pip, which hosts may lack."""
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(metadata).decode().splitlines()
    told = [line for line in lines if line.startswith(("Requires-Dist:", "Requires-Python:"))]
    place = cache / "needs" / _key(*told, *msgspec.structs.astuple(target), requirement)

    def download(folder: Path) -> None:
        words = ["download", "--dest", str(folder), "--only-binary=:all:"]
        if target.platforms:
            words += ["--python-version", target.version]
            words += ["--implementation", target.implementation]
            words += [word for tag in target.platforms for word in ("--platform", tag)]
        own = f"{wheel}{requirement.removeprefix(DISTRIBUTION)}"  # with its extras
        _pip(*words, own, "pip")
        (folder / wheel.name).unlink(missing_ok=True)  # pip copies what it is given

    if not place.is_dir():
        _whole(place, download)
    return place


def _key(*told: object) -> str:
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:16]


def forget(cache: Path) -> None:
    """Remove all, so that the newest versions are asked for again."""
    shutil.rmtree(cache, ignore_errors=True)


def _whole(place: Path, make: Callable[[Path], None]) -> None:
    """Make a folder that is there only when it is complete, whoever else makes it too."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".") as temporary:
        folder = Path(temporary, "made")
        folder.mkdir()
        make(folder)
        try:
            folder.rename(place)
        except OSError:
            if not place.is_dir():  # else another process was quicker
                raise


def _content(paths: Iterable[Path]) -> str:
    """A digest of all files below, by name and content."""
    total = hashlib.sha256()
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                total.update(f"{file.relative_to(ROOT)}\0{digest(file)}\n".encode())
    return total.hexdigest()[:16]


def _installed_version() -> str:
    """An installed program does not change: its version and when it was installed tell it."""
    found = importlib.metadata.distribution(DISTRIBUTION)
    record = found.read_text("RECORD") or ""
    return f"{found.version}-{hashlib.sha256(record.encode()).hexdigest()[:8]}"


def _platforms(platform: str, libc: list[str]) -> list[str]:
    """The tags that pip must be told, since it cannot look at the host."""
    system, _, machine = platform.partition("-")
    if system != "linux":
        return [platform.replace("-", "_").replace(".", "_")]
    name, _, version = libc[0], "", libc[1]
    if name != "glibc":
        return [f"musllinux_1_{minor}_{machine}" for minor in (2, 1)] + [f"linux_{machine}"]
    newest = int(version.split(".")[1]) if "." in version else OLDEST_GLIBC
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(newest, OLDEST_GLIBC - 1, -1)]
    return [*tags, f"manylinux2014_{machine}", f"linux_{machine}"]


def _pip(*words: str) -> None:
    told = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    try:
        done = subprocess.run(
            [*told, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PIP_SECONDS,
            env={**os.environ, "PIP_NO_COLOR": "1"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LabError(f"pip {words[0]} took over {PIP_SECONDS} s: is the network slow?") from None
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "ERROR" in line] or [
            line for line in done.stderr.splitlines() if line.strip()
        ]
        if "No module named pip" in done.stderr:
            raise LabError(f"no pip here: run `{sys.executable} -m ensurepip`")
        said = errors[-1].removeprefix("ERROR: ") if errors else f"exit code {done.returncode}"
        raise LabError(f"no wheels: pip {words[0]}: {said[:300]}: is the package index reachable?")
