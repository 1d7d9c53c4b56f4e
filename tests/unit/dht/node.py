"""One table machine with recorded effects, in a zone that a test makes up."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import msgspec

from overlay.ids import NodeId, Ring
from overlay.protocol import Message
from protocols.dht import Dht, DhtSettings, Operation, Outcome
from protocols.dht.groups import Group, Member
from protocols.dht.interface import DHT, May
from protocols.dht.messages import Promise, TableKnown
from protocols.membership.interface import Record, Value
from protocols.membership.records import State
from tests.recording import RecordingEffects, Send, TickEnd

TABLE = 77
LIVES = {"a": 1, "b": 2, "c": 3}
MEMBERS = tuple(Member(name, life, "z") for name, life in LIVES.items())
NEWCOMER = Member("d", 4, "z")
KNOWN = TableKnown(TABLE, 0, 3, MEMBERS)  # one shard: all three keep it
ORDER = tuple(Ring(LIVES))  # as the ring has them: the first is the preferred leader


class View:
    """A view whose members are all alive."""

    zone = "z"
    version = 1

    def __init__(self, me: NodeId, names: tuple[NodeId, ...]) -> None:
        self.me = me
        self.shown: dict[NodeId, dict[str, Value]] = {name: {} for name in names}

    def __len__(self) -> int:
        return len(self.shown)

    def __contains__(self, name: object) -> bool:
        return name in self.shown

    def members(self) -> tuple[NodeId, ...]:
        return tuple(Ring(self.shown))

    def record(self, name: NodeId) -> Record | None:
        return Record(name, 1, State.ALIVE, 1, 1) if name in self.shown else None

    def ring(self) -> Ring:
        return Ring(self.shown)

    def attributes(self, name: NodeId) -> Mapping[str, Value]:
        return self.shown.get(name, {})

    def roles(self, name: NodeId) -> tuple[str, ...]:
        said = str(self.attributes(name).get("roles", ""))
        return tuple(word for word in said.split(",") if word)


class Base:
    """A membership that only remembers attributes."""

    def __init__(self, view: View) -> None:
        self.view = view

    def set_attribute(self, key: str, value: Value, now: float) -> None:
        self.view.shown[self.view.me][key] = value

    def remove_attribute(self, key: str, now: float) -> None:
        del self.view.shown[self.view.me][key]


class Node:
    """`a`, `b` or `c` of a table with one shard, whose group is all three."""

    def __init__(
        self,
        me: NodeId = ORDER[0],
        *,
        may: May | None = None,
        kept: Mapping[bytes, bytes] | None = None,
        founders: tuple[NodeId, ...] = ("a", "b", "c"),
        joins: bool = True,
        **settings: Any,
    ) -> None:
        self.me = me
        self.effects = RecordingEffects()
        self.view = View(me, founders)
        chosen = DhtSettings(serve=True, shard_bits=0)
        self.dht = Dht(
            me,
            self.effects,
            Random(1),
            msgspec.structs.replace(chosen, **settings),
            base=Base(self.view),
            may=may,
        )
        self.handlers = self.dht.message_handlers()
        self.now = 1.0
        self.dht.on_start(self.now, kept or {})
        self.dht._core.life = LIVES[me]
        for name in founders:
            self.view.shown[name][DHT] = f"{LIVES[name]:x}:{TABLE:x}"
        if joins:
            members = tuple(one for one in MEMBERS if one.name in founders)
            self.take("b" if me != "b" else "a", TableKnown(TABLE, 0, 3, members))
            self.fire("review")
        self.effects.drain()

    @property
    def group(self) -> Group:
        return self.dht.shards()[0].group

    def fire(self, key: str) -> None:
        """Let a timer ring now."""
        self.now = max(self.now, self.effects.timers.pop(key))
        self.dht.on_timer(key, self.now)

    def take(self, src: NodeId, message: Message) -> None:
        self.handlers[type(message)](src, message, self.now)

    def ask(self, operation: Operation) -> list[Outcome]:
        """Submit; the list gets the outcome."""
        outcomes: list[Outcome] = []
        self.dht.submit(operation, outcomes.append, self.now)
        return outcomes

    def end_tick(self) -> None:
        """Run what was put off, until nothing is left."""
        while True:
            recorded = self.effects.drain()
            self.sent = [*getattr(self, "sent", []), *recorded]
            callbacks = [one.callback for one in recorded if isinstance(one, TickEnd)]
            if not callbacks:
                return
            for callback in dict.fromkeys(callbacks):
                callback(self.now)

    def sends(self) -> list[Send]:
        """End the tick, and return what was sent since the last time."""
        self.end_tick()
        sent, self.sent = [one for one in self.sent if isinstance(one, Send)], []
        return sent

    def lead(self) -> int:
        """Let it win its election with the promise of one other; return its ballot."""
        shard = self.dht.shards()[0]
        assert shard.bid is not None, "it does not stand"
        ballot = shard.bid.ballot
        other = next(name for name in self.group.names() if name != self.me)
        promise = msgspec.structs.replace(shard.bid.promises[self.me], digest=shard.shelf.digest)
        self.take(other, Promise(TABLE, (promise,)))
        assert shard.reign is not None
        self.sends()
        return ballot
