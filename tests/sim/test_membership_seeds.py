"""Runs that failed once: each mended the protocol and stays."""

from __future__ import annotations

import pytest

from nodes.scenarios.running import run_scenario

LARGE = 32


@pytest.mark.parametrize("seed", [10, 15, 35, 45, 55, 65, 70])
def test_a_zone_does_not_bury_a_slow_member_under_its_questions(seed: int) -> None:
    assert run_scenario("membership-slow", seed, LARGE).failure == ""


@pytest.mark.parametrize("seed", [95, 100, 105, 110, 125, 135, 155])
def test_the_contacts_of_a_zone_get_no_more_than_others(seed: int) -> None:
    assert run_scenario("membership-slow", seed, LARGE).failure == ""
