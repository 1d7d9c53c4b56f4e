"""The address book: where peers can be reached, what is known to work first."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from overlay.ids import NodeId
from overlay.net.addresses import Endpoint


class AddressBook:
    """What peers tell of themselves, in the order in which a link should try it.

    A host with two interfaces tells both of its addresses and cannot know which one we reach. The
    one where it answered last, or from where it called us, comes first.
    """

    def __init__(self, size: int) -> None:
        self.forgotten = 0
        self._size = size
        self._told: dict[NodeId, tuple[Endpoint, ...]] = {}
        self._proven: dict[NodeId, str] = {}  # hosts; of those in `_told` only

    def __contains__(self, peer: NodeId) -> bool:
        return peer in self._told

    def __getitem__(self, peer: NodeId) -> tuple[Endpoint, ...]:
        """Its addresses, the best first; none when it is unknown."""
        told = self._told.get(peer, ())
        proven = self._proven.get(peer)
        return tuple(sorted(told, key=lambda endpoint: endpoint.host != proven))

    def learn(self, peer: NodeId, endpoints: Iterable[Endpoint]) -> None:
        """Take what a peer says now for all that was known; nothing said changes nothing."""
        told = tuple(dict.fromkeys(endpoints))
        if not told:
            return
        if peer not in self._told and len(self._told) >= self._size:
            oldest = next(iter(self._told))
            del self._told[oldest]
            self._proven.pop(oldest, None)
            self.forgotten += 1
        self._told[peer] = told

    def prove(self, peer: NodeId, host: str) -> bool:
        """Packets pass between us and that address of a peer; False for one that it never told."""
        plain = _plain(host)
        if all(endpoint.host != plain for endpoint in self._told.get(peer, ())):
            return False
        self._proven[peer] = plain
        return True


def _plain(host: str) -> str:
    """An IPv4 address as people write it, also when it comes from a socket of both versions."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
