"""Key files: modes, no accidental replacement, and whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from overlay.errors import SecurityError
from overlay.security.files import (
    MAX_FILE,
    make_private_folder,
    read_private,
    read_public,
    write_private,
    write_public,
)


@pytest.fixture
def open_umask() -> object:
    """Modes must be right whatever the user's umask allows."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_modes(tmp_path: Path, open_umask: object) -> None:
    folder = tmp_path / "deep" / "keys" / "ada"
    make_private_folder(folder)
    write_private(folder / "secret", b"s")
    write_public(folder / "public", b"p")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}
    assert modes == {"ada": 0o700, "secret": 0o600, "public": 0o644}
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


def test_an_open_folder_is_tightened_but_not_the_one_above(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "ada").mkdir(mode=0o777)
    make_private_folder(tmp_path / "ada")
    assert stat.S_IMODE((tmp_path / "ada").stat().st_mode) == 0o700
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_nothing_is_replaced_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "key"
    write_private(path, b"old")
    with pytest.raises(FileExistsError):
        write_private(path, b"new")
    assert path.read_bytes() == b"old"
    write_private(path, b"new", replace=True)
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["key"]


def test_a_replacement_is_private_even_if_the_old_file_was_not(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"old")
    path.chmod(0o666)
    write_private(path, b"new", replace=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(("step", "survivor"), [("os.replace", b"old"), ("os.fsync", b"old")])
def test_a_crash_before_the_rename_leaves_the_old_file(
    tmp_path: Path, step: str, survivor: bytes
) -> None:
    """The process dies for real, in the middle of the write."""
    path = tmp_path / "key"
    write_private(path, b"old")
    script = (
        "import os, sys; from pathlib import Path\n"
        "from overlay.security.files import write_private\n"
        f"{step} = lambda *_: os._exit(9)\n"
        "write_private(Path(sys.argv[1]), b'new', replace=True)\n"
    )
    crashed = subprocess.run([sys.executable, "-c", script, str(path)], timeout=60, check=False)
    assert crashed.returncode == 9
    assert path.read_bytes() == survivor
    for left in tmp_path.iterdir():  # what the crash left is as private as the key itself
        assert stat.S_IMODE(left.stat().st_mode) == 0o600
    write_private(path, b"new", replace=True)
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610, 0o602])
def test_a_private_file_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key"
    write_private(path, b"secret bytes")
    path.chmod(mode)
    with pytest.raises(SecurityError, match=f"mode {mode:04o}.*chmod 600") as caught:
        read_private(path)
    assert "secret bytes" not in str(caught.value)
    path.chmod(0o400)
    assert read_private(path) == b"secret bytes"


def test_a_huge_file_is_no_key_material(tmp_path: Path) -> None:
    path = tmp_path / "list"
    with path.open("wb") as file:
        file.truncate(MAX_FILE + 1)
    with pytest.raises(SecurityError, match="larger than"):
        read_public(path)
