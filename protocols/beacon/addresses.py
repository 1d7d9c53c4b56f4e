"""Which of the endpoints in a beacon can be used, and by which version of IP this node is found."""

from __future__ import annotations

from collections.abc import Iterable

TCP = "tcp://"


def host_of(endpoint: str) -> str:
    """The host of a TCP endpoint, without the brackets of IPv6."""
    host = endpoint.removeprefix(TCP).rpartition(":")[0]
    return host[1:-1] if host.startswith("[") else host


def is_loopback(host: str) -> bool:
    """Whether that address means the own machine, whoever uses it."""
    return host.startswith("127.") or host in ("::1", "localhost")


def usable(endpoints: Iterable[str], source: str) -> tuple[str, ...]:
    """What a node at `source` can be reached by; the address that it speaks from comes first.

    A path in somebody's file system, or somebody's loopback, is no way to another machine.
    """
    near = is_loopback(source)
    found = [
        endpoint
        for endpoint in dict.fromkeys(endpoints)
        if endpoint.startswith(TCP) and (near or not is_loopback(host_of(endpoint)))
    ]
    return tuple(sorted(found, key=lambda endpoint: host_of(endpoint) != source))


def versions(endpoints: Iterable[str]) -> dict[int, None]:
    """By which versions of IP a node is reached; one with a name of DNS perhaps by both."""
    found: dict[int, None] = {}
    for endpoint in endpoints:
        if endpoint.startswith(TCP):
            host = host_of(endpoint)
            if ":" in host:
                found[6] = None
            else:
                found[4] = None
                if not host.replace(".", "").isdigit():
                    found[6] = None
    return found
