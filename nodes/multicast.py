"""Whether multicast works at all between processes of this machine."""

from __future__ import annotations

import socket
import struct

GROUP = "239.255.90.78"  # not that of beacons: nobody else shall hear the question
WITHIN = 0.5  # s


def works_at_loopback() -> bool:
    """Send one datagram to a group on loopback, and say whether it came."""
    word = b"multicast?"
    try:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hearing,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as saying,
        ):
            here = socket.inet_aton("127.0.0.1")
            hearing.bind((GROUP, 0))
            request = struct.pack("4s4s", socket.inet_aton(GROUP), here)
            hearing.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
            hearing.settimeout(WITHIN)
            saying.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, here)
            saying.sendto(word, (GROUP, hearing.getsockname()[1]))
            return hearing.recv(len(word)) == word
    except OSError:  # also when nothing came in time
        return False
