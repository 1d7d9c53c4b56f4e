"""Runs that failed once: each mended the protocol and stays."""

from __future__ import annotations

import pytest

from nodes.scenarios.running import run_scenario


@pytest.mark.parametrize("seed", [1, 2])
def test_who_chose_a_member_that_restarted_keeps_the_degree_bound(seed: int) -> None:
    assert run_scenario("topology-narrow", seed).failure == ""


def test_a_large_zone_closes_its_ring_in_spite_of_loss() -> None:
    assert run_scenario("topology-loss", 5, 48).failure == ""
