"""Runs of the time service that once went wrong, kept."""

import pytest

from nodes.scenarios.running import run_scenario


@pytest.mark.parametrize(
    ("scenario", "seed", "nodes"),
    [
        ("time-liar", 15, 8),  # a vague source led the only one that could follow nobody else
        ("time-liar", 22, 8),
        (
            "time-liar",
            36,
            8,
        ),  # and a clock that says now this, now that, passed as one that was set
        ("time-clock-jumps", 1, 8),  # samples from before and after a jump in one young filter
        ("time-clock-jumps", 17, 8),
        ("time-start", 0, 24),  # voters who became seniors were asked beside all others
        ("time-root-crash", 0, 24),
        ("time-newcomers", 0, 24),
        ("time-bad-network", 151, 8),  # half of a burst was lost, and its end taken for its worth
        ("time-bad-network", 182, 8),  # a few lost polls made a second root, without an error
    ],
)
def test_it_goes_well_now(scenario: str, seed: int, nodes: int) -> None:
    result = run_scenario(scenario, seed, nodes)
    assert result.passed, result.failure
