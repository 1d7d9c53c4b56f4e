"""One topology under test, its view, and shorter words for what happens to it."""

from __future__ import annotations

from random import Random

from overlay.ids import NodeId
from overlay.protocol import Message
from protocols.membership.events import MemberFailed, MemberJoined, MemberLeft
from protocols.topology import Topology, TopologySettings
from protocols.topology.machine import REVIEW
from tests.recording import Emit, Recorded, RecordingEffects, Send
from tests.unit.topology.fixed_view import ZONE, FixedView, Roster

SPARSE = TopologySettings(
    ring_links=1, structured_links=0, random_links=0, greedy_coverage=0, random_coverage=0
)
"""Nothing but the ring, so that effects are few."""

NAMES = ("ada", "bob", "cy", "dee", "eve", "fay", "gus", "hal")
CLOCKWISE = tuple(Roster(NAMES).ring)


class Bench:
    """The topology of the first member of the ring."""

    def __init__(
        self, config: TopologySettings = SPARSE, names: tuple[NodeId, ...] = NAMES
    ) -> None:
        self.roster = Roster(names)
        self.me = CLOCKWISE[0]
        self.effects = RecordingEffects()
        view = FixedView(self.me, self.roster)
        self.topology = Topology(self.me, self.effects, Random(1), config, members=view)
        self.handlers = self.topology.message_handlers()

    def start(self, now: float = 0.0) -> list[Recorded]:
        self.topology.on_start(now, {})
        return self.effects.drain()

    def review(self, now: float) -> list[Recorded]:
        """Let the review come due, and return what it did but for its next timer."""
        self.topology.on_timer(REVIEW, now)
        return self.done()

    def hear(self, src: NodeId, msg: Message, now: float) -> list[Recorded]:
        """Return what a message made it do, timers aside."""
        self.handlers[type(msg)](src, msg, now)
        return self.done()

    def done(self) -> list[Recorded]:
        self.topology.check_invariants()
        return [effect for effect in self.effects.drain() if isinstance(effect, Send | Emit)]

    def join(self, name: NodeId, now: float) -> None:
        self.roster.add(name)
        self.topology.event_handlers()[MemberJoined](MemberJoined(ZONE, name, 1), now)

    def fail(self, name: NodeId, now: float, *, restarted: bool = False) -> list[Recorded]:
        if not restarted:
            self.roster.remove(name)
        event = MemberFailed(ZONE, name, restarted)
        self.topology.event_handlers()[MemberFailed](event, now)
        return self.done()

    def leave(self, name: NodeId, now: float) -> list[Recorded]:
        self.roster.remove(name)
        self.topology.event_handlers()[MemberLeft](MemberLeft(ZONE, name), now)
        return self.done()
