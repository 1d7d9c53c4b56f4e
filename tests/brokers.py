"""Brokers for tests of resources: the real machines on a content routing that is always right.

`FlatContent` is a test double of the narrow interface: it knows the whole graph, so last hops are
those of shortest paths at any moment, and nothing is under way. Scenarios run the real one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from random import Random

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from overlay.predicates import Constraint, Item, determines, intersects, matches
from overlay.protocol import Event, Message
from protocols.content.events import (
    AdvertisementAdded,
    AdvertisementRemoved,
    Delivered,
    NeighbourDown,
)
from protocols.content.interface import Advertised, EntryId, Subscribed, entry_id, owner_of
from protocols.resources import FindEnded, ModelType, Resources, ResourcesSettings
from tests.recording import Emit, RecordingEffects, Send, TickEnd


class FlatContent:
    """Content routing as one node of a `Brokers` world sees it."""

    def __init__(self, world: Brokers, me: NodeId) -> None:
        self._world = world
        self._me = me
        self.is_broker = True
        self.broker: NodeId | None = me

    def neighbours(self) -> tuple[NodeId, ...]:
        return tuple(one for one in self._world.links[self._me] if one in self._world.machines)

    def clients(self) -> tuple[NodeId, ...]:
        return ()

    def is_client(self, hop: NodeId) -> bool:
        return hop == self._me

    def advertisement(self, id: EntryId) -> Advertised | None:
        held = self._world.advertised.get(id)
        hop = None if held is None else self._world.hop(self._me, owner_of(id))
        return None if held is None or hop is None else held._replace(hop=hop)

    def advertisements(
        self, constraint: Constraint | None = None, model: str = ""
    ) -> Iterator[Advertised]:
        for named, held in list(self._world.advertised.items()):
            if held.model == model and (
                constraint is None or intersects(held.constraint, constraint)
            ):
                known = self.advertisement(named)
                if known is not None:
                    yield known

    def subscriptions(self, hop: NodeId | None = None) -> Iterator[Subscribed]:
        return iter(())

    def advertise(
        self,
        name: str,
        constraint: Constraint,
        now: float,
        *,
        model: str = "",
        note: bytes = b"",
        whole: bool = False,
    ) -> EntryId:
        assert whole, "resources must be known to every broker"
        named = entry_id(self._me, name)
        self._world.epoch += 1
        held = Advertised(named, self._world.epoch, constraint, model, whole, note, self._me)
        self._world.advertised[named] = held
        self._world.tell_all(AdvertisementAdded(held))
        return named

    def unadvertise(self, name: str, now: float) -> None:
        held = self._world.advertised.pop(entry_id(self._me, name))
        self._world.tell_all(AdvertisementRemoved(held))

    def subscribe(
        self, name: str, constraint: Constraint, now: float, *, model: str = ""
    ) -> EntryId:
        named = entry_id(self._me, name)
        self._world.subscribed[named] = Subscribed(named, constraint, model, self._me)
        return named

    def unsubscribe(self, name: str, now: float) -> None:
        del self._world.subscribed[entry_id(self._me, name)]

    def publish(self, name: str, item: Item, now: float) -> int:
        named = entry_id(self._me, name)
        held = self._world.advertised[named]
        if not determines(held.constraint, item):
            raise LocalProtocolError("outside")
        self._world.sequence += 1
        for wanted in list(self._world.subscribed.values()):
            if wanted.model == held.model and matches(item, wanted.constraint):
                delivered = Delivered(
                    wanted.id, named, held.epoch, self._world.sequence, dict(item)
                )
                self._world.pending.append((owner_of(wanted.id), delivered))
        return self._world.sequence


class Brokers:
    """Machines on a graph, and what is under way between them, in order on each link."""

    def __init__(
        self,
        edges: Iterable[str],
        config: ResourcesSettings | None = None,
        seed: int = 1,
    ) -> None:
        self.now = 0.0
        self.epoch = 0
        self.sequence = 0
        self.links: dict[NodeId, dict[NodeId, None]] = {}
        for edge in edges:
            one, other = edge[0], edge[1]
            self.links.setdefault(one, {})[other] = None
            self.links.setdefault(other, {})[one] = None
        self.advertised: dict[EntryId, Advertised] = {}
        self.subscribed: dict[EntryId, Subscribed] = {}
        self.pending: list[tuple[NodeId, Event]] = []
        self.under_way: dict[tuple[NodeId, NodeId], deque[Message]] = {}
        self.sent: list[tuple[NodeId, NodeId, Message]] = []
        self.heard: list[tuple[NodeId, Event]] = []
        self.effects: dict[NodeId, RecordingEffects] = {}
        self.machines: dict[NodeId, Resources] = {}
        self.content: dict[NodeId, FlatContent] = {}
        self._config = config or ResourcesSettings()
        self._seed = seed
        for name in sorted(self.links):
            self.start(name)

    def start(self, name: NodeId) -> Resources:
        """Begin a life of a broker."""
        effects = self.effects[name] = RecordingEffects()
        content = self.content[name] = FlatContent(self, name)
        rng = Random(f"{self._seed}/{name}/{self.now}")
        machine = Resources(name, effects, rng, self._config, content=content)
        self.machines[name] = machine
        machine.on_start(self.now, {})
        self.settle(name)
        return machine

    def crash(self, name: NodeId) -> None:
        """It is gone, with what was under way and all it had registered; neighbours notice."""
        del self.machines[name]
        for ends in list(self.under_way):
            if name in ends:
                del self.under_way[ends]
        for named in [one for one in self.advertised if owner_of(one) == name]:
            self.tell_all(AdvertisementRemoved(self.advertised.pop(named)))
        for named in [one for one in self.subscribed if owner_of(one) == name]:
            del self.subscribed[named]
        for peer in self.links[name]:
            if peer in self.machines:
                self.tell(peer, NeighbourDown(name))

    def hop(self, start: NodeId, goal: NodeId) -> NodeId | None:
        """The next broker on a shortest way, the first in the order of names; None: no way."""
        if start == goal:
            return start
        distance = {goal: 0}
        todo = deque([goal])
        while todo:
            here = todo.popleft()
            for peer in self.links[here]:
                if peer not in distance and peer in self.machines:
                    distance[peer] = distance[here] + 1
                    todo.append(peer)
        near = [peer for peer in sorted(self.links[start]) if peer in distance]
        return min(near, key=lambda peer: distance[peer]) if near else None

    # -- what happens -------------------------------------------------------------------------

    def settle(self, name: NodeId) -> None:
        """Take up what a machine did, let its tick end, and let it check itself."""
        while effects := self.effects[name].drain():
            for effect in effects:
                if isinstance(effect, Send):
                    self.sent.append((name, effect.to, effect.msg))
                    if effect.to in self.machines:
                        self.under_way.setdefault((name, effect.to), deque()).append(effect.msg)
                elif isinstance(effect, Emit):
                    self.heard.append((name, effect.event))
                elif isinstance(effect, TickEnd):
                    effect.callback(self.now)
        self.machines[name].check_invariants()
        while self.pending:
            to, event = self.pending.pop(0)
            if to in self.machines:
                self.tell(to, event)

    def tell(self, name: NodeId, event: Event) -> None:
        """Content routing emits something at that node."""
        hearer = self.machines[name].event_handlers().get(type(event))
        if hearer is not None:
            hearer(event, self.now)
            self.settle(name)

    def tell_all(self, event: Event) -> None:
        """At every broker, once the one that acts is done."""
        self.pending += [(name, event) for name in self.machines]

    def deliver(self, ends: tuple[NodeId, NodeId], index: int = 0, *, keep: bool = False) -> None:
        """Let one message of a link arrive; a copy of it may stay under way."""
        queue = self.under_way[ends]
        msg = queue[index]
        if not keep:
            del queue[index]
            if not queue:
                del self.under_way[ends]
        src, to = ends
        self.machines[to].message_handlers()[type(msg)](src, msg, self.now)
        self.settle(to)

    def lose(self, ends: tuple[NodeId, NodeId], index: int = 0) -> None:
        """One message never arrives."""
        queue = self.under_way[ends]
        del queue[index]
        if not queue:
            del self.under_way[ends]

    def calm(self) -> None:
        """Everything that is under way arrives, the longest waiting link first."""
        while self.under_way:
            self.deliver(next(iter(self.under_way)))

    def pass_time(self, seconds: float) -> None:
        """Fire what comes due, each at its time; messages arrive in between."""
        end = self.now + seconds
        while True:
            timers = [
                (at, name, key)
                for name in self.machines
                for key, at in self.effects[name].timers.items()
            ]
            due = min(timers, key=lambda timer: timer[:2], default=None)
            if due is None or due[0] > end:
                break
            self.now = max(self.now, due[0])
            del self.effects[due[1]].timers[due[2]]
            self.machines[due[1]].on_timer(due[2], self.now)
            self.settle(due[1])
        self.now = end

    def run(self, seconds: float, step: float = 0.05) -> None:
        """Time in which everything arrives."""
        end = self.now + seconds
        while self.now < end:
            self.calm()
            self.pass_time(step)
        self.calm()

    # -- what tests do ------------------------------------------------------------------------

    def register(self, at: NodeId, name: str, description: str, item: Item | None = None) -> str:
        """A dynamic resource with those values."""
        wanted = Constraint.parse(description)
        named = self.machines[at].register(name, wanted, ModelType.DYNAMIC, item, 0.0, self.now)
        self.settle(at)
        return named

    def update(self, at: NodeId, name: str, item: Item) -> None:
        """Other values."""
        self.machines[at].update(name, item, self.now)
        self.settle(at)

    def find(self, at: NodeId, query: str, limit: int = 0, timeout: float | None = None) -> int:
        """Begin a find."""
        number = self.machines[at].find(Constraint.parse(query), limit, False, timeout, self.now)
        self.settle(at)
        return number

    def ended(self, number: int) -> FindEnded | None:
        """How a find ended; each does so once."""
        ends = [
            event
            for _, event in self.heard
            if isinstance(event, FindEnded) and event.find == number
        ]
        assert len(ends) <= 1, ends
        return ends[0] if ends else None

    def found(self, number: int) -> list[str]:
        """The ids of what a complete find found."""
        end = self.ended(number)
        assert end is not None, "it has not ended"
        assert end.complete, end
        ids = [resource.id for resource in end.resources]
        assert len(set(ids)) == len(ids), ids
        return sorted(ids)
