"""What this machine keeps of a lab: its authority, whom it reached, and a lock.

$OVERLAY_HOME/labs/NAME or ~/.config/zmq-overlay/labs/NAME
    keys/         the lab's authority, and the keys of its peers
    hosts.json    hosts that have something of the lab, and their addresses
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from overlay.errors import OverlayError
from overlay.security.files import make_private_folder, write_private
from overlay.security.folders import default_keys_folder

HOSTS_FILE = "hosts.json"


class LabError(OverlayError):
    """The whole command cannot go on."""


class Reached(msgspec.Struct, frozen=True):
    """A host on which this lab left something."""

    address: str  # the one at which others of the lab reach it


class Operator:
    """The folder of one lab on the operator's machine."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = default_keys_folder().parent / "labs" / name
        self.keys = self.folder / "keys"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lab; LabError when another command does."""
        make_private_folder(self.folder)
        lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LabError(
                    f"another command works on lab {self.name!r}: wait until it is done"
                ) from None
            yield
        finally:
            os.close(lock)

    def reached(self) -> dict[str, Reached]:
        """Hosts that have something of the lab, by name."""
        path = self.folder / HOSTS_FILE
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, Reached])
        except FileNotFoundError:
            return {}
        except msgspec.DecodeError:
            return {}  # written whole or not at all: this was somebody's editor; it is learnt again

    def remember(self, reached: dict[str, Reached]) -> None:
        """Write who they are now."""
        make_private_folder(self.folder)
        write_private(self.folder / HOSTS_FILE, msgspec.json.encode(reached), replace=True)


def cache_folder() -> Path:
    """Where wheels are kept: `$XDG_CACHE_HOME` or `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "zmq-overlay" / "wheels"
