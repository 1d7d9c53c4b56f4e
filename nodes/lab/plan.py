"""The peers that an inventory means: on which host, in which zone, at which port, and how."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nodes.lab.inventory import Host, Inventory
from nodes.lab.onhost.folder import PLACE

PEER = "peer"
SEEDS_OF_A_ZONE = 2  # peers, on different hosts, that everybody is told of
MOST_SEEDS = 8


class LabPeer(msgspec.Struct, frozen=True, kw_only=True):
    """One process of the lab."""

    name: str
    host: str
    zone: str
    role: str  # PEER, or one of the inventory's roles
    port: int

    @property
    def is_member(self) -> bool:
        """Whether it is counted in its zone: all but supervisors, who are in none."""
        return self.role != "supervisor"


def peers_of(host: Host) -> list[LabPeer]:
    """`h1-1`, `h1-2`, … and one for each role, `h1-broker`; ports follow each other."""
    roles = [(str(number + 1), PEER) for number in range(host.peers)]
    roles += [(role, role) for role in host.roles]
    return [
        LabPeer(
            name=f"{host.name}-{suffix}",
            host=host.name,
            zone=host.zones[place % len(host.zones)],
            role=role,
            port=host.port + place,
        )
        for place, (suffix, role) in enumerate(roles)
    ]


def plan(inventory: Inventory) -> dict[str, LabPeer]:
    """All peers by name, in the inventory's order."""
    return {peer.name: peer for host in inventory.hosts for peer in peers_of(host)}


def zones_of(peers: Mapping[str, LabPeer]) -> dict[str, list[LabPeer]]:
    """Who is a member of which zone."""
    found: dict[str, list[LabPeer]] = {}
    for peer in peers.values():
        if peer.is_member:
            found.setdefault(peer.zone, []).append(peer)
    return found


def seeds(me: LabPeer, peers: Mapping[str, LabPeer], addresses: Mapping[str, str]) -> list[str]:
    """Whom a peer is told of, so that it finds the others where multicast does not reach.

    Some of each zone, its own first; `addresses` by host, as far as they are known.
    """
    zones = zones_of(peers)
    order = [me.zone, *(zone for zone in zones if zone != me.zone)]
    found: list[str] = []
    for zone in order:
        hosts: dict[str, LabPeer] = {}
        for peer in zones.get(zone, ()):
            if peer.name != me.name and peer.host in addresses:
                hosts.setdefault(peer.host, peer)
        found += [_at(addresses[p.host], p.port) for p in list(hosts.values())[:SEEDS_OF_A_ZONE]]
    return found[:MOST_SEEDS]


def words(
    inventory: Inventory, peer: LabPeer, seeds: Sequence[str] = (), bdns: Sequence[str] = ()
) -> list[str]:
    """The command line of a peer, after `overlay`; `{folder}` stands for its folder."""
    lab, host = inventory.lab, inventory.host(peer.host)
    told = [PEER, "--supervisor"] if peer.role == "supervisor" else [peer.role]
    told += [
        f"--name={peer.name}",
        f"--zone={peer.zone}",
        f"--profile={lab.profile}",
        f"--bind={_at(host.overlay_address or '0.0.0.0', peer.port)}",
        f"--state={PLACE}/state/{peer.name}",
    ]
    if lab.insecure:
        told += ["--insecure", f"--overlay={lab.name}"]
    else:
        told.append(f"--keys={PLACE}/keys")
    if peer.role == "collector":
        told.append(f"--dir={PLACE}/collected")
    if peer.role == "broker":
        told += [f"--bdn={bdn}" for bdn in bdns]
    settings = {section: dict(table) for section, table in host.settings.items()}
    if inventory.checks.multicast == "off":
        settings.setdefault("beacon", {}).setdefault("enabled", False)
    if lab.traces != "off":
        settings.setdefault("traces", {}).setdefault("level", lab.traces)
    settings.setdefault("traces", {}).setdefault("folder", f"{PLACE}/traces")
    told += [
        f"--set={section}.{key}={toml_value(value)}"
        for section, table in sorted(settings.items())
        for key, value in sorted(table.items())
    ]
    return told + [f"--seed={seed}" for seed in seeds]


def fingerprint(told: Sequence[str], certificate: str) -> str:
    """What a peer was started with; seeds do not count, since a running peer needs them no more."""
    lasting = [word for word in told if not word.startswith(("--seed=", "--bdn="))]
    return hashlib.sha256(json.dumps([lasting, certificate]).encode()).hexdigest()[:16]


def bdns(peers: Mapping[str, LabPeer], addresses: Mapping[str, str]) -> list[str]:
    """Where the lab's broker discovery nodes are."""
    return [
        _at(addresses[peer.host], peer.port)
        for peer in peers.values()
        if peer.role == "bdn" and peer.host in addresses
    ]


def requirement(inventory: Inventory) -> str:
    """What pip is asked to install."""
    extras = set(inventory.lab.extras)
    levels = [inventory.lab.traces]
    levels += [host.settings.get("traces", {}).get("level", "off") for host in inventory.hosts]
    if any(level != "off" for level in levels) or any(
        "collector" in host.roles for host in inventory.hosts
    ):
        extras.add("traces")
    return f"zmq-overlay[{','.join(sorted(extras))}]" if extras else "zmq-overlay"


def toml_value(value: Any) -> str:
    """A value of the inventory as `--set` reads it again."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, str) and value.startswith(PLACE):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)


def _at(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
