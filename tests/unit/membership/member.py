"""One member under test: inputs go in, the recorded effects come out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from random import Random
from typing import Any

import pytest

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import Event, Message
from protocols.membership.config import MembershipSettings
from protocols.membership.machine import Membership
from protocols.membership.messages import Gossip, Ping
from protocols.membership.records import Record, State
from tests.recording import Emit, Recorded, RecordingEffects, Send

ZONE = "z"
BIRTH = 1_000_000  # ms; the first incarnation of everybody in these tests
NOW = BIRTH / 1000
STEP = 0.5  # s; a live node has an input at least so often
ALIVE, SUSPECT, DEAD, LEFT = State


def record(
    name: NodeId,
    state: State = ALIVE,
    incarnation: int = BIRTH,
    *,
    life: int = 1,
    born: int = BIRTH,
    accusers: tuple[NodeId, ...] = (),
    abrupt: bool = False,
) -> Record:
    """A claim, as short as a test wants to say it."""
    return Record(name, incarnation, state, life, born, (), accusers, abrupt)


class Member:
    """Starts at `NOW` under the name "me"; its clock goes on only when told."""

    def __init__(
        self,
        *others: NodeId,
        settings: MembershipSettings | None = None,
        kept: Mapping[bytes, bytes] | None = None,
        seed: int = 1,
        **views: Any,
    ) -> None:
        self.now = NOW
        self.effects = RecordingEffects()
        self.membership = Membership(
            "me",
            self.effects,
            Random(seed),
            settings or MembershipSettings(),
            zone=ZONE,
            **views,
        )
        self.membership.on_start(self.now, kept or {})
        self.started = self.effects.drain()
        self.life = self.view("me").life
        self._handlers = self.membership.message_handlers()
        self._events = self.membership.event_handlers()
        if others:
            self.hear(others[0], Gossip(tuple(record(name) for name in others)))
            self.gossip_all()

    def gossip_all(self) -> None:
        """Pass all news on, so that later packets hold later news only."""
        while "gossip" in self.effects.timers:
            self.ring("gossip")

    def view(self, name: NodeId) -> Record:
        """What it knows of somebody."""
        known = self.membership.view.record(name)
        assert known is not None, f"{name} is unknown"
        return known

    def hear(self, src: NodeId, message: Message) -> list[Recorded]:
        """Hand it a message."""
        try:
            self._handlers[type(message)](src, message, self.now)
        finally:
            self.membership.check_invariants()
            self.membership.audit()
        return self.effects.drain()

    def bury(self, src: NodeId, *names: NodeId) -> list[Recorded]:
        """Hand it a verdict about members that were not suspected, and let it see for itself."""
        effects = self.hear(src, Gossip(tuple(record(name, DEAD) for name in names)))
        asked = sent(effects, Ping)
        assert [one.to for one in asked] == list(names), "each must be asked"
        for one in asked:
            assert isinstance(one.msg, Ping)
            effects += self.ring(("wait", one.msg.sequence))
        return effects

    def refusal(self, src: NodeId, message: Message) -> str:
        """Hand it a bad message; why it was refused. Its view must not change."""
        before = self.membership.view.version
        try:
            self._handlers[type(message)](src, message, self.now)
        except RemoteProtocolError as error:
            assert self.membership.view.version == before, "it changed the view"
            return error.reason
        return ""

    def tell(self, event: Event) -> list[Recorded]:
        """Hand it an event of the host."""
        self._events[type(event)](event, self.now)
        self.membership.check_invariants()
        return self.effects.drain()

    def wait(self, seconds: float) -> None:
        """Let time pass in which nothing happens to it."""
        until = self.now + seconds
        while self.now < until:
            self.now = min(until, self.now + STEP)
            self.membership.on_timer("nothing", self.now)

    def ring(self, key: Hashable) -> list[Recorded]:
        """Let time pass until that timer is due, as the driver does."""
        while self.effects.timers[key] - self.now > STEP:
            self.now += STEP
            self.membership.on_timer("nothing", self.now)  # or the clock would seem to jump
        self.now = max(self.now, self.effects.timers.pop(key))
        self.membership.on_timer(key, self.now)
        self.membership.check_invariants()
        return self.effects.drain()


def about(seconds: float) -> Any:
    """That number, whatever the sums of floats made of it."""
    return pytest.approx(seconds)


def sent(effects: list[Recorded], kind: type[Message]) -> list[Send]:
    """The messages of one kind."""
    return [one for one in effects if isinstance(one, Send) and isinstance(one.msg, kind)]


def events(effects: list[Recorded]) -> list[Event]:
    """What siblings and the application were told."""
    return [one.event for one in effects if isinstance(one, Emit)]
