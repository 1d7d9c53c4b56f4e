"""A few members and the messages between them, which come late, twice, in any order or not."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import Event, Message, OverlayProtocol
from tests.recording import Emit, RecordingEffects, Send

P = TypeVar("P", bound=OverlayProtocol)


class Network:
    """Holds machines, and everything that is under way between them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.machines: dict[NodeId, OverlayProtocol] = {}
        self.effects: dict[NodeId, RecordingEffects] = {}
        self.under_way: list[tuple[NodeId, NodeId, Message]] = []
        self.heard: list[tuple[NodeId, Event]] = []
        self.refused: list[RemoteProtocolError] = []

    def add(self, name: NodeId, make: Callable[[RecordingEffects], P]) -> P:
        """Start one."""
        self.effects[name] = RecordingEffects()
        self.machines[name] = machine = make(self.effects[name])
        machine.on_start(self.now, {})
        self.settle(name)
        return machine

    def kill(self, name: NodeId) -> None:
        """It is gone, with what was under way to it."""
        del self.machines[name]
        self.under_way = [sent for sent in self.under_way if sent[1] != name]

    def settle(self, name: NodeId) -> None:
        """Take up what a machine did, and let it check itself."""
        for effect in self.effects[name].drain():
            if isinstance(effect, Send) and effect.to in self.machines:
                self.under_way.append((name, effect.to, effect.msg))
            elif isinstance(effect, Emit):
                self.heard.append((name, effect.event))
        self.machines[name].check_invariants()

    def deliver(self, index: int, *, keep: bool = False) -> None:
        """Let one message arrive; a copy of it may stay under way."""
        src, to, msg = self.under_way[index]
        if not keep:
            del self.under_way[index]
        try:
            self.machines[to].message_handlers()[type(msg)](src, msg, self.now)
        except RemoteProtocolError as error:
            self.refused.append(error)
        self.settle(to)

    def tell(self, name: NodeId, event: Event) -> None:
        """A sibling of that machine emits something."""
        hearer = self.machines[name].event_handlers().get(type(event))
        if hearer is not None:
            hearer(event, self.now)
            self.settle(name)

    def pass_time(self, seconds: float) -> None:
        """Fire what comes due, each at its time."""
        end = self.now + seconds
        while (due := self._next_timer()) is not None and due[0] <= end:
            self.now = max(self.now, due[0])
            self._fire(due[1], due[2])
        self.now = end

    def run(self, seconds: float, step: float = 0.05) -> None:
        """Time in which every message arrives, in order."""
        end = self.now + seconds
        while self.now < end:
            while self.under_way:
                self.deliver(0)
            self.pass_time(step)

    def _next_timer(self) -> tuple[float, NodeId, Hashable] | None:
        timers = [
            (at, name, key)
            for name in self.machines
            for key, at in self.effects[name].timers.items()
        ]
        return min(timers, key=lambda timer: timer[:2]) if timers else None

    def _fire(self, name: NodeId, key: Hashable) -> None:
        del self.effects[name].timers[key]
        self.machines[name].on_timer(key, self.now)
        self.settle(name)
