"""The network interfaces of this machine, which come and go while a node runs."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

LOOK_EVERY = 1.0  # s: asking the kernel takes 50 µs, too much for each datagram
LOOPBACK = "lo"
_IPV6_ADDRESSES = Path("/proc/net/if_inet6")


class Interfaces:
    """Their names by index, as the kernel told at most a second ago."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._names: dict[int, str] = {}
        self._look_at = -LOOK_EVERY

    def names(self) -> dict[int, str]:
        """All of them, also those that are down or have no address."""
        now = self._clock()
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY
            self._names = dict(socket.if_nameindex())
        return self._names

    def name(self, index: int) -> str:
        """The name of one; empty when it is gone."""
        return self.names().get(index, "")


def index_of_ipv6(host: str) -> int:
    """The interface that has this IPv6 address; 0 when none has it."""
    wanted = socket.inet_pton(socket.AF_INET6, host.partition("%")[0]).hex()
    try:
        lines = _IPV6_ADDRESSES.read_text().splitlines()
    except OSError:  # a kernel without IPv6
        return 0
    for line in lines:
        address, index, *_ = line.split()
        if address == wanted:
            return int(index, 16)
    return 0
