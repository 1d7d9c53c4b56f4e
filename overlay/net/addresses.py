"""Endpoints: how people write them, where a node listens, and what it tells its peers."""

from __future__ import annotations

import ipaddress
import socket
from typing import NamedTuple

from overlay.errors import ConfigError
from overlay.protocol import UdpAddress

ADVERTISED = 8  # addresses that a node tells its peers at most


class Endpoint(NamedTuple):
    """One place to connect to or to listen at."""

    transport: str  # "tcp" or "ipc"
    host: str  # for ipc the path
    port: int = 0

    def __str__(self) -> str:
        if self.transport == "ipc":
            return f"ipc://{self.host}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"tcp://{host}:{self.port}"

    @property
    def udp(self) -> UdpAddress | None:
        """Where the same node takes datagrams: the same port of UDP."""
        return None if self.transport == "ipc" else UdpAddress(self.host, self.port)


def parse_endpoint(text: str) -> Endpoint:
    """Read `HOST:PORT`, `[V6]:PORT`, `tcp://…` or `ipc://PATH`; ConfigError says what is wrong."""
    if text.startswith("ipc://"):
        path = text.removeprefix("ipc://")
        if not path.startswith("/") or len(path.encode()) > 100:
            raise ConfigError(f"{text!r}: an ipc path is absolute and has 100 bytes at most")
        return Endpoint("ipc", path)
    rest = text.removeprefix("tcp://")
    if "://" in rest:
        raise ConfigError(f"{text!r}: the transport is tcp:// or ipc://")
    host, colon, port = rest.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit()):
        raise ConfigError(f"{text!r}: write HOST:PORT, as in 192.168.1.5:7400 or [fe80::1]:7400")
    if int(port) > 65_535:
        raise ConfigError(f"{text!r}: a port is at most 65535")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ConfigError(f"{text!r}: put an IPv6 address in brackets, as in [::1]:7400")
    if any(c.isspace() for c in host) or not host:
        raise ConfigError(f"{text!r}: the host is not a name or an address")
    return Endpoint("tcp", host, int(port))


def is_wildcard(host: str) -> bool:
    """True for the addresses that mean every interface."""
    return host in ("0.0.0.0", "::", "*")


def is_loopback(host: str) -> bool:
    """True when nobody outside of this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def advertised(bound: list[Endpoint], by_hand: tuple[str, ...]) -> list[Endpoint]:
    """What to tell peers: what the user wrote, or else every address that others can reach.

    The address of the default route comes first, since that is the one most peers share. A port
    of 0 in an address written by hand means the port that was bound.
    """
    port = next((endpoint.port for endpoint in bound if endpoint.transport == "tcp"), 0)
    if by_hand:
        chosen = []
        for text in by_hand:
            endpoint = parse_endpoint(text)
            if endpoint.transport == "tcp" and endpoint.port == 0:
                endpoint = endpoint._replace(port=port)
            chosen.append(endpoint)
        return chosen
    found: dict[Endpoint, None] = {}
    for endpoint in bound:
        if endpoint.transport == "ipc" or not is_wildcard(endpoint.host):
            found[endpoint] = None
            continue
        version = 6 if ":" in endpoint.host else 4
        for host in local_addresses(version):
            found[Endpoint("tcp", host, endpoint.port)] = None
    return list(found)[:ADVERTISED]


def local_addresses(version: int) -> list[str]:
    """This machine's addresses, the default route's first; loopback only when there is no other."""
    import psutil  # late: a node bound to one address does not need it

    family = socket.AF_INET6 if version == 6 else socket.AF_INET
    up = {name for name, state in psutil.net_if_stats().items() if state.isup}
    found = [
        entry.address.partition("%")[0]
        for name, entries in psutil.net_if_addrs().items()
        for entry in entries
        if entry.family == family and name in up
    ]
    usable = [host for host in found if _reachable_from_outside(host)]
    first = _default_route_address(family)
    if first in usable:
        usable.remove(first)
        usable.insert(0, first)
    loopback = "::1" if version == 6 else "127.0.0.1"
    return usable or [loopback]


def _reachable_from_outside(host: str) -> bool:
    address = ipaddress.ip_address(host)
    return not (address.is_loopback or address.is_link_local or address.is_unspecified)


def _default_route_address(family: socket.AddressFamily) -> str:
    """Ask the kernel which source address it would use; nothing is sent."""
    target = "2001:db8::1" if family == socket.AF_INET6 else "192.0.2.1"  # documentation nets
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((target, 9))
        except OSError:
            return ""
        return str(probe.getsockname()[0])
