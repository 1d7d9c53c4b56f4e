"""Units of a colony for tests: one whose effects are recorded, or several with a queue between."""

from __future__ import annotations

from random import Random
from typing import Any

from bench.colony_dispatch import Dispatcher
from overlay.ids import NodeId
from overlay.predicates import Constraint
from overlay.protocol import Event, Message
from protocols.colony import Colony, ColonySettings, Terms, Wish
from protocols.colony.messages import Ancestry, Beat, LogIn, Welcome
from tests.recording import Emit, Recorded, RecordingEffects, Send

CPU = Constraint.parse('kind = "cpu"')
DISK = Constraint.parse('kind = "disk"')
TAPE = Constraint.parse('kind = "tape"')


def service(text: str) -> Constraint:
    return Constraint.parse(text)


class Unit:
    """One machine, alone."""

    def __init__(self, name: NodeId = "me", *, leader: NodeId = "", **more: Any) -> None:
        settings = more.pop("settings", ColonySettings())
        kept = more.pop("kept", {})
        self.effects = RecordingEffects()
        self.machine = Colony(name, self.effects, Random(1), settings, leader=leader, **more)
        self.machine.on_start(0.0, kept)
        if leader and not more.get("lonely"):
            self.log_in(leader)

    def log_in(self, leader: NodeId, path: tuple[NodeId, ...] = (), now: float = 0.0) -> None:
        """Have the leader say welcome."""
        (knock,) = [sent.msg for sent in self.sent(LogIn)]
        assert isinstance(knock, LogIn)
        self.deliver(leader, Welcome(knock.serial, path, knock.version), now)
        self.effects.drain()

    def add(self, name: NodeId, *services: Constraint, unit: Any = "computer") -> None:
        """Register an individual."""
        self.deliver(name, LogIn(1, unit, 1, tuple(map(str, services))), 0.0)
        self.effects.drain()

    def deliver(self, src: NodeId, msg: Message, now: float = 1.0) -> list[Recorded]:
        """Hand it a message; what followed, signs of life left out."""
        self.machine.message_handlers()[type(msg)](src, msg, now)
        self.machine.check_invariants()
        return self.drain()

    def fire(self, key: Any, now: float) -> list[Recorded]:
        """Let a timer ring."""
        del self.effects.timers[key]
        self.machine.on_timer(key, now)
        self.machine.check_invariants()
        return self.drain()

    def drain(self) -> list[Recorded]:
        return [
            one
            for one in self.effects.drain()
            if isinstance(one, Emit)
            or (isinstance(one, Send) and not isinstance(one.msg, Beat | Ancestry))
        ]

    def sent(self, kind: type[Message]) -> list[Send]:
        """Messages of that kind since the last look."""
        return [
            one
            for one in self.effects.drain()
            if isinstance(one, Send) and isinstance(one.msg, kind)
        ]


class Community:
    """Several units, and everything that was told or sent."""

    def __init__(self, settings: ColonySettings | None = None) -> None:
        self.settings = settings or ColonySettings()
        self.told: list[tuple[NodeId, Event]] = []
        self.world: Dispatcher[Colony] = Dispatcher(lambda name, event: self._hear(name, event))

    def _hear(self, name: NodeId, event: Event) -> None:
        self.told.append((name, event))

    def unit(self, name: NodeId, leader: NodeId = "", **more: Any) -> Colony:
        settings = more.pop("settings", self.settings)
        machine = self.world.add(
            name,
            lambda effects: Colony(name, effects, Random(name), settings, leader=leader, **more),
        )
        self.world.settle()
        return machine

    def ask(self, name: NodeId, *wishes: Wish, terms: Terms | None = None) -> int:
        request: int = self.world.call(
            self.world.machines[name].ask, list(wishes), terms or Terms()
        )
        return request

    def heard(self, name: NodeId, kind: type[Event]) -> list[Any]:
        """What that unit emitted of that kind."""
        return [event for who, event in self.told if who == name and isinstance(event, kind)]
