"""The network interfaces of this machine, which come and go while a node runs."""

from __future__ import annotations

import fcntl
import socket
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

LOOK_EVERY = 1.0  # s: asking the kernel takes 50 µs, too much for each datagram
LOOPBACK = "lo"
SIOCGIFADDR = 0x8915  # Linux: the first IPv4 address of an interface
_IPV6_ADDRESSES = Path("/proc/net/if_inet6")


class Interfaces:
    """Their names by index, as the kernel told at most a second ago."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._names: dict[int, str] = {}
        self._ipv4: dict[int, bytes] = {}
        self._look_at = -LOOK_EVERY

    def names(self) -> dict[int, str]:
        """All of them, also those that are down or have no address."""
        now = self._clock()
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY
            self._names = dict(socket.if_nameindex())
            self._ipv4 = _first_ipv4_addresses(self._names)
        return self._names

    def ipv4(self, index: int) -> bytes | None:
        """The first IPv4 address of one; None without any: what it sent could not be answered."""
        self.names()
        return self._ipv4.get(index)

    def addresses(self, indices: Iterable[int]) -> dict[str, None]:
        """The first IPv4 address and all IPv6 addresses of these, each with its interface."""
        wanted = dict.fromkeys(indices)
        self.names()
        found = {f"{index} {host.hex()}": None for index, host in self._ipv4.items()}
        for host, index in ipv6_addresses():
            found[f"{index} {host}"] = None
        return {one: None for one in found if int(one.partition(" ")[0]) in wanted}

    def name(self, index: int) -> str:
        """The name of one; empty when it is gone."""
        return self.names().get(index, "")


def _first_ipv4_addresses(names: dict[int, str]) -> dict[int, bytes]:
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for index, name in names.items():
            try:
                answer = fcntl.ioctl(asking, SIOCGIFADDR, struct.pack("256s", name.encode()))
            except OSError:
                continue
            found[index] = answer[20:24]  # struct ifreq: the name, then a sockaddr_in
    return found


def index_of_ipv6(host: str) -> int:
    """The interface that has this IPv6 address; 0 when none has it."""
    wanted = socket.inet_pton(socket.AF_INET6, host.partition("%")[0]).hex()
    return next((index for address, index in ipv6_addresses() if address == wanted), 0)


def ipv6_addresses() -> list[tuple[str, int]]:
    """All of this machine, in hexadecimal, and the interface of each."""
    try:
        lines = _IPV6_ADDRESSES.read_text().splitlines()
    except OSError:  # a kernel without IPv6
        return []
    return [(words[0], int(words[1], 16)) for line in lines if len(words := line.split()) > 1]
