"""Datagrams of one node: unicast on the port of its ROUTER, and multicast groups."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections import Counter
from collections.abc import Callable

from overlay.net.addresses import Endpoint
from overlay.protocol import Group, UdpAddress

DRAIN = 256  # datagrams that one tick takes from one socket
RECEIVE_BUFFER = 1 << 20  # bytes in the kernel: a burst of discovery answers must not be lost

Received = Callable[[bytes, UdpAddress], None]


class Datagrams:
    """Sockets for both IP versions; a socket that cannot be had is counted, not fatal."""

    def __init__(
        self,
        watch: Callable[[int, Callable[[], None]], None],
        unwatch: Callable[[int], None],
        received: Received,
        hops: int,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._watch = watch
        self._unwatch = unwatch
        self._received = received
        self._hops = hops
        self._unicast: dict[socket.AddressFamily, socket.socket] = {}
        self._groups: dict[Group, list[socket.socket]] = {}

    def bind(self, endpoint: Endpoint) -> bool:
        """Take datagrams at an address of the ROUTER; False when that port is not free."""
        family = _family(endpoint.host)
        if family in self._unicast:
            return True
        taken = self._open(family)
        try:
            taken.bind((endpoint.host, endpoint.port))
        except OSError:
            taken.close()
            self.counts["udp ports not free"] += 1
            return False
        self._unicast[family] = taken
        self._listen(taken)
        return True

    def _open(self, family: socket.AddressFamily) -> socket.socket:
        opened = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, self._hops)
        else:
            opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, self._hops)
        return opened

    def _listen(self, opened: socket.socket) -> None:
        self._watch(opened.fileno(), lambda: self._drain(opened))

    def _drain(self, opened: socket.socket) -> None:
        for _ in range(DRAIN):
            try:
                data, address = opened.recvfrom(65_535)
            except BlockingIOError:
                return
            except OSError:
                self.counts["udp errors"] += 1  # an ICMP answer to something that we sent
                continue
            self.counts["datagrams received"] += 1
            self._received(data, UdpAddress(address[0], address[1]))

    def send(self, data: bytes, address: UdpAddress) -> None:
        """Send one datagram, from the port at which we listen."""
        try:
            family = _family(address.host)
            sender = self._unicast.get(family)
            if sender is None:
                sender = self._unicast[family] = self._open(family)
                self._listen(sender)
            sender.sendto(data, (address.host, address.port))
            self.counts["datagrams sent"] += 1
        except OSError:
            self.counts["datagrams not sent"] += 1

    def join(self, group: Group) -> None:
        """Take what is sent to a group, on every interface that can multicast."""
        if group in self._groups:
            return
        family = _family(group.host)
        joined: list[socket.socket] = []
        taken = self._open(family)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((group.host, group.port))
        except OSError:
            taken.close()
            self.counts["groups not joined"] += 1
            return
        for index, _ in socket.if_nameindex():
            with contextlib.suppress(OSError):  # an interface without an address
                packed = socket.inet_pton(family, group.host)
                if family == socket.AF_INET6:
                    request = packed + struct.pack("@I", index)
                    taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)
                else:
                    request = packed + struct.pack("=4si", b"\0\0\0\0", index)
                    taken.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
        joined.append(taken)
        self._groups[group] = joined
        self._listen(taken)

    def leave(self, group: Group) -> None:
        """Take no more of it."""
        for taken in self._groups.pop(group, []):
            self._unwatch(taken.fileno())
            taken.close()

    def cast(self, data: bytes, group: Group) -> None:
        """Send to a group on every interface."""
        family = _family(group.host)
        sender = self._unicast.get(family)
        if sender is None:
            sender = self._unicast[family] = self._open(family)
            self._listen(sender)
        for index, _ in socket.if_nameindex():
            try:
                if family == socket.AF_INET6:
                    sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
                else:
                    request = struct.pack("=4s4si", b"\0" * 4, b"\0" * 4, index)
                    sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, request)
                sender.sendto(data, (group.host, group.port))
                self.counts["datagrams sent"] += 1
            except OSError:
                self.counts["datagrams not sent"] += 1

    def close(self) -> None:
        """Close all sockets."""
        for group in list(self._groups):
            self.leave(group)
        for opened in self._unicast.values():
            self._unwatch(opened.fileno())
            opened.close()
        self._unicast.clear()


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
