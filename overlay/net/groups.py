"""One multicast group that a node joined: on every interface, also on those that come later."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

from overlay.protocol import Group, UdpAddress

# Linux, where the module socket has no name for them.
IP_PKTINFO, IP_MULTICAST_ALL, IPV6_MULTICAST_ALL = 8, 49, 29
_PKTINFO4 = struct.Struct("@i4s4s")  # interface, our address, destination
_PKTINFO6 = struct.Struct("@16sI")  # destination, interface
_ANCILLARY = socket.CMSG_SPACE(max(_PKTINFO4.size, _PKTINFO6.size))


class Arrival(NamedTuple):
    """One datagram, and the interface that it came by."""

    data: bytes
    sender: UdpAddress
    interface: int


def sender_of(address: tuple[Any, ...]) -> UdpAddress:
    """Where an answer goes; a link-local address means nothing without its interface."""
    host, port, *more = address
    scope = f"%{more[1]}" if more and more[1] else ""
    return UdpAddress(host.partition("%")[0] + scope, port)


class Membership:
    """The socket of one group. OSError when its port cannot be had."""

    def __init__(self, group: Group, opened: socket.socket) -> None:
        self.socket = opened
        self._packed = socket.inet_pton(opened.family, group.host)
        self._joined: dict[int, None] = {}
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if opened.family == socket.AF_INET6:
            # A link-local group exists once on each interface, so one socket cannot be bound to
            # it: it is bound to the port, and `receive` looks at the destination.
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
            opened.setsockopt(socket.IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0)
            opened.bind(("::", group.port))
        else:
            opened.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
            opened.setsockopt(socket.IPPROTO_IP, IP_MULTICAST_ALL, 0)
            opened.bind((group.host, group.port))

    def join(self, interfaces: Iterable[int]) -> None:
        """Join on these where it has not yet; one that left the machine is forgotten."""
        present = dict.fromkeys(interfaces)
        self._joined = {index: None for index in self._joined if index in present}
        for index in present:
            if index not in self._joined and self._join(index):
                self._joined[index] = None

    def _join(self, index: int) -> bool:
        try:
            if self.socket.family == socket.AF_INET6:
                request = self._packed + struct.pack("@I", index)
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)
            else:
                request = self._packed + struct.pack("@4si", b"\0\0\0\0", index)
                self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
        except OSError:
            return False  # it has no address yet, or cannot multicast
        return True

    def receive(self) -> Arrival | None:
        """The next datagram; None for one that was not sent to the group.

        BlockingIOError when none waits.
        """
        data, ancillary, _, address = self.socket.recvmsg(65_535, _ANCILLARY)
        for level, kind, told in ancillary:
            if (level, kind) == (socket.IPPROTO_IP, IP_PKTINFO):
                interface, _, destination = _PKTINFO4.unpack(told)
            elif (level, kind) == (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO):
                destination, interface = _PKTINFO6.unpack(told)
            else:
                continue
            if destination == self._packed:
                return Arrival(data, sender_of(address), interface)
        return None


SAME_FOR = 1.0  # s in which a copy may come by another interface
REMEMBERED = 1024  # datagrams


class Copies:
    """Tells copies of one datagram that came by several interfaces from one sent again."""

    def __init__(self) -> None:
        self._seen: dict[bytes, tuple[int, float]] = {}

    def is_copy(self, data: bytes, interface: int, now: float) -> bool:
        """True when the same bytes came by another interface a moment ago.

        By the same interface they were sent again, which is for others to judge.
        """
        digest = blake2b(data, digest_size=16).digest()
        known = self._seen.get(digest)
        if known is not None and known[0] != interface and now - known[1] < SAME_FOR:
            return True
        self._seen.pop(digest, None)  # to its end: the oldest are first
        self._seen[digest] = (interface, now)
        if len(self._seen) > REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return False
