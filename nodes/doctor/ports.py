"""Whether a peer gets the ports that it wants, and who has them when it does not."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

import psutil

from nodes.doctor.case import Case
from nodes.doctor.finding import Finding, skipped, well, wrong
from overlay.net.addresses import Endpoint, parse_endpoint
from overlay.net.config import NetSettings
from overlay.net.groups import Membership
from overlay.protocol import Group
from protocols.beacon.config import BeaconSettings

KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}


def check(case: Case) -> Iterator[Finding]:
    """The addresses of the settings, and the port of the beacons."""
    settings = case.config.section(NetSettings)
    fixed = [one for text in settings.bind if (one := parse_endpoint(text)).port]
    if not fixed:
        yield well("a free port is taken: no fixed one is set")
    for endpoint in fixed:
        yield from _fixed(endpoint, case)
    beacon = case.config.section(BeaconSettings)
    if beacon.enabled:
        for group in beacon.groups().values():
            yield _shared(group)
    for node in case.nodes:
        if missed := node.status["driver"]["counters"].get("udp ports not free"):
            yield wrong(
                f"{node.name} has its TCP port, but {missed} UDP port of the same number is taken"
                " by another process: no beacon is answered there, and time is not told",
                "start it with --bind HOST:0, or another port",
            )


def _fixed(endpoint: Endpoint, case: Case) -> Iterator[Finding]:
    if endpoint.transport != "tcp":
        return
    host = "0.0.0.0" if endpoint.host == "*" else endpoint.host
    for protocol, kind in KINDS.items():
        label = f"{protocol} port {endpoint.port}"
        try:
            family = socket.getaddrinfo(host, endpoint.port, type=kind)[0][0]
            with socket.socket(family, kind) as trial:
                if kind == socket.SOCK_STREAM:  # as ZeroMQ does: one in TIME_WAIT is no obstacle
                    trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                trial.bind((host, endpoint.port))
        except OSError as error:
            yield _taken(label, host, endpoint.port, kind, error, case)
        else:
            yield well(f"{label} is free")


def _taken(label: str, host: str, port: int, kind: int, error: OSError, case: Case) -> Finding:
    if error.errno == errno.EADDRNOTAVAIL:
        return wrong(f"{host} is no address of this machine", "bind 0.0.0.0, or an address it has")
    if error.errno != errno.EADDRINUSE:
        return wrong(f"{label} cannot be had: {error.strerror}", "choose a port above 1023")
    pid = holder(port, kind)
    ours = next((node.name for node in case.nodes if node.pid == pid), None)
    if ours is not None:
        return well(f"{label} is held by {ours}, which runs")
    return wrong(
        f"{label} is taken by {process_name(pid)}",
        "choose another with --bind HOST:PORT (port 0 takes a free one), or stop that process",
    )


def _shared(group: Group) -> Finding:
    """All nodes of a machine share this one; it is taken when somebody does not share it."""
    family = socket.AF_INET6 if ":" in group.host else socket.AF_INET
    label = f"udp port {group.port} of beacons, group {group.host}"
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as trial:
            Membership(group, trial)
    except OSError as error:
        if error.errno == errno.EAFNOSUPPORT:
            return skipped(f"{label}: this kernel has no IPv6")
        owner = process_name(holder(group.port, socket.SOCK_DGRAM))
        return wrong(
            f"{label} cannot be shared: {error.strerror}; {owner} has it",
            "stop that process, or give all peers another beacon.port",
        )
    return well(f"{label} can be shared")


def holder(port: int, kind: int) -> int | None:
    """The process that has a port; None when that is another user's secret."""
    try:
        connections = psutil.net_connections("inet")
    except psutil.Error:
        return None
    for one in connections:
        listens = one.type == socket.SOCK_DGRAM or one.status == psutil.CONN_LISTEN
        if one.type == kind and listens and one.laddr and one.laddr.port == port and one.pid:
            return int(one.pid)
    return None


def process_name(pid: int | None) -> str:
    """`python3 (pid 4711)`."""
    if pid is None:
        return "a process of another user"
    try:
        return f"{psutil.Process(pid).name()} (pid {pid})"
    except psutil.Error:
        return f"pid {pid}"
