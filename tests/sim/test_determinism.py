"""One seed, one trace hash: under any PYTHONHASHSEED, with the codec or without."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from nodes.scenarios.registry import all_scenarios
from nodes.scenarios.running import run_scenario
from overlay.sim import Loss
from overlay.sim.trace import TraceLine
from tests.sim.world import World

RUN = """
import json, sys
from nodes.scenarios.registry import all_scenarios
from nodes.scenarios.running import run_scenario
family = [entry for entry in all_scenarios() if entry.name.startswith(sys.argv[1] + "-")]
print(json.dumps({entry.name: run_scenario(entry, 5).trace_hash for entry in family}))
"""
FAMILIES = sorted({entry.name.partition("-")[0] for entry in all_scenarios()})


def hashes_under(hash_seed: str, family: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, family],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_two_hash_seeds_give_one_trace_hash(family: str) -> None:
    first, second = hashes_under("1", family), hashes_under("4711", family)
    assert first == second
    assert len(set(first.values())) == len(first) > 5


@pytest.mark.parametrize("name", [entry.name for entry in all_scenarios()])
def test_the_codec_changes_nothing(name: str) -> None:
    direct, through_codec = (run_scenario(name, 3, wire=wire) for wire in (False, True))
    assert direct.passed, direct.failure
    assert direct.trace_hash == through_codec.trace_hash


def test_another_seed_gives_another_trace() -> None:
    assert run_scenario("echo-loss", 1).trace_hash != run_scenario("echo-loss", 2).trace_hash


def one_note(number: int, *, late: float = 0.0) -> str:
    world = World("a", "b")
    world.run_for(late)
    world.tell("a", "b", number)
    world.run_for(1)
    return world.hash.hexdigest()


def test_the_hash_sees_content_and_time() -> None:
    assert one_note(1) == one_note(1)
    assert one_note(1) != one_note(2)
    assert one_note(1) != one_note(1, late=1e-9)


def test_looking_changes_nothing() -> None:
    lines: list[TraceLine] = []
    seen = run_scenario("echo-loss", 1, reader=lines.append)
    assert seen.trace_hash == run_scenario("echo-loss", 1, check_every=0).trace_hash
    assert len(lines) >= seen.steps // 2


def test_a_fault_rule_that_never_applies_changes_no_arrival() -> None:
    def arrivals(*, with_rule: bool) -> list[tuple[float, str, int]]:
        world = World("a", "b")
        if with_rule:
            world.faults.add(Loss(1.0, nodes=["z"]))
        world.tell("a", "b", *range(20))
        world.run_for(1)
        return world.at_node("b").heard

    assert arrivals(with_rule=True) == arrivals(with_rule=False)
