"""What a membership benchmark needs to know of those who compete: how they start, what they tell.

Each peer is a process. It tells its events on stdout, a JSON object in a line, with the machine's
monotonic clock: first that it is ready, then who came into its view and who is out of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

import msgspec

READY, JOINED, GONE = "ready", "member-joined", ("member-failed", "member-left")


class Told(msgspec.Struct, frozen=True):
    """One line of a peer; without an event it says that the peer is ready."""

    monotonic: float  # s
    event: str = READY
    member: str = ""


class Command(NamedTuple):
    """How one process is started."""

    words: Sequence[str]
    environment: Mapping[str, str] | None = None  # None: as this process has it


class Contender(ABC):
    """Somebody whose peers know each other, and can be killed."""

    name: ClassVar[str]
    patience: ClassVar[float] = 60.0  # s until something that must happen counts as never
    _told = msgspec.json.Decoder(Told)

    @abstractmethod
    def missing(self) -> str:
        """How to get it; nothing when it is there."""

    @abstractmethod
    def commands(self, folder: Path, names: Sequence[str], seeds: int) -> dict[str, Command]:
        """How to start a peer of each name; the first `seeds` of them are known to all."""

    def told(self, line: bytes, now: float) -> Told | None:
        """What a line of stdout says; None when it is about something else."""
        return self._told.decode(line)
