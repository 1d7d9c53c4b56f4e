"""Topics in the simulator: runs that failed once stay, and a seed says all of a run."""

from __future__ import annotations

import pytest

from nodes.scenarios.running import run_scenario

FAILED_ONCE = [
    ("topics-duplication", 16),
    ("topics-reordering", 17),
    ("topics-reordering", 24),
    ("topics-long-partition", 3),
    ("topics-long-partition", 7),
    ("topics-gateway-crash", 1),
    ("topics-gateway-crash", 2),
    ("topics-gateway-crash", 4),
    ("topics-subscriber-crash", 107),
    ("topics-subscriber-crash", 128),
]


@pytest.mark.parametrize(("name", "seed"), FAILED_ONCE)
def test_what_failed_once_passes(name: str, seed: int) -> None:
    assert run_scenario(name, seed, wire=seed % 4 == 0).failure == ""


@pytest.mark.parametrize("name", ["topics-slow", "topics-storm", "topics-routes", "topics-loss"])
def test_the_same_seed_gives_the_same_trace_with_and_without_the_codec(name: str) -> None:
    runs = [run_scenario(name, 7, wire=wire) for wire in (False, True)]
    assert [run.failure for run in runs] == ["", ""]
    assert len({run.trace_hash for run in runs}) == 1
