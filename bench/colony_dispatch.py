"""Runs protocol machines without sockets and without a network model: messages wait in one queue.

The evaluation of a paper counts messages of millions of requests; for that the machines themselves
are enough. What the simulator adds (latency, faults, a trace) costs ten times as much.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

from overlay.ids import NodeId
from overlay.protocol import Effects, Event, Group, Handler, Message, OverlayProtocol, UdpAddress
from overlay.tracing import Trace

P = TypeVar("P", bound=OverlayProtocol)


class QueuedEffects(Effects):
    """What one machine wants done."""

    __slots__ = ("_dispatcher", "_name", "timers")

    def __init__(self, dispatcher: Dispatcher[Any], name: NodeId) -> None:
        self._dispatcher = dispatcher
        self._name = name
        self.timers: dict[Hashable, float] = {}

    def send(self, to: NodeId | Sequence[NodeId], msg: Message) -> None:
        """Queue it; to nobody who exists it is lost."""
        if isinstance(to, str):
            self._dispatcher.queue.append((self._name, to, msg))
        else:
            self._dispatcher.queue.extend((self._name, peer, msg) for peer in to)

    def cast(self, address: UdpAddress | Group, msg: Message, reader: NodeId = "") -> None:
        """No datagrams here."""
        raise NotImplementedError

    def set_timer(self, key: Hashable, at: float) -> None:
        """Ring when time is passed."""
        self.timers[key] = at
        self._dispatcher.arm(at, self._name, key)

    def cancel_timer(self, key: Hashable) -> None:
        """Leave it in the heap, where it rings in vain."""
        self.timers.pop(key, None)

    def store(self, key: bytes, value: bytes | None, token: Hashable) -> None:
        """A disk that takes no time."""
        self._dispatcher.stored.append((self._name, token))

    def at_tick_end(self, callback: Callable[[float], None]) -> None:
        """After the present input."""
        self._dispatcher.late[callback] = None

    def emit(self, event: Event) -> None:
        """Tell who listens."""
        self._dispatcher.hear(self._name, event)

    def trace(self, record: Trace) -> None:
        """Nobody records."""


class Dispatcher(Generic[P]):
    """All machines of a world, and one queue between them; time passes when somebody says so."""

    def __init__(self, hear: Callable[[NodeId, Event], None]) -> None:
        self.now = 0.0
        self.machines: dict[NodeId, P] = {}
        self.queue: deque[tuple[NodeId, NodeId, Message]] = deque()
        self.late: dict[Callable[[float], None], None] = {}
        self.stored: deque[tuple[NodeId, Hashable]] = deque()
        self.hear = hear
        self.delivered = 0
        self.log: list[tuple[NodeId, NodeId, Message]] | None = None  # everything, if wanted
        self._handlers: dict[NodeId, dict[type[Message], Handler]] = {}
        self._effects: dict[NodeId, QueuedEffects] = {}
        self._heap: list[tuple[float, int, NodeId, Hashable]] = []
        self._armed = 0

    def add(self, name: NodeId, make: Callable[[QueuedEffects], P]) -> P:
        """Start one."""
        effects = self._effects[name] = QueuedEffects(self, name)
        machine = self.machines[name] = make(effects)
        self._handlers[name] = dict(machine.message_handlers())
        machine.on_start(self.now, {})
        self._end_step()
        return machine

    def remove(self, name: NodeId) -> None:
        """It is gone without a word."""
        del self.machines[name], self._handlers[name]
        self._effects.pop(name).timers.clear()

    def call(self, command: Callable[..., Any], *args: Any) -> Any:
        """A command of the application, and all that follows from it."""
        result = command(*args, self.now)
        self._end_step()
        self.settle()
        return result

    def settle(self) -> None:
        """Deliver until nothing is under way."""
        queue, handlers, now = self.queue, self._handlers, self.now
        popleft, stored = queue.popleft, self.stored
        delivered = 0
        while queue:
            src, to, msg = popleft()
            table = handlers.get(to)
            if table is None:
                continue
            delivered += 1
            if self.log is not None:
                self.log.append((src, to, msg))
            table[type(msg)](src, msg, now)
            if self.late or stored:
                self._end_step()
        self.delivered += delivered

    def pass_time(self, seconds: float) -> None:
        """Let timers ring, each at its time."""
        end = self.now + seconds
        heap = self._heap
        while heap and heap[0][0] <= end:
            at, _, name, key = heappop(heap)
            effects = self._effects.get(name)
            if effects is None or effects.timers.get(key) != at:
                continue
            del effects.timers[key]
            self.now = max(self.now, at)
            self.machines[name].on_timer(key, self.now)
            self._end_step()
            self.settle()
        self.now = end

    def arm(self, at: float, name: NodeId, key: Hashable) -> None:
        """Put a timer into the heap."""
        self._armed += 1
        heappush(self._heap, (at, self._armed, name, key))

    def _end_step(self) -> None:
        while self.late or self.stored:
            callbacks, self.late = list(self.late), {}
            for callback in callbacks:
                callback(self.now)
            while self.stored:
                name, token = self.stored.popleft()
                self.machines[name].on_stored(token, self.now)
