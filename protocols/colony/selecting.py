"""SelectPeers (§3): whom of its colony a broker asks next for a want."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from overlay.ids import NodeId
from protocols.colony.config import ColonySettings
from protocols.colony.messages import ServiceRequest, Want
from protocols.colony.table import RoutingTable


def select(
    table: RoutingTable,
    settings: ColonySettings,
    rng: Random,
    request: ServiceRequest,
    want: Want,
    barred: Collection[NodeId],
) -> list[NodeId]:
    """Individuals to ask at once, the sender and those asked before left out; none: delegate."""
    mode = request.mode or settings.mode
    there = table.children if mode == "broadcast" else table.offering(want.services)
    found = [name for name in there if name not in barred]
    if request.without:
        found = [name for name in found if not _unwanted(table, name, request.without)]
    if mode in ("broadcast", "exhaustive") or not found:
        return found
    fanout = request.fanout or settings.fanout
    if len(found) <= fanout:
        return found
    if mode == "greedy-random":
        return [rng.choice(found)] if fanout == 1 else rng.sample(found, fanout)
    children = table.children
    nearest = mode == "greedy-latency" or (mode == "greedy-ordered" and settings.order == "latency")
    if nearest:  # who was not measured yet comes last; the oldest of equals first
        found.sort(key=lambda name: children[name].rtt or 1e9)
    else:
        found.sort(key=lambda name: -children[name].willingness)
    return found[:fanout]


def _unwanted(table: RoutingTable, name: NodeId, without: Collection[NodeId]) -> bool:
    """A computer that the client does not want; a colony may hold others."""
    return name in without and table.children[name].unit == "computer"
