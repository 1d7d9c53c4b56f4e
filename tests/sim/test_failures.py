"""A failure is loud, names the node, and gives the one line that replays it."""

from __future__ import annotations

import pytest

from nodes.scenarios.registry import Entry
from nodes.scenarios.running import replay_line, run_scenario
from overlay.errors import InvariantViolation
from overlay.scenario import Scenario, Stage, Until
from overlay.sim import NetworkModel, SimulationFailed
from tests.sim.actors import Witness, witness
from tests.sim.world import World


def planted(stage: Stage) -> Scenario:
    """Break an invariant in the middle of a run."""
    stage.start("a", witness)
    stage.start("b", witness)
    stage.protocol("b", Witness).broken = True
    stage.call("a", lambda host: host.protocol(Witness).tell, "b", 1)
    yield Until(lambda: False, within=1, what="nothing")


def in_vain(stage: Stage) -> Scenario:
    """Wait for what never comes."""
    stage.start("a", witness)
    yield Until(lambda: False, within=1, what="pigs that fly")


def entry_of(script: object) -> Entry:
    return Entry("planted", script, 2, 2, (), NetworkModel(), False)  # type: ignore[arg-type]


def test_a_planted_violation_prints_its_replay_line() -> None:
    result = run_scenario(entry_of(planted), seed=77, nodes=2)
    assert not result.passed
    assert "on b: b was broken on purpose" in result.failure
    assert "replay: overlay sim planted --seed 77 --nodes 2" in result.failure
    assert result.replay == replay_line("planted", 77, 2)


def test_a_wait_in_vain_says_what_it_waited_for() -> None:
    result = run_scenario(entry_of(in_vain), seed=1, nodes=2)
    assert "no pigs that fly within 1 s" in result.failure


def test_a_global_check_is_asked_after_every_step() -> None:
    world = World("a", "b")
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if world.at_node("b").notes == [1, 2]:
            raise InvariantViolation("both arrived")

    world.checks.append(check)
    world.tell("a", "b", 1, 2)
    with pytest.raises(SimulationFailed, match="both arrived"):
        world.run_for(1)
    assert asked >= 4


def test_checks_can_be_thinned_out() -> None:
    world = World("a", "b", check_every=10)
    asked = []
    world.checks.append(lambda: asked.append(world.now))
    world.tell("a", "b", *range(100))
    world.run_for(1)
    assert 15 <= len(asked) <= 25


def test_an_error_of_a_protocol_is_a_failure_with_a_replay_line() -> None:
    world = World("a", "b", replay="overlay sim x --seed 1 --nodes 2")
    world.at(1.0, lambda: world.at_node("a").heard[5])  # type: ignore[arg-type]
    with pytest.raises(SimulationFailed, match="IndexError"):
        world.run_for(2)


def test_a_protocol_that_spins_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overlay.sim.agenda.SPIN_CAP", 1000)
    world = World("a")

    def again() -> None:
        world.at(world.now, again)

    world.at(1.0, again)
    with pytest.raises(SimulationFailed, match="time stands still"):
        world.run_for(2)
