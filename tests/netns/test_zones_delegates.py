"""Delegates on real hosts: a dead one is replaced, also while packets are lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.netns.lab import Lab
from tests.netns.peers import names
from tests.netns.zones import await_zones, delegates_of, start_zones


@pytest.mark.parametrize("loss", [0, 10])
def test_a_killed_delegate_is_replaced_and_the_other_stays(
    lab: Lab, zone_keys: Path, loss: int
) -> None:
    a, b, c, d, e = lab.hosts("a", "b", "c", "d", "e")
    lab.loss(loss)
    zones = start_zones({"east": [a, b, c], "west": [d, e]}, seed=a, keys=zone_keys)
    peers = [*zones["east"], *zones["west"]]
    await_zones(peers, zones)
    victim, other = delegates_of(zones["east"])
    victim.kill()
    zones["east"].remove(victim)
    peers.remove(victim)
    await_zones(peers, zones)
    assert names(delegates_of(zones["east"])) == names(zones["east"])
    dismissed = [event["delegate"] for event in other.events("delegate-dismissed")]
    assert dismissed == [victim.name]  # the one who lived served all along
