"""Whether beacons can leave and come in: one is sent on each interface, and must be heard there.

The kernel hands a copy of what it sends to a group back to those who joined on that interface, by
way of the same filters as what comes from outside. So this shows what the machine lets through;
of switches and access points only other machines can tell (`overlays` counts who is heard).
The beacon is that of an overlay called `doctor`: peers of all others leave it alone.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from secrets import token_hex

import psutil

from nodes.doctor.case import Case
from nodes.doctor.finding import Finding, skipped, well, wrong
from overlay.net.config import NetSettings
from overlay.net.groups import Membership
from overlay.net.interfaces import LOOPBACK
from overlay.protocol import Group
from overlay.security.plain import PlainSigner
from protocols.beacon.config import BeaconSettings

ATTEMPTS = 3
WITHIN = 0.2  # s for each; on one machine it takes microseconds
NAME = "doctor"


def check(case: Case) -> Iterator[Finding]:
    """Each interface that is up, with each version of IP that it has an address of."""
    beacon = case.config.section(BeaconSettings)
    if not beacon.enabled:
        yield skipped("beacons are turned off (beacon.enabled): peers need --seed")
        return
    hops = case.config.section(NetSettings).multicast_hops
    good = []
    for name, version in interfaces():
        group = beacon.groups().get(version)
        if group is None:
            continue
        obstacle = reason_not_heard(name, group, hops)
        if not obstacle:
            good.append(f"{name} IPv{version}")
            continue
        yield wrong(
            f"multicast is blocked on {name}, IPv{version} ({group.host}): {obstacle}",
            f"let UDP to {group.host} port {group.port} in and out (see the check `firewall`);"
            " until then give peers an address: --seed HOST:PORT",
        )
    if good:
        yield well(f"sent and heard on {', '.join(good)}")


def interfaces() -> Iterator[tuple[str, int]]:
    """Those that are up, by name, and the versions of IP that they have."""
    up = psutil.net_if_stats()
    for name, addresses in sorted(psutil.net_if_addrs().items()):
        if name not in up or not up[name].isup:
            continue
        for version, family in ((4, socket.AF_INET), (6, socket.AF_INET6)):
            if (name, version) == (LOOPBACK, 6):
                continue  # it has no link of its own, so no group of the link either
            if any(one.family == family for one in addresses):
                yield name, version


def reason_not_heard(interface: str, group: Group, hops: int = 1) -> str:
    """Send on that interface and listen there; empty when it came."""
    index = socket.if_nametoindex(interface)
    word = PlainSigner(f"{NAME}-{token_hex(4)}", NAME).sign(b"", 0.0)
    family = socket.AF_INET6 if ":" in group.host else socket.AF_INET
    try:
        with (
            socket.socket(family, socket.SOCK_DGRAM) as hearing,
            socket.socket(family, socket.SOCK_DGRAM) as saying,
        ):
            joined = Membership(group, hearing)
            joined.join([index])
            _speak_on(saying, index, hops)
            for _ in range(ATTEMPTS):
                saying.sendto(word, (group.host, group.port))
                if _comes(joined, word, index):
                    return ""
    except PermissionError:
        return "this machine's own filter refuses to send it"
    except OSError as error:
        return f"it cannot be sent: {error.strerror}"
    return "what is sent does not come back in"


def _speak_on(saying: socket.socket, index: int, hops: int) -> None:
    if saying.family == socket.AF_INET6:
        saying.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        saying.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, hops)
    else:
        request = struct.pack("@4s4si", bytes(4), bytes(4), index)
        saying.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, request)
        saying.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, hops)


def _comes(joined: Membership, word: bytes, index: int) -> bool:
    """Whether that word comes by that interface in time; others' beacons are passed over."""
    until = time.monotonic() + WITHIN
    while (left := until - time.monotonic()) > 0:
        joined.socket.settimeout(left)
        try:
            arrival = joined.receive()
        except (TimeoutError, BlockingIOError):
            return False
        if arrival is not None and (arrival.data, arrival.interface) == (word, index):
            return True
    return False
