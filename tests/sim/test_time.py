"""Timers and clocks: replacing, cancelling, offset, drift, jumps, and sweeping what is stale."""

from __future__ import annotations

import pytest

from overlay.sim import simulator as simulator_module
from tests.sim.actors import witness
from tests.sim.world import World


def remind(world: World, name: str, key: str, after: float) -> None:
    world.call(name, world.at_node(name).remind, key, after)


def test_setting_a_timer_again_replaces_it_and_cancelling_forgets_it() -> None:
    world = World("a")
    remind(world, "a", "x", 1.0)
    remind(world, "a", "x", 2.0)
    remind(world, "a", "y", 1.0)
    world.call("a", world.at_node("a").forget, "y")
    world.call("a", world.at_node("a").forget, "never set")
    world.run_for(5)
    assert world.at_node("a").fired == [("x", 2.0)]


def test_a_timer_in_the_past_fires_now() -> None:
    world = World("a")
    world.run_for(10)
    remind(world, "a", "x", -5.0)
    world.run_for(0)
    assert world.at_node("a").fired == [("x", 10.0)]


@pytest.mark.parametrize(("offset", "drift"), [(1e9, 0.0), (0.0, 0.1), (-5e3, -0.3), (7.7, 1e-6)])
def test_a_timer_follows_the_nodes_own_clock_and_is_never_early(
    offset: float, drift: float
) -> None:
    world = World()
    world.add_node("a", witness, offset=offset, drift=drift)
    for number in range(50):
        remind(world, "a", f"t{number}", 0.1 + number * 0.37)
    due = {key: entry[5] for key, entry in world.node("a").effects["witness"].timers.items()}
    world.run_for(60)
    fired = world.at_node("a").fired
    assert len(fired) == 50
    assert all(due[key] <= now < due[key] + 1e-3 for key, now in fired)


def test_drift_adds_up() -> None:
    world = World()
    world.add_node("fast", witness, drift=0.5)
    remind(world, "fast", "x", 3.0)
    world.run_for(1.99)
    assert world.at_node("fast").fired == []
    world.run_for(0.02)
    assert len(world.at_node("fast").fired) == 1


def test_a_clock_that_jumps_takes_its_timers_along() -> None:
    world = World("a", "b")
    for name in "ab":
        remind(world, name, "x", 100.0)
    world.jump_clock("a", 99.0)
    world.jump_clock("b", -50.0)
    world.run_for(1.5)
    assert [key for key, _ in world.at_node("a").fired] == ["x"]
    world.run_for(148)
    assert world.at_node("b").fired == []
    world.run_for(1)
    assert world.at_node("b").fired == [("x", 100.0)]


def test_stale_timers_are_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator_module, "SWEEP_FROM", 100)
    world = World("a")
    for _ in range(1000):
        remind(world, "a", "x", 50.0)
    assert len(world.agenda) == 1000
    for _ in range(3):
        remind(world, "a", "soon", 0.1)
        world.run_for(1)
    assert len(world.agenda) < 10
    world.run_for(60)
    assert [key for key, _ in world.at_node("a").fired] == ["soon", "soon", "soon", "x"]


def test_run_until_stops_when_it_holds_or_at_the_deadline() -> None:
    world = World("a")
    remind(world, "a", "x", 1.0)
    assert world.run_until(lambda: bool(world.at_node("a").fired), 5.0)
    assert 1.0 <= world.now < 1.02
    assert not world.run_until(lambda: False, 2.0)
    assert 3.0 <= world.now < 3.03
