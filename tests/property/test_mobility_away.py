"""Any order of moves, losses and silences: all comes once and in order, or a gap is told."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from overlay.ids import NodeId
from overlay.predicates import Constraint
from overlay.protocol import Message
from protocols.content import Delivered, entry_id
from protocols.mobility import Follower, Gap, Keeper, KeepingSettings, Received
from protocols.mobility.keeping_messages import MAX_PLACES
from tests.recording import Emit, RecordingEffects, Send, TickEnd
from tests.unit.mobility.keeping import Routing

SETTINGS = KeepingSettings(
    beat=0.5, lease=2.0, overlap=1.0, resend=0.3, fetch_within=3600.0, window=4, batch_bytes=1024
)
BROKERS = ("b0", "b1", "b2")
ACTS = (
    *("publish",) * 6,
    *("arrive",) * 14,
    *("lose", "copy", "time", "time", "move", "leave"),
)


class World:
    """Keepers whose routing is perfect, one subscriber, and links that may do anything."""

    def __init__(self, rng: Random, keeping: KeepingSettings) -> None:
        self.rng = rng
        self.now = 1000.0
        self.effects: dict[NodeId, RecordingEffects] = {}
        self.machines: dict[NodeId, Keeper | Follower] = {}
        self.routing = {name: Routing(name) for name in BROKERS}
        self.under_way: list[tuple[NodeId, NodeId, Message]] = []
        self.told: list[Received | Gap] = []
        self.published = 0
        for name in (*BROKERS, "sue"):
            effects = self.effects[name] = RecordingEffects()
            if name == "sue":
                self.machines[name] = Follower(name, effects, Random(1), keeping)
            else:
                content = self.routing[name]
                self.machines[name] = Keeper(name, effects, Random(1), keeping, content=content)  # type: ignore[arg-type]
        self.sue.subscribe("s", Constraint.parse("n >= 0"), self.now)

    @property
    def sue(self) -> Follower:
        sue = self.machines["sue"]
        assert isinstance(sue, Follower)
        return sue

    def settle(self, name: NodeId) -> None:
        while recorded := self.effects[name].drain():
            for effect in recorded:
                if isinstance(effect, Send):
                    self.under_way.append((name, effect.to, effect.msg))
                elif isinstance(effect, TickEnd):
                    effect.callback(self.now)
                elif isinstance(effect, Emit) and isinstance(effect.event, Received | Gap):
                    self.told.append(effect.event)
        self.machines[name].check_invariants()

    def publish(self) -> None:
        """All who want it get it; each in its own time."""
        self.published += 1
        for name, routing in self.routing.items():
            for stand_in in list(routing.wanted):
                event = Delivered(
                    entry_id(name, stand_in), "ann/t", 1, self.published, {"n": self.published}
                )
                self.machines[name].event_handlers()[Delivered](event, self.now)
            self.settle(name)

    def arrive(self, index: int) -> None:
        src, to, msg = self.under_way.pop(index)
        handler = self.machines[to].message_handlers().get(type(msg))
        if handler is not None:
            handler(src, msg, self.now)
            self.settle(to)

    def drain(self) -> None:
        while self.under_way:
            self.arrive(0)

    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        while True:
            due = [
                (at, name, repr(key), key)
                for name, effects in self.effects.items()
                for key, at in effects.timers.items()
                if at <= end
            ]
            if not due:
                break
            self.now, name, _, key = min(due)
            del self.effects[name].timers[key]
            self.machines[name].on_timer(key, self.now)
            self.settle(name)
        self.now = end

    def step(self) -> None:
        rng = self.rng
        act = rng.choice(ACTS)
        if act == "publish":
            self.publish()
        elif act == "time":
            self.pass_time(rng.choice((0.1, 0.5, 3.0)))
        elif act == "move" and len(self.sue._places()) < MAX_PLACES - 1:  # then it tells of a gap
            self.sue.settle(rng.choice(BROKERS), self.now)
            self.settle("sue")
        elif act == "leave":
            self.sue.leave(self.now)
            self.settle("sue")
        elif self.under_way:
            index = rng.randrange(len(self.under_way))
            if act == "lose":
                del self.under_way[index]
            elif act == "copy":
                self.under_way.append(self.under_way[index])
            else:
                self.arrive(index if rng.random() < 0.3 else 0)

    def come_home(self) -> None:
        """Links are good again; everything that is kept comes."""
        self.sue.settle(self.rng.choice(BROKERS), self.now)
        self.settle("sue")
        for _ in range(60):
            self.drain()
            self.pass_time(0.25)


def run(seed: int, steps: int, keeping: KeepingSettings) -> World:
    world = World(Random(seed), keeping)
    world.sue.settle("b0", world.now)
    world.settle("sue")
    world.drain()
    for _ in range(steps):
        world.step()
    world.come_home()
    return world


def numbers(world: World) -> list[int]:
    return [event.sequence for event in world.told if isinstance(event, Received)]


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 250))
def test_everything_comes_once_and_in_order(seed: int, steps: int) -> None:
    world = run(seed, steps, SETTINGS)
    assert [event for event in world.told if isinstance(event, Gap)] == []
    assert numbers(world) == list(range(1, world.published + 1))
    boxes = [box for name in BROKERS for box in world.machines[name].boxes()]  # type: ignore[union-attr]
    assert [(box.client, len(box.lines), box.by) for box in boxes] == [("sue", 0, 0)]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 250), most=st.integers(1, 6))
def test_what_a_bound_puts_out_is_told(seed: int, steps: int, most: int) -> None:
    world = run(seed, steps, replace(SETTINGS, max_kept=most))
    came = numbers(world)
    assert came == sorted(set(came))
    missing = world.published - len(came)
    told = sum(event.lost for event in world.told if isinstance(event, Gap))
    assert told >= missing, f"{missing} are missing, {told} were told"


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_is_no_idle_world(seed: int) -> None:
    world = run(seed, 250, SETTINGS)
    assert world.published > 20
    assert world.sue.counts.moves > 1
