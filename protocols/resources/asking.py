"""The finds of this node: what they have, how many they want, and when they end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import msgspec

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from overlay.predicates import Constraint, Value
from overlay.protocol import Effects
from overlay.tracing import Trace
from overlay.tracing.kinds import RESOURCE_REQUESTED
from protocols.content.interface import Advertised, ContentView
from protocols.resources.config import ResourcesSettings
from protocols.resources.counts import ResourceCounts
from protocols.resources.events import FindEnded, Resource
from protocols.resources.forwarding import Forwarding
from protocols.resources.interface import RoundTrip
from protocols.resources.messages import Found, RequestId
from protocols.resources.models import ModelType
from protocols.resources.records import Record

FIND = "find"
MAX_LIMIT = 1_000_000


class Find(msgspec.Struct):
    """A dynamic find without an end yet."""

    number: int
    began: float
    limit: int  # 0: all
    nearest: bool  # the limit takes those of the shortest round trip, so all have to answer first
    on_found: Callable[[Resource, float], None] | None  # of a find that goes on


class Asking:
    """Begins finds, hears of their results, and ends each of them exactly once."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: ResourcesSettings,
        counts: ResourceCounts,
        content: ContentView,
        round_trip: RoundTrip,
    ) -> None:
        self._me = me
        self._effects = effects
        self._config = config
        self._counts = counts
        self._content = content
        self._round_trip = round_trip
        self._open: dict[RequestId, Find] = {}
        # A random start, so that what an earlier life of this node asked for matches nothing.
        self._next = rng.getrandbits(40)
        self.forwarding: Forwarding  # set by the machine: each needs the other

    def __len__(self) -> int:
        return len(self._open)

    # -- static -------------------------------------------------------------------------------

    def find_static(
        self, constraint: Constraint, limit: int, nearest: bool
    ) -> tuple[Resource, ...]:
        """What this broker's own table has: nobody else is asked (§4.1)."""
        if not self._content.is_broker:
            raise LocalProtocolError("a client's table has only its own resources: ask by a broker")
        self._counts.asked_static += 1
        self._counts.matched_advertisements += 1
        found = self._content.advertisements(constraint, ModelType.STATIC)
        return self._ranked(map(self.static_resource, found), limit, nearest)

    def static_resource(self, advertised: Advertised) -> Resource:
        """A static resource is all in its advertisement."""
        return Resource(
            advertised.id,
            ModelType.STATIC,
            fixed_values(advertised.constraint),
            str(advertised.constraint),
            advertised.epoch,
            0,
            0.0,
            len(advertised.path),
            self._distance(advertised.id),
        )

    # -- dynamic ------------------------------------------------------------------------------

    def find(
        self,
        constraint: Constraint,
        limit: int,
        nearest: bool,
        timeout: float | None,
        now: float,
        on_found: Callable[[Resource, float], None] | None = None,
        *,
        fresh: bool = False,
    ) -> int:
        """Ask the brokers of all resources that may match; FindEnded follows, with this number."""
        if len(self._open) >= self._config.max_finds:
            raise LocalProtocolError(
                f"{self._config.max_finds} finds are open: wait for one to end,"
                " or raise resources.max_finds"
            )
        if not 0 <= limit <= MAX_LIMIT:
            raise LocalProtocolError(f"a limit of {limit}: give 0 (all) to {MAX_LIMIT}")
        within = self._config.timeout if timeout is None else timeout
        if not 0 < within <= 3600:
            raise LocalProtocolError(f"a timeout of {within} s: give more than 0, at most 3600")
        number = self._next
        self._next += 1
        request = RequestId(self._me, number)
        self._open[request] = Find(number, now, limit, nearest, on_found)
        self._counts.asked += 1
        if self._effects.tracing:
            self._effects.trace(
                Trace(
                    RESOURCE_REQUESTED,
                    origin=self._me,
                    stream=number,
                    detail=self._config.forwarding,
                    key=str(constraint)[:200],
                )
            )
        self._effects.set_timer((FIND, number), now + within)
        self.forwarding.ask(request, ModelType.DYNAMIC, constraint, now, fresh=fresh)
        return number

    def on_found(self, record: Record, new: list[Found], now: float) -> None:
        """Results that this find did not have; perhaps they are enough."""
        find = self._open.get(record.id)
        if find is None:
            return
        if find.on_found is not None:
            for one in new:
                find.on_found(self._resource(one), now)
        assert record.cache is not None
        if not find.limit or find.nearest or len(record.cache) < find.limit:
            return
        if sum(map(self._is_registered, record.cache)) >= find.limit:
            self._end(find, record, "limit", now)

    def on_end(self, record: Record, now: float) -> None:
        """All have answered, or will not."""
        find = self._open.get(record.id)
        if find is not None:
            self._end(find, record, "branch lost" if record.failed else "all answered", now)

    def on_timeout(self, number: int, now: float) -> None:
        """The time of a find is over."""
        request = RequestId(self._me, number)
        find = self._open.get(request)
        record = self.forwarding.table.get(request)
        if find is None or record is None:
            return
        self._end(find, record, "timeout", now)
        self.forwarding.give_up(record, now)

    def _end(self, find: Find, record: Record, reason: str, now: float) -> None:
        del self._open[record.id]
        self._effects.cancel_timer((FIND, find.number))
        assert record.cache is not None
        resources = self._ranked(
            (
                self._resource(kept.found, max(0.0, now - kept.at))
                for kept in record.cache.values()
                if self._is_registered(kept.found.resource)
            ),
            find.limit,
            find.nearest,
        )
        complete = reason in ("all answered", "limit")
        self._counts.ended += 1
        self._counts.incomplete += not complete
        self._effects.emit(
            FindEnded(find.number, self._me, resources, complete, reason, now - find.began)
        )

    def _is_registered(self, resource: str) -> bool:
        """Results may be shared that are older than what this broker knows: that it is gone."""
        content = self._content
        return not content.is_broker or content.advertisement(resource) is not None

    # -- resources ----------------------------------------------------------------------------

    def _resource(self, found: Found, since: float = 0.0) -> Resource:
        return Resource(
            found.resource,
            ModelType.DYNAMIC,
            found.item,
            "",
            found.epoch,
            found.version,
            found.age + since,
            found.hops,
            self._distance(found.resource),
        )

    def _distance(self, id: str) -> float | None:
        owner = id.partition("/")[0]
        return 0.0 if owner == self._me else self._round_trip(owner)

    def _ranked(
        self, resources: Iterable[Resource], limit: int, nearest: bool
    ) -> tuple[Resource, ...]:
        """The nearest first where that is wanted: by round trip where it is known, then by hops."""
        found = list(resources)
        if nearest:
            found.sort(key=_nearness)
        return tuple(found[:limit] if limit else found)


def _nearness(resource: Resource) -> tuple[bool, float, int, str]:
    distance = resource.distance
    return distance is None, distance or 0.0, resource.hops, resource.id


def fixed_values(constraint: Constraint) -> dict[str, Value]:
    """The attributes to which a description leaves one value."""
    return {
        one.attribute: one.value
        for one in constraint.wire()
        if one.operator == "=" and one.value is not None
    }
