"""What can be told of a node's part of the hash table, and of what the whole of it survives."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from overlay.protocol import Scope
from protocols.dht.config import DhtSettings
from protocols.dht.interface import Whereabouts

if TYPE_CHECKING:
    from protocols.dht.groups import Group
    from protocols.dht.machine import Dht


class Survival(msgspec.Struct, frozen=True):
    """What the replica groups that a node knows go on after, and what they lose."""

    replicas: int  # of the smallest group
    nodes: int  # of one group that may fail at once while all goes on
    zones: int  # that keep copies
    zone_keeps_data: bool  # when any one zone is lost, nothing acknowledged is
    zone_keeps_serving: bool  # and all goes on
    power_cut: bool  # all may fail at once, and come back with everything
    says: str


def survival(groups: list[Group], storage: str, quorum: int = 0) -> Survival:
    """Judge by the groups as they are, not by what was configured."""
    durable = storage == "sqlite"
    if not groups:
        return Survival(
            0, 0, 0, False, False, durable, "this node keeps no keys: ask one that does"
        )
    zones = {member.zone: None for group in groups for member in group.members}
    nodes = min(len(group.members) - max(group.majority, quorum) for group in groups)
    replicas = min(len(group.members) for group in groups)
    data = all(len(_by_zone(group)) > 1 for group in groups)
    serving = data and all(_outlives_any_zone(group, quorum) for group in groups)
    said = _says(replicas, nodes, len(zones), data, serving, durable)
    return Survival(replicas, nodes, len(zones), data, serving, durable, said)


def _outlives_any_zone(group: Group, quorum: int) -> bool:
    return all(
        group.suffices([one.name for one in group.members if one.zone != lost], quorum)
        for lost in _by_zone(group)
    )


def _by_zone(group: Group) -> Counter[Scope]:
    return Counter(member.zone for member in group.members)


def _says(replicas: int, nodes: int, zones: int, data: bool, serving: bool, durable: bool) -> str:
    words = [
        f"any {nodes} of a key's {replicas} replicas may fail at once: nothing is lost, all goes on"
        if nodes
        else f"no replica may fail: a key has {replicas}"
    ]
    if serving:
        words.append("so may any one zone")
    elif data:
        words.append(
            "without one of its zones nothing acknowledged is lost,"
            " but keys with their majority there are refused until it is back"
        )
    elif zones > 1:
        words.append("some keys are still in one zone only: their copies are on the way")
    else:
        words.append("everything is in one zone, and is lost with it")
    if durable:
        words.append("a power cut of all loses no acknowledged write")
    else:
        words.append("a power cut of all loses everything (storage is memory)")
    return "; ".join(words)


def table_facts(machine: Dht, settings: DhtSettings) -> dict[str, Any]:
    """What `overlay dht stats` shows of one node."""
    seated = [shard for shard in machine.shards().values() if shard.seated]
    return {
        "serves": settings.serve,
        "table": machine.table or None,
        "storage": settings.storage,
        "storage_zones": dict(machine.storage_zones()),
        "shards": len(seated),
        "leads": sum(shard.reign is not None for shard in seated),
        "keys": sum(
            record.value is not None for shard in seated for record in shard.shelf.records.values()
        ),
        "bytes": sum(shard.shelf.bytes for shard in seated),
        "most_bytes": settings.node_bytes,
        "moving": machine.moving,
        "without_majority": machine.without_majority,
        "open": machine.open_operations,
        "survives": msgspec.to_builtins(
            survival([shard.group for shard in seated], settings.storage, settings.quorum)
        ),
        "counts": msgspec.to_builtins(machine.counts),
    }


def where_facts(found: Whereabouts) -> dict[str, Any]:
    """Where a key lives, as `overlay dht where` shows it."""
    return {
        "shard": found.shard,
        "zone": found.zone,
        "leader": found.leader,
        "members": list(found.members),
        "version": found.version,
    }
