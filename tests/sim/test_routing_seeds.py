"""Runs that failed once: each mended the protocol and stays."""

from __future__ import annotations

import pytest

from nodes.scenarios.running import run_scenario


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_a_clock_that_jumps_ahead_does_not_make_a_member_forget(seed: int) -> None:
    assert run_scenario("routing-clocks", seed, wire=seed % 4 == 0).failure == ""


@pytest.mark.parametrize("seed", [4, 12, 17])
def test_a_member_alone_in_its_arc_is_reached_in_spite_of_loss(seed: int) -> None:
    assert run_scenario("routing-loss", seed, wire=seed % 4 == 0).failure == ""


@pytest.mark.parametrize("seed", [85, 350, 400, 435])
def test_a_large_zone_sums_up_in_spite_of_loss(seed: int) -> None:
    assert run_scenario("routing-loss", seed, 40).failure == ""
