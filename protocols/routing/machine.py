"""The state machine of routing in a zone: commands and messages in, one timer for all patience."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from random import Random
from typing import ClassVar

from overlay.errors import InvariantViolation, LocalProtocolError
from overlay.ids import FULL_SPACE, NodeId, Vid
from overlay.protocol import Effects, Event, EventHandler, Handler, Message, OverlayProtocol
from protocols.membership.events import MemberFailed, MemberLeft
from protocols.membership.interface import MembershipView
from protocols.routing.config import RoutingSettings
from protocols.routing.events import (
    AggregateDone,
    BroadcastArrived,
    BroadcastDone,
    RouteArrived,
    Routed,
    RouteFailed,
)
from protocols.routing.hop import Hop, RoutingCounts
from protocols.routing.interface import Gauge, Interest
from protocols.routing.messages import (
    MESSAGES,
    SERVICE_CHARACTERS,
    WORD_CHARACTERS,
    Ask,
    RangeDone,
    RouteDone,
    RouteStep,
    Spread,
    Taken,
)
from protocols.routing.routes import Routes
from protocols.routing.spreads import Spreads
from protocols.topology.interface import TopologyView

SWEEP = "sweep"  # look at everything that waits; set only while something does


class Routing(OverlayProtocol):
    """Routing in one zone; implements `Router`. Give it the zone's name as scope."""

    name: ClassVar[str] = "routing"
    messages: ClassVar[tuple[type[Message], ...]] = MESSAGES
    emits: ClassVar[tuple[type[Event], ...]] = (
        RouteArrived,
        Routed,
        RouteFailed,
        BroadcastArrived,
        BroadcastDone,
        AggregateDone,
    )

    config: RoutingSettings

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: RoutingSettings,
        *,
        members: MembershipView,
        links: TopologyView,
    ) -> None:
        super().__init__(me, effects, rng, config)
        self._members = members
        self._hop = Hop(me, effects, rng, config, members, links)
        self._routes = Routes(self._hop)
        self._spreads = Spreads(self._hop, self._read)
        self._gauges: dict[str, Gauge] = {}
        # A random start, so that ids of an earlier life of this node are not taken for these.
        self._next_id = rng.getrandbits(48)
        self._sweep_at: float | None = None

    # -- Router -----------------------------------------------------------------------------------

    def route(
        self,
        key: Vid,
        payload: bytes,
        now: float,
        *,
        service: str = "",
        direct: bool | None = None,
    ) -> int:
        """Bring a payload to whoever is responsible; `Routed` or `RouteFailed` follows."""
        if key not in FULL_SPACE:
            raise LocalProtocolError(f"key {key:#x} lies outside of the key space: use key_of")
        number = self._begin(service)
        direct = self.config.direct if direct is None else direct
        self._routes.begin(number, key, payload, service, direct, now)
        self._arm(now)
        return number

    def broadcast(
        self, payload: bytes, now: float, *, service: str = "", interest: Interest | None = None
    ) -> int:
        """Bring a payload to every member, or to every interested one; `BroadcastDone` follows."""
        self._check_interest(interest)
        number = self._begin(service)
        self.counts.broadcasts += 1
        self._spreads.begin(number, interest, now, service=service, payload=payload)
        self._arm(now)
        return number

    def aggregate(self, name: str, now: float, *, interest: Interest | None = None) -> int:
        """Sum up a gauge or an attribute over all members, or all interested; `AggregateDone`."""
        self._check_interest(interest)
        if not 0 < len(name) <= WORD_CHARACTERS:
            raise LocalProtocolError(f"gauge {name[:40]!a}: use 1 to {WORD_CHARACTERS} characters")
        number = self._begin("")
        self.counts.aggregates += 1
        self._spreads.begin(number, interest, now, gauge=name)
        self._arm(now)
        return number

    def offer(self, name: str, gauge: Gauge) -> None:
        """Let aggregates of that name read this gauge instead of this node's attribute."""
        self._gauges[name] = gauge

    def _read(self, name: str) -> object:
        gauge = self._gauges.get(name)
        return self._members.attributes(self.me).get(name) if gauge is None else gauge()

    def _begin(self, service: str) -> int:
        if self.me not in self._members:
            raise LocalProtocolError(f"{self.me} is no member of {self._members.zone!r}: start it")
        if len(service) > SERVICE_CHARACTERS:
            raise LocalProtocolError(
                f"service {service[:40]!a}: use at most {SERVICE_CHARACTERS} characters"
            )
        if self.open_here >= self.config.max_open:
            raise LocalProtocolError(
                f"{self.config.max_open} routes, broadcasts and aggregates are open: wait for the"
                " events that end them, or raise routing.max_open"
            )
        self._next_id += 1
        return self._next_id

    def _check_interest(self, interest: Interest | None) -> None:
        if interest is not None and not (
            0 < len(interest.key) <= WORD_CHARACTERS and len(interest.word) <= WORD_CHARACTERS
        ):
            raise LocalProtocolError(
                f"interest {interest.word[:40]!a} in {interest.key[:40]!a}: name an attribute, and"
                f" use at most {WORD_CHARACTERS} characters"
            )

    # -- what people may look at ------------------------------------------------------------------

    @property
    def counts(self) -> RoutingCounts:
        """How often what happened."""
        return self._hop.counts

    @property
    def open_here(self) -> int:
        """How many routes, broadcasts and aggregates began here and have no end yet."""
        return len(self._routes) + self._spreads.begun

    @property
    def in_custody(self) -> int:
        """How many messages of others have no end yet here."""
        return len(self._hop.incoming)

    @property
    def handovers(self) -> tuple[int, int, int]:
        """How many were repeated, lost, and turned away for want of room, since the start."""
        hop = self._hop
        return hop.outgoing.repeated, hop.outgoing.lost, hop.incoming.turned_away

    @property
    def forgotten(self) -> int:
        """How many messages `remembered` left no room for, since the start."""
        return self._hop.forgotten

    # -- inputs -----------------------------------------------------------------------------------

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """One handler for each message of the table in the package's docstring."""
        return {
            RouteStep: self._attended(self._routes.on_step),
            RouteDone: self._attended(self._routes.on_done),
            Spread: self._attended(self._spreads.on_spread),
            RangeDone: self._attended(self._spreads.on_done),
            Taken: self._hop.outgoing.on_taken,
            Ask: self._hop.incoming.on_ask,
        }

    def _attended(self, handler: Handler) -> Handler:
        """See that a timer is set for what a message left waiting."""

        def attend(src: NodeId, msg: Message, now: float) -> None:
            handler(src, msg, now)
            self._arm(now)

        return attend

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """A member is gone."""
        return {MemberFailed: self._on_gone, MemberLeft: self._on_gone}

    def _on_gone(self, event: MemberFailed | MemberLeft, now: float) -> None:
        self._hop.outgoing.peer_gone(event.member, now)
        self._arm(now)

    def on_timer(self, key: Hashable, now: float) -> None:
        """Look at everything that waits."""
        if key == SWEEP:
            self._sweep_at = None
            self._hop.outgoing.sweep(now)
            self._routes.sweep(now)
            self._spreads.sweep(now)
            self._arm(now)

    def _arm(self, now: float) -> None:
        # One timer for all: a timer for each transfer would be set and cancelled at every hop.
        pause = self.config.take_timeout / 2
        if self._sweep_at is not None and self._sweep_at > now + 2 * pause:
            self._hop.outgoing.set_back(now)
            self._routes.set_back(now)
            self._spreads.set_back(now)
            self._sweep_at = None
        if self._sweep_at is None and (len(self._hop.outgoing) or self.open_here):
            self._sweep_at = now + pause
            self.effects.set_timer(SWEEP, self._sweep_at)

    # -- invariants -------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """See the package's docstring."""
        hop, counts = self._hop, self.counts
        transfers = self._routes.transfers + self._spreads.transfers
        if len(transfers) != len(hop.outgoing) or any(it not in hop.outgoing for it in transfers):
            raise InvariantViolation(f"{self.me}: a transfer belongs to nothing, or to two")
        if self.open_here > self.config.max_open or len(hop.incoming) > self.config.max_open:
            raise InvariantViolation(f"{self.me}: {self.open_here} + {len(hop.incoming)} are open")
        if (transfers or self.open_here) and self._sweep_at is None:
            raise InvariantViolation(f"{self.me}: something waits without a timer")
        if counts.routes != counts.routed + counts.failed + len(self._routes):
            raise InvariantViolation(f"{self.me}: a route has no end or two: {counts}")
        if len(hop.incoming) != self._routes.passing_through + self._spreads.passing_through:
            raise InvariantViolation(f"{self.me}: something is in custody and not under way")
