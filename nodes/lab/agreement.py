"""Whether all peers see the same lab: each zone's members the same members, all the same zones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from nodes.lab.plan import LabPeer

Views = Mapping[str, Mapping[str, Any]]
"""What each peer told (`onhost/peers.py`, `status`), by name."""


def disagreements(
    peers: Mapping[str, LabPeer],
    views: Views,
    *,
    gone: Collection[str] = (),
    zones: Collection[str] | None = None,
) -> dict[str, str]:
    """Who does not see the lab as it should be, and what it misses; empty: all agree.

    `peers` must be seen by all of their zone, `gone` by nobody. Others may be there, if all see
    them alike: an application's, or those of a host that is out of reach. `zones`: only these.
    """
    found: dict[str, str] = {}
    asked = {n: p for n, p in peers.items() if zones is None or p.zone in zones}
    seen_in = _members_of_zones(asked, views)
    for name, peer in asked.items():
        view = views.get(name)
        problem = _own_problem(view)
        if not problem:
            assert view is not None
            problem = _zone_problem(peer, view, asked, seen_in, gone) if peer.is_member else ""
            problem = problem or _table_problem(view, asked, seen_in, whole=zones is None)
        if problem:
            found[name] = problem
    return found


def _own_problem(view: Mapping[str, Any] | None) -> str:
    if view is None:
        return "its host does not answer"
    if not view["pid"]:
        return f"does not run ({view['ended'] or 'not started'})"
    return f"tells nothing yet ({view['silent']})" if "silent" in view else ""


def _members_of_zones(peers: Mapping[str, LabPeer], views: Views) -> dict[str, tuple[str, ...]]:
    """What most members of each zone say who is in it."""
    told: dict[str, Counter[tuple[str, ...]]] = {}
    for name, peer in peers.items():
        members = views.get(name, {}).get("members")
        if members is not None and peer.is_member:
            told.setdefault(peer.zone, Counter())[tuple(members)] += 1
    return {zone: counts.most_common(1)[0][0] for zone, counts in told.items()}


def _zone_problem(
    peer: LabPeer,
    view: Mapping[str, Any],
    peers: Mapping[str, LabPeer],
    seen_in: Mapping[str, tuple[str, ...]],
    gone: Collection[str],
) -> str:
    members = set(view.get("members", ()))
    wanted = {one.name for one in peers.values() if one.is_member and one.zone == peer.zone}
    if missing := sorted(wanted - members):
        count = f"{len(wanted) - len(missing)} of {len(wanted)}"
        return f"sees {count} members of {peer.zone}, not {_some(missing)}"
    if dead := sorted(members & set(gone)):
        return f"still sees {_some(dead)} in {peer.zone}"
    if odd := sorted(members ^ set(seen_in[peer.zone])):
        return f"sees {peer.zone} differently from others: {_some(odd)}"
    return ""


def _table_problem(
    view: Mapping[str, Any],
    peers: Mapping[str, LabPeer],
    seen_in: Mapping[str, tuple[str, ...]],
    *,
    whole: bool,
) -> str:
    table: Mapping[str, int] = view.get("zones", {})
    for zone in dict.fromkeys(one.zone for one in peers.values() if one.is_member):
        if zone not in table:
            return f"does not know zone {zone}"
        size = len(seen_in.get(zone, ()))
        if whole and table[zone] != size:
            return f"counts {table[zone]} members in zone {zone}, not {size}"
    return ""


def _some(names: list[str], most: int = 3) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
