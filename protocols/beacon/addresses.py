"""Which of the endpoints in a beacon can be used, and by which version of IP this node is found."""

from __future__ import annotations

from collections.abc import Iterable

TCP = "tcp://"
LINK_LOCAL = "%"  # before the interface that it belongs to


def host_of(endpoint: str) -> str:
    """The host of a TCP endpoint, without the brackets of IPv6."""
    host = endpoint.removeprefix(TCP).rpartition(":")[0]
    return host[1:-1] if host.startswith("[") else host


def is_loopback(host: str) -> bool:
    """Whether that address means the own machine, whoever uses it."""
    return host.startswith("127.") or host in ("::1", "localhost")


def usable(endpoints: Iterable[str], source: str, port: int = 0) -> tuple[str, ...]:
    """What a node that speaks from `source` can be reached by; that address comes first.

    It is added if it was not told: an interface that came since its start, or one without any
    other address. Datagrams leave from the port of the node's links. A path in somebody's file
    system, or somebody's loopback, is no way to another machine.
    """
    near = is_loopback(source)
    told = [endpoint for endpoint in dict.fromkeys(endpoints) if endpoint.startswith(TCP)]
    found = [endpoint for endpoint in told if near or not is_loopback(host_of(endpoint))]
    if port and any(endpoint.endswith(f":{port}") for endpoint in told):
        place = f"{TCP}[{source}]:{port}" if ":" in source else f"{TCP}{source}:{port}"
        if place not in found:
            found.append(place)
    # A link-local address depends on this node's own interfaces: better any other one.
    return tuple(
        sorted(found, key=lambda one: (LINK_LOCAL in host_of(one), host_of(one) != source))
    )


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
