"""What protocols and drivers tell the traces: a record of some kind, at some level.

This part is pure, so that protocols may use it; `overlay.traces` writes it to disk.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol, TypeAlias

import msgspec

from overlay.ids import NodeId

Meanings: TypeAlias = dict[str, str]
"""What the columns of a kind mean, where it is more than their name says."""


class Level(IntEnum):
    """How much is recorded; each level has everything of those before it."""

    OFF = 0
    DELIVERY = 1  # what users notice: publications, deliveries, members, links, discoveries
    MESSAGES = 2  # and what travels for it: messages by type and link, hops, broadcast trees
    ALL = 3  # and every step on the way: pings, probes, requests that were handed on


LEVEL_NAMES: tuple[str, ...] = tuple(level.name.lower() for level in Level)


class Kind(msgspec.Struct, frozen=True):
    """One kind of row: from which level on it is written, and how to read it.

    `flow`: rows of this kind belong to the flow (`origin`, `stream`); sampling keeps or leaves out
    a flow as a whole, on all nodes alike, so that what was kept can be compared.
    """

    name: str
    level: Level
    meaning: str
    columns: Meanings = {}
    flow: bool = False


class Trace(msgspec.Struct, frozen=True, gc=False):
    """One row for the traces; `overlay/traces/schema.py` says what each column means.

    Empty strings and None are columns that do not apply. Times and durations are in seconds here,
    as everywhere in a protocol. `since` is an overlay time from which on the row's duration counts,
    to the moment at which it is taken; `duration` says it itself.
    """

    kind: Kind
    peer: NodeId = ""
    topic: str = ""
    origin: NodeId = ""
    stream: int | None = None
    first: int | None = None
    count: int = 1
    bytes: int | None = None
    hops: int | None = None
    duration: float | None = None
    since: float | None = None
    detail: str = ""
    key: str = ""
    message: str = ""
    value: float | None = None


def flow_number(id: bytes) -> int:
    """A number for a flow whose id is bytes: 56 of their bits."""
    return int.from_bytes(id[:7])


class TraceSink(Protocol):
    """Takes the rows of one life of a node."""

    def take(self, protocol: str, scope: str, record: Trace) -> None:
        """Keep a row, unless its level is not recorded; never waits, and never fails."""
