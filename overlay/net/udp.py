"""Datagrams of one node: unicast on the port of its ROUTER, and multicast groups."""

from __future__ import annotations

import logging
import socket
import struct
from collections import Counter
from collections.abc import Callable

from overlay.logs import about
from overlay.net.addresses import Endpoint, is_loopback, is_wildcard
from overlay.net.groups import Copies, Membership, sender_of
from overlay.net.interfaces import LOOPBACK, Interfaces, index_of_ipv6
from overlay.protocol import Group, UdpAddress

log = logging.getLogger("overlay.net")

DRAIN = 256  # datagrams that one tick takes from one socket
LOOK_EVERY = 2.0  # s between two looks at the interfaces: each takes 0.3 ms
RECEIVE_BUFFER = 1 << 20  # bytes in the kernel: a burst of discovery answers must not be lost

Received = Callable[[bytes, UdpAddress, str], None]  # (datagram, sender, interface of a group)


class Datagrams:
    """Sockets for both IP versions; a socket that cannot be had is counted, not fatal."""

    def __init__(
        self,
        watch: Callable[[int, Callable[[], None]], None],
        unwatch: Callable[[int], None],
        received: Received,
        hops: int,
        clock: Callable[[], float],
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._watch = watch
        self._unwatch = unwatch
        self._received = received
        self._hops = hops
        self._clock = clock
        self._interfaces = Interfaces(clock)
        self._copies = Copies()
        self._unicast: dict[tuple[str, int], socket.socket] = {}
        self._groups: dict[Group, Membership] = {}
        self._addresses: dict[str, None] | None = None  # of those interfaces, at the last look
        self._look_at = 0.0

    # -- unicast ------------------------------------------------------------------------------

    def bind(self, endpoint: Endpoint) -> bool:
        """Take datagrams at an address of the ROUTER; False when that port is not free."""
        host = "0.0.0.0" if endpoint.host == "*" else endpoint.host  # ZeroMQ's word for it
        taken = self._open(_family(host))
        try:
            taken.bind((host, endpoint.port))
        except OSError:
            taken.close()
            self.counts["udp ports not free"] += 1
            return False
        self._add(taken, (host, endpoint.port))
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

    def _add(self, opened: socket.socket, place: tuple[str, int]) -> None:
        self._unicast[place] = opened
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
            self._received(data, sender_of(address), "")

    def send(self, data: bytes, address: UdpAddress) -> None:
        """Send one datagram, from a port at which we listen."""
        try:
            places = self._places(_family(address.host))
            near = is_loopback(address.host)
            # From a loopback address nothing reaches the network, and the other way round.
            fitting = (at for at in places if is_wildcard(at[0]) or is_loopback(at[0]) == near)
            place = next(fitting, places[0])
            self._unicast[place].sendto(data, (address.host, address.port))
            self.counts["datagrams sent"] += 1
        except OSError:
            self.counts["datagrams not sent"] += 1

    def _places(self, family: socket.AddressFamily) -> list[tuple[str, int]]:
        """Where we are in this version of IP; a socket to send from is opened where we are not."""
        places = [place for place, one in self._unicast.items() if one.family == family]
        if not places:
            places = [("::" if family == socket.AF_INET6 else "0.0.0.0", 0)]
            self._add(self._open(family), places[0])
        return places

    # -- multicast ----------------------------------------------------------------------------

    def join(self, *groups: Group) -> None:
        """Take what is sent to these groups, on every interface that can multicast."""
        for group in groups:
            if group not in self._groups:
                self._join(group)

    def _join(self, group: Group) -> None:
        opened: socket.socket | None = None
        try:
            opened = self._open(_family(group.host))
            joined = Membership(group, opened)
        except OSError as error:
            if opened is not None:
                opened.close()
            self.counts["groups not joined"] += 1
            log.warning(
                "group %s port %d: %s",
                group.host,
                group.port,
                error.strerror,
                extra=about("group-not-joined", "net", group=group.host, port=group.port),
            )
            return
        joined.join(self._listening())
        self._groups[group] = joined
        self._watch(opened.fileno(), lambda: self._drain_group(joined))

    def leave(self, *groups: Group) -> None:
        """Take no more of these."""
        for group in groups:
            joined = self._groups.pop(group, None)
            if joined is not None:
                self._unwatch(joined.socket.fileno())
                joined.socket.close()

    def look_around(self) -> bool:
        """Join the groups on interfaces that came since; call it as often as you like.

        True when there is an address that was not there the last time, where groups are heard.
        """
        now = self._clock()
        if not self._groups or now < self._look_at:
            return False
        self._look_at = now + LOOK_EVERY
        listening = self._listening()
        for joined in self._groups.values():
            joined.join(listening)
        before, self._addresses = self._addresses, self._interfaces.addresses(listening)
        return before is not None and not self._addresses.keys() <= before.keys()

    def _listening(self) -> dict[int, str]:
        """Where groups are joined: a node that is only at loopback hears nothing of the network."""
        names = self._interfaces.names()
        if self._unicast and all(is_loopback(host) for host, _ in self._unicast):
            return {index: name for index, name in names.items() if name == LOOPBACK}
        return names

    def _drain_group(self, joined: Membership) -> None:
        for _ in range(DRAIN):
            try:
                arrival = joined.receive()
            except BlockingIOError:
                return
            except OSError:
                self.counts["udp errors"] += 1
                continue
            if arrival is None:
                self.counts["datagrams past their group"] += 1
            elif self._copies.is_copy(arrival.data, arrival.interface, self._clock()):
                self.counts["datagram copies"] += 1
            else:
                self.counts["datagrams received"] += 1
                name = self._interfaces.name(arrival.interface)
                self._received(arrival.data, arrival.sender, name)

    def cast(self, data: bytes, group: Group) -> None:
        """Send to a group, on every interface on which we can be answered."""
        sent = 0
        try:
            for place in self._places(_family(group.host)):
                if is_wildcard(place[0]):
                    sent += self._cast_everywhere(self._unicast[place], data, group)
                else:
                    sent += self._cast_from(self._unicast[place], place[0], data, group)
        except OSError:  # no socket of this version of IP
            pass
        self.counts["datagrams sent"] += sent
        self.counts["datagrams not sent"] += not sent

    def _cast_everywhere(self, sender: socket.socket, data: bytes, group: Group) -> int:
        """Nodes of this machine hear it by any interface: loopback only when there is no other."""
        names = self._interfaces.names()
        near = [index for index, name in names.items() if name == LOOPBACK]
        far = [index for index in names if index not in near]
        for indices in (far, near):
            if sent := sum(self._cast_by(index, sender, data, group) for index in indices):
                return sent
        return 0

    def _cast_by(self, index: int, sender: socket.socket, data: bytes, group: Group) -> int:
        if sender.family == socket.AF_INET6:
            return _cast_on(index, b"", sender, data, group)
        # The kernel would lend an interface without an address that of another.
        address = self._interfaces.ipv4(index)
        return 0 if address is None else _cast_on(index, address, sender, data, group)

    def _cast_from(self, sender: socket.socket, host: str, data: bytes, group: Group) -> int:
        """Only by the interface of our address: elsewhere nobody could answer."""
        if sender.family == socket.AF_INET6:
            return _cast_on(index_of_ipv6(host), b"", sender, data, group)
        # The kernel itself chooses the interface that has the sender's address.
        return _cast_on(0, bytes(4), sender, data, group)

    def close(self) -> None:
        """Close all sockets."""
        self.leave(*self._groups)
        for opened in self._unicast.values():
            self._unwatch(opened.fileno())
            opened.close()
        self._unicast.clear()


def _cast_on(index: int, address: bytes, sender: socket.socket, data: bytes, group: Group) -> int:
    """Return 1 when the interface took it: it may be down."""
    try:
        if sender.family == socket.AF_INET6:
            sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        else:
            request = struct.pack("@4s4si", bytes(4), address, index)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, request)
        sender.sendto(data, (group.host, group.port))
    except OSError:
        return 0
    return 1


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
