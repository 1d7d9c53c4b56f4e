"""A broker that keeps and a subscriber under test, and shorter words for what others tell them."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from overlay.ids import NodeId
from overlay.predicates import Constraint
from overlay.protocol import Message
from protocols.content import Delivered, entry_id
from protocols.mobility import Follower, Keeper, KeepingSettings
from protocols.mobility.keeping_messages import Batch, Kept, Want
from tests.recording import Emit, RecordingEffects, Send, Store, TickEnd

SETTINGS = KeepingSettings()
HOT = Want("hot", Constraint.parse("celsius > 30").wire())


class Routing:
    """Content-based routing as a keeper sees it: what it subscribed to."""

    def __init__(self, me: NodeId) -> None:
        self.me = me
        self.wanted: dict[str, Constraint] = {}

    def subscribe(self, name: str, constraint: Constraint, now: float, *, model: str = "") -> str:
        """As the router does."""
        self.wanted[name] = constraint
        return entry_id(self.me, name)

    def unsubscribe(self, name: str, now: float) -> None:
        """As the router does."""
        del self.wanted[name]

    def neighbours(self) -> tuple[NodeId, ...]:
        """None."""
        return ()


class Node:
    """One machine, and what it does."""

    def __init__(
        self,
        kind: type[Keeper | Follower] = Keeper,
        settings: KeepingSettings = SETTINGS,
        kept: Mapping[bytes, bytes] | None = None,
    ) -> None:
        self.me = "b1" if kind is Keeper else "sue"
        self.effects = RecordingEffects()
        self.routing = Routing(self.me)
        self.disk: dict[bytes, bytes] = dict(kept or {})
        self.waiting: list[Any] = []
        self.now = 100.0
        views = {"content": self.routing} if kind is Keeper else {}
        self.machine = kind(self.me, self.effects, Random(1), settings, **views)  # type: ignore[arg-type]
        self.machine.on_start(self.now, dict(self.disk))
        self.restored = self.done()

    @property
    def keeper(self) -> Keeper:
        """The machine of a broker."""
        assert isinstance(self.machine, Keeper)
        return self.machine

    @property
    def follower(self) -> Follower:
        """The machine of a subscriber."""
        assert isinstance(self.machine, Follower)
        return self.machine

    def done(self) -> list[Any]:
        """What it said, to the end of the tick: (to, message), and events."""
        found: list[Any] = []
        while recorded := self.effects.drain():
            for effect in recorded:
                if isinstance(effect, Send):
                    found.append((effect.to, effect.msg))
                elif isinstance(effect, Emit):
                    found.append(effect.event)
                elif isinstance(effect, TickEnd):
                    effect.callback(self.now)
                elif isinstance(effect, Store):
                    self.waiting.append(effect.token)
                    if effect.value is None:
                        self.disk.pop(effect.key, None)
                    else:
                        self.disk[effect.key] = effect.value
        self.machine.check_invariants()
        return found

    def stored(self) -> list[Any]:
        """Everything written is on disk."""
        tokens, self.waiting = self.waiting, []
        for token in tokens:
            self.machine.on_stored(token, self.now)
        return self.done()

    def hear(self, src: NodeId, msg: Message) -> list[Any]:
        """A message comes."""
        self.machine.message_handlers()[type(msg)](src, msg, self.now)
        return self.done()

    def delivered(self, sequence: int, stand_in: str = "", epoch: int = 1) -> list[Any]:
        """Content-based routing delivers for a stand-in: the only one, unless it is named."""
        name = stand_in or next(iter(self.routing.wanted))
        event = Delivered(
            entry_id(self.me, name), "ann/t", epoch, sequence, {"celsius": 30 + sequence}
        )
        self.machine.event_handlers()[Delivered](event, self.now)
        return self.done()

    def later(self, seconds: float) -> list[Any]:
        """Time passes, and its timers come due."""
        end = self.now + seconds
        found: list[Any] = []
        while due := [(at, key) for key, at in self.effects.timers.items() if at <= end]:
            self.now, key = min(due, key=lambda one: one[0])
            del self.effects.timers[key]
            self.machine.on_timer(key, self.now)
            found += self.done()
        self.now = end
        return found


def kept(sequence: int, epoch: int = 1) -> Kept:
    """What a keeper makes of it."""
    return Kept("hot", "ann/t", epoch, sequence, {"celsius": 30 + sequence})


def batch(
    visit: int, start: int, *entries: Kept, taken: int = 1, oldest: int = 1, lost: int = 0,
    reason: str = "",
) -> Batch:  # fmt: skip
    """A part of sue's box."""
    return Batch("sue", visit, start, taken, oldest, lost, reason, entries)
