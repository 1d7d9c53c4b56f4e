"""Who hears whom by multicast: all hosts of a lab call out at the same time, and listen."""

import json
import select
import socket
import struct
import time
from contextlib import suppress

EVERY = 0.1  # s between two calls: 30 in three seconds, of which all but one may be lost
LAST_CALLS = 5  # after everybody was heard: others may have begun later


def heard(
    me: str, others: list[str], nonce: str, group: str, port: int, within: float
) -> list[str]:
    """The names of those whose calls arrived, until all did or the time is over."""
    with _listener(group, port) as ear, _caller() as mouth:
        call = json.dumps({"nonce": nonce, "host": me}).encode()
        known: dict[str, None] = {}
        deadline = time.monotonic() + within
        left = LAST_CALLS
        while time.monotonic() < deadline and left:
            with suppress(OSError):  # no route: then nobody hears us, and that is the finding
                mouth.sendto(call, (group, port))
            until = time.monotonic() + EVERY
            while (pause := until - time.monotonic()) > 0 and select.select([ear], [], [], pause)[
                0
            ]:
                with suppress(ValueError, TypeError, KeyError):
                    told = json.loads(ear.recv(2048))
                    if told["nonce"] == nonce and told["host"] in others:
                        known[told["host"]] = None
            left -= len(known) == len(others)
    return sorted(known)


def _listener(group: str, port: int) -> socket.socket:
    ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    ear.bind(("", port))
    joined = struct.pack("4s4s", socket.inet_aton(group), socket.inet_aton("0.0.0.0"))
    with suppress(OSError):  # no route for groups: then nobody is heard
        ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
    return ear


def _caller() -> socket.socket:
    mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
    return mouth
