"""What `overlay lab` shows: the lab as a table, and who failed, each in a line."""

import time
from typing import Any

import typer

from nodes.cli.output import counted, print_json, print_table
from nodes.lab.agreement import disagreements
from nodes.lab.inventory import Inventory
from nodes.lab.outcome import Outcome
from nodes.lab.plan import plan

_WHO = ("host", "peer", "role", "zone", "port")
COLUMNS = (*_WHO, "state", "up", "restarts", "sees", "is", "agrees")


def show(inventory: Inventory, outcome: Outcome, *, json: bool, title: str = "") -> None:
    """The lab, then failures; exit code 1 when there are any."""
    if json:
        print_json(outcome)
    else:
        if outcome.peers:
            print_peers(inventory, outcome.peers, title)
        for name, line in outcome.warnings.items():
            print(f"warning: {name}: {line}")
        for name, line in outcome.failures.items():
            print(f"FAILED: {name}: {line}")
    if outcome.failures:
        raise typer.Exit(1)


def print_peers(inventory: Inventory, views: dict[str, dict[str, Any]], title: str) -> None:
    """One row for each peer; `agrees` says whether it sees the lab as the others do."""
    peers = plan(inventory)
    there = {name: peer for name, peer in peers.items() if name in views}
    odd = disagreements(there, views)
    rows = []
    for name, view in views.items():
        peer = peers.get(name)
        rows.append(
            (
                view["host"],
                name,
                peer.role if peer else "not in the inventory",
                view.get("zone") or (peer.zone if peer else "-"),
                peer.port if peer else "-",
                _state(view),
                _age(time.time() - view["since"]) if view["pid"] else "-",
                max(0, view["starts"] - 1),
                len(view["members"]) if "members" in view else "-",
                "delegate" if view.get("delegate") else "",
                odd.get(name, "yes"),
            )
        )
    zones = {peer.zone for peer in there.values() if peer.is_member}
    hosts = {view["host"] for view in views.values()}
    sizes = {"host": len(hosts), "peer": len(rows), "zone": len(zones)}
    counts = ", ".join(counted(size, noun) for noun, size in sizes.items())
    print_table(COLUMNS, rows, title=f"lab {inventory.name}: {counts}{title}")


def said(outcome: Outcome) -> str:
    """What was done, in a few words."""
    done = [
        f"{verb} {counted(len(names), 'peer')}"
        for verb, names in (
            ("started", outcome.started),
            ("restarted", outcome.restarted),
            ("removed", outcome.removed),
        )
        if names
    ]
    return f"; {', '.join(done)}" if done else "; nothing had to be changed"


def _state(view: dict[str, Any]) -> str:
    if not view["pid"]:
        return view["ended"] or "not started"
    return "silent" if "silent" in view else f"pid {view['pid']}"


def _age(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"
