"""The links of one node, each as far as its two ends have agreed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import IntEnum

import msgspec

from overlay.ids import NodeId
from protocols.topology.kinds import Kind


class LinkState(IntEnum):
    """How far the two ends have agreed, as seen from here."""

    ASKED = 0  # my request is under way
    ACCEPTED = 1  # I said yes, and do not know whether the other end heard it
    UP = 2  # I know that each of us hears the other


class Link(msgspec.Struct):
    """One link."""

    state: LinkState
    mine: Kind  # why I want it
    theirs: Kind  # why the other end wants it, as far as it said
    heard: float  # when the other end last spoke of this link
    due: float = 0.0  # when the request is repeated
    tries: int = 0

    @property
    def kinds(self) -> Kind:
        """Why it exists, in the eyes of either end."""
        return self.mine | self.theirs

    def hear(self, kinds: Kind, now: float) -> None:
        """The other end spoke of it, and wants it for these reasons."""
        self.theirs = kinds
        self.heard = now


class LinkTable:
    """All links by peer, the oldest first."""

    __slots__ = ("_links", "_neighbours", "changes", "version")

    def __init__(self) -> None:
        self.version = 0  # of the links that are up
        self.changes = 0  # of any
        self._links: dict[NodeId, Link] = {}
        self._neighbours: tuple[NodeId, ...] | None = ()

    def __len__(self) -> int:
        return len(self._links)

    def __contains__(self, peer: object) -> bool:
        return peer in self._links

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self._links)

    def get(self, peer: NodeId) -> Link | None:
        """The link to that peer, in whatever state."""
        return self._links.get(peer)

    def items(self) -> list[tuple[NodeId, Link]]:
        """A copy, so that links may go while one looks at them."""
        return list(self._links.items())

    def values(self) -> list[Link]:
        """All links."""
        return list(self._links.values())

    def add(self, peer: NodeId, link: Link) -> Link:
        """Begin one."""
        self.changes += 1
        self._links[peer] = link
        return link

    def raised(self, link: Link) -> None:
        """The ends agreed."""
        link.state = LinkState.UP
        self._changed()

    def pop(self, peer: NodeId) -> Link:
        """End one."""
        self.changes += 1
        link = self._links.pop(peer)
        if link.state == LinkState.UP:
            self._changed()
        return link

    def _changed(self) -> None:
        self.version += 1
        self.changes += 1
        self._neighbours = None

    def neighbours(self) -> tuple[NodeId, ...]:
        """Those whose link is up."""
        if self._neighbours is None:
            self._neighbours = tuple(
                peer for peer, link in self._links.items() if link.state == LinkState.UP
            )
        return self._neighbours

    def besides(self, ring: Collection[NodeId]) -> int:
        """How many links, in any state, lead to others than these: the degree bound counts them."""
        return len(self._links) - sum(1 for peer in ring if peer in self._links)
