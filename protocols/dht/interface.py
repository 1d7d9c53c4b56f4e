"""What applications and siblings may ask of the table, and the answers."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeAlias

from overlay.ids import NodeId
from overlay.protocol import Scope

DHT = "dht"
"""The role of a member that keeps keys."""

READ, WRITE = "read", "write"

May: TypeAlias = Callable[[NodeId, str], bool]
"""Whether a node's certificate allows it to READ or to WRITE; true where none was seen."""


class Kind(IntEnum):
    """What an operation does. §2.3 names what each answers."""

    GET = 0  # value, or None
    CONTAINS = 1  # applied: whether it exists
    PUT = 2  # applied: true
    PUT_AND_RETRIEVE = 3  # value: the one before, or None
    PUT_IF_ABSENT = 4  # applied: whether it was absent
    REPLACE = 5  # value: the one before; only if it existed
    REPLACE_VALUE = 6  # applied: whether the value was `expected`
    REMOVE = 7  # applied: whether it existed
    REMOVE_VALUE = 8  # applied: whether the value was `expected`


READS = (Kind.GET, Kind.CONTAINS)


class Operation(NamedTuple):
    """One thing to do with one key; values are bytes, whatever an application packs in them."""

    kind: Kind
    key: bytes
    value: bytes = b""
    expected: bytes = b""
    ttl: float = 0.0  # s until the value expires; 0: never
    stale_ok: bool = False  # GET and CONTAINS: any replica's word will do


class Status(IntEnum):
    """How an operation ended."""

    DONE = 0  # it took effect, or its condition did not hold (`applied` is false)
    REFUSED = 1  # nothing was done; `reason` says why
    UNKNOWN = 2  # it may have taken effect, or still may: nobody can tell


class Outcome(NamedTuple):
    """The one answer to an operation."""

    status: Status
    applied: bool = False
    value: bytes | None = None
    reason: str = ""


Answer: TypeAlias = Callable[[Outcome], None]
"""Called exactly once for each operation, never before `submit` returns; it must not raise."""

Hear: TypeAlias = Callable[[bytes | None], None]
"""Called with each value that a watcher learns of; None: the key has none."""


class Whereabouts(NamedTuple):
    """Where a key lives, as this node knows."""

    shard: int
    zone: Scope  # the one that the UTR names; empty: not known yet
    leader: NodeId | None  # None: not known here (yet)
    members: tuple[NodeId, ...] = ()
    version: int = 0


class HashTable(Protocol):
    """Commands of an application; each takes `now`, and is called through `Host.call`."""

    def submit(self, operation: Operation, answer: Answer, now: float) -> None:
        """Begin an operation. LocalProtocolError at once for what is wrong with it itself: a key
        or value past its limit, no right to read or write, too many open operations."""

    def watch(self, key: bytes, hear: Hear, now: float) -> int:
        """Tell the key's value now and whenever another one is committed (the last of several)."""

    def unwatch(self, watch: int, now: float) -> None:
        """End it; `hear` is not called any more."""

    def where(self, key: bytes) -> Whereabouts:
        """What this node knows without asking anybody."""
