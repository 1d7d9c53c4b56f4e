"""Many zones at once: they form, lose delegates and whole zones, and heal after a partition."""

from __future__ import annotations

import pytest

from bench.membership_scale import PEAK_BAR, World, enter, measure
from bench.report import Report


def test_six_zones_lose_delegates_and_a_whole_zone() -> None:
    world = World(60, 6)
    world.settle()
    world.kill_delegates(2)
    world.settle()
    world.kill_zone("z5")
    world.settle()
    assert [entry.name for entry in world.zones("s0").zones()] == ["z0", "z1", "z2", "z3", "z4"]


def test_the_benchmark_tells_how_a_world_fared() -> None:
    found = measure(60, 6, cut=60.0)
    assert found.parted < 60.0
    report = Report("membership", {})
    enter(report, found)
    assert report.results["60 nodes in 6 zones, formed"].median == found.formed
    assert [bar.holds for bar in report.bars] == [True, True]


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "zones"), [(1000, 20), (10_000, 100)])
def test_many_zones_form_lose_delegates_and_heal(nodes: int, zones: int) -> None:
    assert measure(nodes, zones).peak < PEAK_BAR
