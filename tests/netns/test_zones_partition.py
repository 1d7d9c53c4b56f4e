"""Zones that cannot reach each other: each side goes on alone, and finds the other again."""

from __future__ import annotations

from pathlib import Path

from tests.netns.lab import Lab
from tests.netns.peers import await_views, lives, removals
from tests.netns.zones import await_zones, delegates_of, start_zones


def test_zones_part_replace_a_delegate_and_meet_again(lab: Lab, zone_keys: Path) -> None:
    a, b, c, d, e = lab.hosts("a", "b", "c", "d", "e")
    zones = start_zones({"east": [a, b, c], "west": [d, e]}, seed=a, keys=zone_keys)
    east, west = zones["east"], zones["west"]
    await_zones([*east, *west], zones)
    lab.partition([a, b, c], [d, e])
    await_zones(east, {"east": east})
    await_zones(west, {"west": west})
    await_views(west, west)
    assert removals(west) == {}  # nobody of one's own zone went with the others
    victim, _ = delegates_of(east)
    victim.kill()
    east.remove(victim)
    await_zones(east, {"east": east})
    before = lives([*east, *west])
    lab.heal()
    await_zones([*east, *west], zones)
    assert lives([*east, *west]) == before
