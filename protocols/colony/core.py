"""What all parts of a unit share: settings, timers, counts, and the way to a peer or to itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

from overlay.ids import NodeId
from overlay.protocol import Effects
from overlay.timetable import Timetable
from protocols.colony.config import ColonySettings
from protocols.colony.counts import ColonyCounts
from protocols.colony.interface import Card
from protocols.colony.table import RoutingTable
from protocols.colony.tracing import Tracer


class Core:
    """One unit: a computer, and while it leads a broker."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        settings: ColonySettings,
        card: Callable[[], Card],
    ) -> None:
        self.me = me
        self.effects = effects
        self.rng = rng
        self.settings = settings
        self.card = card
        self.counts = ColonyCounts()
        self.tracer = Tracer(me, effects)
        self.timers = Timetable(effects)
        self.table = RoutingTable()
        self.leads = False
        self.leader: NodeId = ""  # empty: none
        self.pending: NodeId = ""  # whom it asks to be its leader
        self.path: tuple[NodeId, ...] = ()  # the leader, its leader, …, the root
        self.above: tuple[str, ...] = ()  # where the leader is reached
        self.unsettled = 0.0  # until then individuals or a leader that were lost may return
        self.forming = 0.0  # until then a colony that has just begun may have its first individuals
        self._within: deque[Callable[[float], None]] = deque()
        # A random start, so that a reply to an earlier life of this node matches nothing.
        self._next = 1 + rng.getrandbits(48)

    def is_above(self, name: NodeId) -> bool:
        """Whether that is the leader, or takes this unit for its individual already."""
        return bool(name) and name in (self.leader, self.pending)

    def next_serial(self) -> int:
        """One that was not used before."""
        self._next += 1
        return self._next

    def inside(self, step: Callable[[float], None]) -> None:
        """What the broker and the computer of this node say to each other: after this step."""
        self._within.append(step)

    def settle(self, now: float) -> None:
        """Let them hear it; the machine calls this after each input."""
        within = self._within
        while within:
            within.popleft()(now)
