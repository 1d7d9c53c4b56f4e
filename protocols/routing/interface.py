"""What siblings may ask of routing."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

from overlay.ids import Vid
from protocols.routing.aggregates import Aggregate
from protocols.routing.arcs import Arc, everybody_but, split
from protocols.topology.interface import TOPICS

__all__ = ["Aggregate", "Arc", "Gauge", "Interest", "Router", "everybody_but", "split"]

Gauge: TypeAlias = Callable[[], object]
"""Reads a value of this node: a number, text or bytes, or None when it has none."""


class Interest(NamedTuple):
    """Members whose attribute `key` lists `word` among its words."""

    word: str
    key: str = TOPICS


class Router(Protocol):
    """Messages to a key, to everybody, and questions to everybody, in one zone.

    Each call returns an id that comes again in the events. `service` names whose message it is:
    events carry it, and siblings ignore those of others.
    """

    def route(
        self,
        key: Vid,
        payload: bytes,
        now: float,
        *,
        service: str = "",
        direct: bool | None = None,
    ) -> int:
        """Bring a payload to whoever is responsible for `key`; `Routed` or `RouteFailed` follows.

        RouteArrived is emitted there, at most once by each member: while the zone changes, two may
        hold themselves responsible. After RouteFailed it may have arrived all the same.
        `direct` allows one hop past the overlay's links; None: as the settings say.
        """

    def broadcast(
        self, payload: bytes, now: float, *, service: str = "", interest: Interest | None = None
    ) -> int:
        """Bring a payload to every member, or to every interested one; `BroadcastDone` follows.

        BroadcastArrived is emitted at each, this node included, at most once.
        """

    def aggregate(self, name: str, now: float, *, interest: Interest | None = None) -> int:
        """Sum up a gauge or an attribute over all members, or all interested; `AggregateDone`."""

    def offer(self, name: str, gauge: Gauge) -> None:
        """Let aggregates of that name read this gauge instead of this node's attribute."""
