"""Files that hold keys: written whole or not at all, private ones readable by their owner only."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from overlay.errors import SecurityError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_FILE = 4 * 1024 * 1024  # a revocation list of some 100,000 entries; all else is far smaller
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private_folder(folder: Path) -> None:
    """Make the folder with mode 0700, and tighten it if it was there.

    The one above it is private too if it is made here, but left as it is if it was there.
    """
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)  # the umask and an older folder may say otherwise


def write_private(path: Path, data: bytes, *, replace: bool = False) -> None:
    """Write a file of mode 0600 atomically; FileExistsError if it is there and not `replace`."""
    _write(path, data, 0o600, replace=replace)


def write_public(path: Path, data: bytes, *, replace: bool = False) -> None:
    """Write a file of mode 0644 atomically; FileExistsError if it is there and not `replace`."""
    _write(path, data, 0o644, replace=replace)


def read_private(path: Path) -> bytes:
    """Read a private file; SecurityError if its group or others could read or write it too."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC), "rb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)  # of what was opened, not of the path
        if mode & _OTHERS:
            raise SecurityError(
                f"{path} is a private key that others can reach (mode {mode:04o}): "
                f"run `chmod 600 {path}`, and issue a new one if others may have read it"
            )
        return file.read(MAX_FILE)


def read_public(path: Path) -> bytes:
    """Read a certificate or a list; SecurityError if it is far too large to be one."""
    with path.open("rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise SecurityError(f"{path} is larger than {MAX_FILE} bytes: it is no key material")
    return data


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for one process at a time, so that no update of another is lost."""
    lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _write(path: Path, data: bytes, mode: int, *, replace: bool) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(data)
            out.flush()
            os.fchmod(out.fileno(), mode)
            os.fsync(out.fileno())
        if replace:
            os.replace(temporary, path)
        else:
            os.link(temporary, path)  # unlike a rename, it fails if the file is there
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
