"""What a broker remembers of requests: one record each, and the paper's three structures over them.

- *SrdSubList*: the requests that no other covered here. They are the covers of later ones.
- *SubWaitingListMap*: for each of them the requests that wait for its results here.
- *ResourceCacheMap*: at the host broker of such a request, the results that it has so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import msgspec

from overlay.ids import NodeId
from overlay.predicates import Constraint, ConstraintIndex
from protocols.resources.messages import Found, RequestId
from protocols.resources.models import ModelType


class Way(Enum):
    """What a request does at this broker."""

    ROUTED = "routed"  # by advertisements; in the SrdSubList
    COVERED = "covered"  # this broker found a cover for it
    RELAYED = "relayed"  # another broker did; it is on its way to the cover's host


class Branch(Enum):
    """Why a neighbour, or this broker itself, still owes an answer."""

    ADVERTISED = "advertised"  # resources behind it may match
    COVER = "cover"  # the host of the cover is behind it


class Cached(msgspec.Struct):
    """A result at its host broker."""

    found: Found
    at: float  # when it came


class Record(msgspec.Struct):
    """One request, as this broker knows it."""

    id: RequestId
    model: ModelType
    constraint: Constraint
    last_hop: NodeId  # who sent it; this broker itself: its own client
    issued: float  # by this node's clock, at the latest
    arrived: float
    as_of: float  # what was registered and matched since then is, or will be, among the results
    hops: int = 0
    way: Way = Way.ROUTED
    cover: RequestId | None = None
    branches: dict[NodeId, Branch] = msgspec.field(default_factory=dict)
    waiting: dict[RequestId, None] = msgspec.field(default_factory=dict)
    cache: dict[str, Cached] | None = None  # at its host alone
    has_results: bool = False  # some passed here
    elsewhere: bool = False  # some may have gone another way
    failed: bool = False  # a branch was lost, or the time was over
    done: bool = False  # all branches have answered
    direct: bool = False
    fresh: bool = False  # it shares nobody's results
    sent: int = 0  # results that went straight to the host, of this branch
    got: int = 0  # at the host: those that came


class RequestTable:
    """All records by id, the oldest first, with an index of those that can be covers."""

    def __init__(self) -> None:
        self._records: dict[RequestId, Record] = {}
        self._covers: ConstraintIndex[RequestId] = ConstraintIndex()

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(list(self._records.values()))

    def get(self, id: RequestId) -> Record | None:
        """The record of that request, if it is known here."""
        return self._records.get(id)

    def add(self, record: Record) -> None:
        """Remember a request that is not known."""
        self._records[record.id] = record

    def drop(self, record: Record) -> None:
        """Forget it, and that it waits."""
        self._records.pop(record.id, None)
        self.bar(record)
        self.wait_no_more(record)

    def oldest(self) -> Record | None:
        """The one that expires next."""
        return next(iter(self._records.values()), None)

    # -- the SrdSubList -----------------------------------------------------------------------

    def enlist(self, record: Record) -> None:
        """Others may be covered by it from now on."""
        if record.id not in self._covers:
            self._covers.add(record.id, record.constraint)

    def bar(self, record: Record) -> None:
        """It covers nobody any more."""
        if record.id in self._covers:
            self._covers.remove(record.id)

    def bar_all(self, advertisement: Constraint) -> int:
        """None that such a resource may match covers anybody any more; how many."""
        outdated = self._covers.intersected_by(advertisement)
        for one in outdated:
            self._covers.remove(one)
        return len(outdated)

    def is_listed(self, id: RequestId) -> bool:
        """Whether it is in the SrdSubList."""
        return id in self._covers

    def covers_of(self, constraint: Constraint) -> Iterator[Record]:
        """Those of the SrdSubList that cover it, the oldest first."""
        return (self._records[listed] for listed in self._covers.covering(constraint))

    @property
    def srd_sub_list(self) -> tuple[RequestId, ...]:
        """Requests that no other covered here."""
        return tuple(self._covers)

    # -- the SubWaitingListMap ------------------------------------------------------------------

    def wait(self, record: Record, cover: Record) -> None:
        """It gets the results of its cover that pass here from now on."""
        cover.waiting[record.id] = None

    def wait_no_more(self, record: Record) -> None:
        """It does not."""
        cover = None if record.cover is None else self._records.get(record.cover)
        if cover is not None:
            cover.waiting.pop(record.id, None)

    def waiting_for(self, record: Record) -> list[Record]:
        """The requests that wait for its results here."""
        return [self._records[one] for one in record.waiting if one in self._records]

    @property
    def sub_waiting_list_map(self) -> dict[RequestId, tuple[RequestId, ...]]:
        """Who waits for whom."""
        return {one.id: tuple(one.waiting) for one in self._records.values() if one.waiting}

    # -- the ResourceCacheMap -------------------------------------------------------------------

    @property
    def resource_cache_map(self) -> dict[RequestId, tuple[str, ...]]:
        """The results that this broker keeps for requests of its own clients."""
        return {one.id: tuple(one.cache) for one in self._records.values() if one.cache}
