"""What running peers themselves have counted, in plain words."""

from __future__ import annotations

from collections.abc import Iterator

from nodes.doctor.case import Case, Running
from nodes.doctor.finding import Finding, hint, skipped, well, wrong

REFUSALS = {
    "datagram-stale": (
        "datagrams were refused as too old or from the future: clocks differ by over 30 s",
        "set the clocks of all machines (see the check `clock`)",
    ),
    "certificate-expired": (
        "certificates that others showed have expired",
        "issue new keys to those nodes: `overlay keys list` shows the dates",
    ),
    "certificate-not-yet-valid": (
        "certificates that others showed are valid only later: a clock is off",
        "set the clocks of all machines (see the check `clock`)",
    ),
    "certificate-untrusted": (
        "nodes of another authority knocked",
        "copy keys of one authority to all nodes",
    ),
    "certificate-missing": (
        "insecure nodes knocked at one that has keys",
        "run all or none with --insecure",
    ),
    "certificate-revoked": (
        "nodes with revoked certificates knocked",
        "stop them, or issue new keys to them",
    ),
    "name-in-use": (
        "two nodes use one name",
        "give each node a name of its own (--name)",
    ),
    "name-taken": (
        "another node uses this one's name",
        "give each node a name of its own (--name)",
    ),
    "handshake-failed": (
        "links were refused before anybody said who it is: wrong keys, or no ZeroMQ at all",
        "keys of one authority on all nodes; run all or none with --insecure",
    ),
    "wrong-version": (
        "somebody speaks another version of the wire",
        "install the same version of zmq-overlay everywhere",
    ),
    "flood": (
        "a peer sent more than net.peer_rate allows",
        "find out why it does, or raise net.peer_rate",
    ),
}


def check(case: Case) -> Iterator[Finding]:
    """Each node that runs, or the one that was asked about."""
    if not case.nodes:
        yield skipped("no node runs on this machine: only the host was examined")
    for node in case.nodes:
        troubles = list(complaints(node))
        yield from troubles
        if not troubles:
            members = node.zone["members"] if node.zone else []
            zone = f", {len(members)} members in zone {node.status['zone']}" if members else ""
            links = len(node.status["driver"]["links"])
            yield well(f"{node.name}: {links} links{zone}, nothing lost or refused to worry about")


def complaints(node: Running) -> Iterator[Finding]:
    """What a node's counters say is wrong."""
    driver = node.status["driver"]
    for reason, count in driver["refusals"].items():
        if reason in REFUSALS:
            what, fix = REFUSALS[reason]
            yield wrong(f"{node.name}: {what} ({count} ×)", fix)
    for link in driver["links"]:
        if link["reason"] and link["state"] != "open":
            who = link["peer"] or link["endpoint"]
            yield wrong(
                f"{node.name}: the link to {who} is {link['state']}: {link['reason']}",
                f"is it up, and does a firewall let {link['endpoint'] or 'its address'} through?",
            )
    if dropped := node.status["events_dropped"]:
        yield wrong(
            f"{node.name}: an application reads its events too slowly, {dropped} are lost",
            "read them faster, or ask for fewer kinds",
        )
    if node.zone is not None and len(node.zone["members"]) == 1:
        yield hint(
            f"{node.name} is alone in zone {node.status['zone']}",
            "start another peer of the same overlay and zone, or give it --seed HOST:PORT",
        )
