"""Zones of peers on the hosts of a lab, and waiting for what their directories show."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from nodes.control import ControlError
from tests.netns.host import Host
from tests.netns.peers import HASTY, LOOK_EVERY, LabPeer, names, start_peers
from tests.netns.waiting import until

# Delegates and directories follow as hastily as membership does.
HASTY_ZONES = (
    *HASTY,
    "zones.settle=0.5",
    "zones.publish_pause=0.2",
    "zones.dismiss_after=0.5",
    "zones.seek_period=1.0",
    "zones.table_period=0.5",
    "zones.vanish_after=2.0",
)
DELEGATES = 2  # of a zone, if it has as many members


def start_zones(
    zones: Mapping[str, Sequence[Host]], *, seed: Host, keys: Path
) -> dict[str, list[LabPeer]]:
    """Start all zones at once; every peer is told of one host, also those of other zones."""
    return {
        zone: start_peers(hosts, seeds=[seed], keys=keys, sets=HASTY_ZONES, zone=zone)
        for zone, hosts in zones.items()
    }


def directory(peer: LabPeer) -> dict[str, dict[str, Any]]:
    """The zones that a peer knows, by name; none while it starts."""
    try:
        return {zone["name"]: zone for zone in peer.ask("zones")["zones"]}
    except ControlError:
        assert peer.process.is_running, peer
        return {}


def await_zones(peers: Collection[LabPeer], zones: Mapping[str, Collection[LabPeer]]) -> None:
    """Wait until each of the peers knows exactly these zones, their sizes and their delegates."""
    seen: dict[str, dict[str, dict[str, Any]]] = {}

    def is_right(told: dict[str, dict[str, Any]]) -> bool:
        return told.keys() == zones.keys() and all(
            told[zone]["size"] == len(members)
            and len(told[zone]["delegates"]) == min(DELEGATES, len(members))
            and set(told[zone]["delegates"]) <= names(members)
            for zone, members in zones.items()
        )

    def all_agree() -> bool:
        seen.update({peer.name: directory(peer) for peer in peers})
        return all(is_right(told) for told in seen.values())

    try:
        until(all_agree, every=LOOK_EVERY, what="all directories")
    except AssertionError as error:
        wanted = {zone: sorted(names(members)) for zone, members in zones.items()}
        error.add_note(f"wanted {wanted} in all directories, and saw {seen}")
        raise


def delegates_of(zone: Sequence[LabPeer]) -> list[LabPeer]:
    """Who stands for a zone, as its members say."""
    told = zone[0].ask("zones")["delegates"]
    return [peer for peer in zone if peer.name in told]
