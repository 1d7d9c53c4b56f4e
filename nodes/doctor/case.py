"""What is examined: this host, as a peer with these settings would meet it, and peers that run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from nodes.control import ControlError, ask
from nodes.doctor.hearing import Heard, listen
from nodes.peer_options import PeerOptions, parse, path_or_none
from nodes.settings import NodeConfig
from overlay.security.folders import default_keys_folder

PEER = "peer"
COMMANDS = ("overlay", "nodes.cli")


@dataclass(frozen=True)
class Running:
    """A node of this machine: what it tells, and how it was started as far as that can be read."""

    status: dict[str, Any]
    time: dict[str, Any] | None = None
    zone: dict[str, Any] | None = None  # its members; None for who is a member of no zone
    options: PeerOptions | None = None
    folder: Path = field(default_factory=Path)  # that its relative paths start from

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.status["name"])

    @property
    def pid(self) -> int:
        """Its process."""
        return int(self.status["pid"])

    def path(self, told: str) -> Path | None:
        """A path of its options; None when it was not given."""
        path = path_or_none(told)
        return None if path is None else self.folder / path


@dataclass(frozen=True)
class Case:
    """Everything that checks may look at."""

    config: NodeConfig
    nodes: tuple[Running, ...] = ()
    name: str = ""  # the node that was asked about; empty: the host and all on it
    listen: float = 3.0  # s for beacons and mDNS

    @cached_property
    def heard(self) -> tuple[Heard, ...]:
        """Who said something on the network in that time; several checks look at it."""
        return listen(self.config, self.listen)

    @property
    def keys(self) -> Path:
        """Where keys lie."""
        return (self.config.keys or default_keys_folder()).expanduser()


def running(path: Path) -> Running:
    """Ask the node behind a control socket; ControlError when it does not answer."""
    status = ask(path, "status")
    options, folder = _started_with(status["pid"])
    return Running(status, _told(path, "time"), _told(path, "members"), options, folder)


def _told(path: Path, do: str) -> dict[str, Any] | None:
    try:
        told: dict[str, Any] = ask(path, do)
    except ControlError:  # a supervisor has no members, for one
        return None
    return told


def _started_with(pid: int) -> tuple[PeerOptions | None, Path]:
    try:
        process = psutil.Process(pid)
        return options_in(process.cmdline()), Path(process.cwd())
    except (psutil.Error, OSError):
        return None, Path()


def options_in(words: Sequence[str]) -> PeerOptions | None:
    """The options in a command line of `overlay peer`; None when it is another command's."""
    for at, (before, word) in enumerate(pairwise(words)):
        if word == PEER and before.rpartition("/")[2] in COMMANDS:
            return parse(words[at + 2 :])
    return None
