"""One router under test, its view and links, and shorter words for what happens to it."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from overlay.ids import NodeId
from overlay.protocol import Event, Message, Scope
from protocols.membership.events import MemberFailed
from protocols.routing import Routing, RoutingSettings
from protocols.routing.machine import SWEEP
from protocols.topology.interface import Kind
from tests.recording import Emit, Recorded, RecordingEffects, Send
from tests.unit.topology.fixed_view import ZONE, FixedView, Roster

NAMES = ("ada", "bob", "cy", "dee", "eve", "fay", "gus", "hal")
CLOCKWISE = tuple(Roster(NAMES).ring)


class FixedLinks:
    """Implements `TopologyView`."""

    def __init__(self, peers: Iterable[NodeId]) -> None:
        self.zone: Scope = ZONE
        self.version = 0
        self.peers = list(peers)

    @property
    def degree(self) -> int:
        return len(self.peers)

    def neighbours(self) -> tuple[NodeId, ...]:
        return tuple(self.peers)

    def is_neighbour(self, peer: NodeId) -> bool:
        return peer in self.peers

    def kinds(self, peer: NodeId) -> Kind:
        return Kind.RING if peer in self.peers else Kind.NONE


class Bench:
    """The router of the first member of the ring, or of another."""

    def __init__(
        self,
        links: Iterable[NodeId],
        config: RoutingSettings | None = None,
        *,
        me: NodeId = CLOCKWISE[0],
        roster: Roster | None = None,
    ) -> None:
        self.me = me
        self.roster = roster or Roster(NAMES)
        self.links = FixedLinks(links)
        self.effects = RecordingEffects()
        self.router = Routing(
            me,
            self.effects,
            Random(1),
            config or RoutingSettings(),
            members=FixedView(me, self.roster),
            links=self.links,
        )
        self.router.on_start(0.0, {})
        self.handlers = self.router.message_handlers()
        self.effects.drain()

    def hear(self, src: NodeId, msg: Message, now: float = 0.0) -> list[Recorded]:
        """Return what a message made it send and emit."""
        self.handlers[type(msg)](src, msg, now)
        return self.done()

    def done(self) -> list[Recorded]:
        self.router.check_invariants()
        return [effect for effect in self.effects.drain() if isinstance(effect, Send | Emit)]

    def sweep(self) -> tuple[float, list[Recorded]]:
        """Let the timer come due; when that was, and what it did."""
        now = self.effects.timers.pop(SWEEP)
        self.router.on_timer(SWEEP, now)
        return now, self.done()

    def sweep_until(self, end: float) -> list[tuple[float, Recorded]]:
        """Let all timers come due up to a moment; what they did, and when."""
        happened = []
        while self.effects.timers.get(SWEEP, end + 1) <= end:
            now, effects = self.sweep()
            happened += [(round(now, 3), effect) for effect in effects]
        return happened

    def fail(self, member: NodeId, now: float) -> list[Recorded]:
        """Membership found that one dead."""
        self.roster.remove(member)
        self.router.event_handlers()[MemberFailed](MemberFailed(ZONE, member), now)
        return self.done()


def events(effects: Iterable[Recorded]) -> list[Event]:
    """What was emitted."""
    return [effect.event for effect in effects if isinstance(effect, Emit)]


def sends(effects: Iterable[Recorded]) -> list[Send]:
    """What was sent."""
    return [effect for effect in effects if isinstance(effect, Send)]
