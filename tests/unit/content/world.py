"""A few brokers and clients whose links keep their order, as those of a driver do."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from msgspec.structs import replace

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import Event, Message
from protocols.content import Content, ContentSettings, Delivered
from tests.recording import Emit, RecordingEffects, Send, TickEnd

SETTINGS = ContentSettings(beat=1.0, lease=3.0, client_lease=4.0, patience=1.0, settle=0.2)


class World:
    """Machines, and what is under way between each two of them."""

    def __init__(self, settings: ContentSettings = SETTINGS) -> None:
        self.now = 1000.0
        self.settings = settings
        self.machines: dict[NodeId, Content] = {}
        self.effects: dict[NodeId, RecordingEffects] = {}
        self.links: dict[tuple[NodeId, NodeId], list[Message]] = {}
        self.cut: set[frozenset[NodeId]] = set()
        self.sent: list[tuple[NodeId, NodeId, Message]] = []
        self.heard: list[tuple[NodeId, Event]] = []
        self.refused: list[RemoteProtocolError] = []
        self.lives = 0

    # -- who is there ---------------------------------------------------------------------------

    def broker(self, name: NodeId, links: Iterable[NodeId] = ()) -> Content:
        """Start a broker that greets these."""
        return self._start(name, role="broker", links=tuple(links))

    def client(self, name: NodeId, broker: NodeId) -> Content:
        """Start a client of that broker."""
        return self._start(name, role="client", broker=broker)

    def _start(self, name: NodeId, **changed: object) -> Content:
        self.lives += 1
        self.effects[name] = RecordingEffects()
        settings = replace(self.settings, **changed)
        machine = Content(name, self.effects[name], Random(f"{name}/{self.lives}"), settings)
        self.machines[name] = machine
        machine.on_start(self.now, {})
        self.settle(name)
        return machine

    def kill(self, name: NodeId) -> None:
        """It is gone without a word."""
        del self.machines[name]
        self.links = {pair: queue for pair, queue in self.links.items() if name not in pair}

    def stop(self, name: NodeId) -> None:
        """It says goodbye."""
        self.machines[name].on_stop(self.now)
        self.settle(name)
        del self.machines[name]

    # -- what happens ---------------------------------------------------------------------------

    def settle(self, name: NodeId) -> None:
        """Take up what a machine did."""
        pending = self.effects[name].drain()
        while pending:
            for effect in pending:
                if isinstance(effect, Send):
                    self.sent.append((name, effect.to, effect.msg))
                    pair = frozenset((name, effect.to))
                    if effect.to in self.machines and pair not in self.cut:
                        self.links.setdefault((name, effect.to), []).append(effect.msg)
                elif isinstance(effect, Emit):
                    self.heard.append((name, effect.event))
                elif isinstance(effect, TickEnd):
                    effect.callback(self.now)
            pending = self.effects[name].drain()
        machine = self.machines[name]
        machine.check_invariants()
        machine.router.audit()

    def call(self, name: NodeId, command: str, *args: object, **options: object) -> object:
        """A command of the application."""
        result = getattr(self.machines[name], command)(*args, self.now, **options)
        self.settle(name)
        return result

    def deliver(self, pair: tuple[NodeId, NodeId]) -> None:
        """Let the next message of one direction of a link arrive."""
        src, to = pair
        msg = self.links[pair].pop(0)
        if not self.links[pair]:
            del self.links[pair]
        if to not in self.machines:
            return
        try:
            self.machines[to].message_handlers()[type(msg)](src, msg, self.now)
        except RemoteProtocolError as error:
            self.refused.append(error)
        self.settle(to)

    def lose(self, pair: tuple[NodeId, NodeId]) -> None:
        """Let it be lost."""
        self.links[pair].pop(0)
        if not self.links[pair]:
            del self.links[pair]

    def drain(self) -> None:
        """Let everything arrive, one message of each link after the other."""
        while self.links:
            for pair in list(self.links):
                if pair in self.links:
                    self.deliver(pair)

    def pass_time(self, seconds: float) -> None:
        """Fire what comes due, each at its time; messages need none."""
        end = self.now + seconds
        self.drain()
        while True:
            due = [
                (at, name, key)
                for name in self.machines
                for key, at in self.effects[name].timers.items()
                if at <= end
            ]
            if not due:
                break
            at, name, key = min(due, key=lambda one: (one[0], one[1], repr(one[2])))
            self.now = max(self.now, at)
            del self.effects[name].timers[key]
            self.machines[name].on_timer(key, self.now)
            self.settle(name)
            self.drain()
        self.now = end

    # -- what users see -------------------------------------------------------------------------

    def delivered(self) -> list[tuple[str, str, int]]:
        """What was delivered since the last call: subscription, advertisement, sequence."""
        found = [
            (event.subscription, event.advertisement, event.sequence)
            for _, event in self.heard
            if isinstance(event, Delivered)
        ]
        self.heard.clear()
        return found

    def told(self, src: NodeId, to: NodeId) -> list[str]:
        """What one's ledger for another holds: `+id` of advertisements, `?id` of subscriptions."""
        lines = self.machines[src].router.readers[to].ledger.lines
        return sorted(("+" if key.advertisement else "?") + key.id for key in lines)


def linked(world: World, edges: Iterable[tuple[NodeId, NodeId]]) -> None:
    """Start the brokers of a graph, and let them get to know each other."""
    names: dict[NodeId, list[NodeId]] = {}
    for one, other in edges:
        names.setdefault(one, [])
        names.setdefault(other, []).append(one)
    for name, links in names.items():
        world.broker(name, links)
    world.pass_time(2.5)
