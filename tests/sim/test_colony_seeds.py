"""Runs of colonies that failed once: each mended the protocol and stays."""

import pytest

from nodes.scenarios.running import run_scenario


@pytest.mark.parametrize(
    ("scenario", "seed", "nodes", "wire"),
    [
        ("colony-reliable", 260, 40, True),  # time was halved at each of nine levels
        ("colony-loss", 132, 10, True),  # who went home in mid-request was taken to have rejected
        ("colony-basic", 255, 48, False),  # who answers late is heard until the search ends
        ("colony-basic", 280, 48, False),
    ],
)
def test_it_goes_well_now(scenario: str, seed: int, nodes: int, wire: bool) -> None:
    assert run_scenario(scenario, seed, nodes, wire=wire).failure == ""
