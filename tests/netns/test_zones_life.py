"""Zones come and go with their hosts."""

from __future__ import annotations

from pathlib import Path

from tests.netns.lab import Lab
from tests.netns.peers import LabPeer, removals
from tests.netns.zones import await_zones, directory, start_zones


def test_a_zone_dies_and_vanishes_and_another_appears(lab: Lab, zone_keys: Path) -> None:
    a, b, c, d, e = lab.hosts("a", "b", "c", "d", "e")
    zones = start_zones({"east": [a, b, c], "west": [d, e]}, seed=a, keys=zone_keys)
    east = zones["east"]
    await_zones([*east, *zones["west"]], zones)
    for peer in zones.pop("west"):
        peer.kill()
    await_zones(east, zones)
    # The seed is any peer of the overlay: the newcomers find each other, and all zones.
    zones |= start_zones({"north": [d, e]}, seed=b, keys=zone_keys)
    await_zones([*east, *zones["north"]], zones)
    told = [zone_members(east[0], zone) for zone in zones]
    assert told == [["a", "b", "c"], ["d", "e"]]
    assert removals(east) == {}


def zone_members(peer: LabPeer, zone: str) -> list[str]:
    """Who is in a zone, as a peer finds out by asking."""
    assert zone in directory(peer)
    return sorted(member["name"] for member in peer.ask("zone-members", zone=zone)["members"])
