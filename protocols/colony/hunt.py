"""What a broker knows of a request: a hunt for each of its wants."""

from __future__ import annotations

from typing import TypeAlias

from overlay.ids import NodeId
from protocols.colony.messages import Acceptance, ServiceRequest, Want

Key: TypeAlias = tuple[NodeId, int]
"""A request: its client, and the client's id for it."""


class Asked:
    """Somebody who was asked for a want, and has not answered all."""

    __slots__ = ("left", "until")

    def __init__(self, left: int, until: float) -> None:
        self.left = left  # acceptances that end it; 0: a rejection does
        self.until = until


class Hunt:
    """One want on one broker."""

    __slots__ = ("asked", "ended", "found", "pending", "reported", "sender", "waits", "want")

    def __init__(self, want: Want, sender: NodeId) -> None:
        self.want = want
        self.sender = sender  # where answers go: the reverse path
        self.asked: dict[NodeId, None] = {sender: None}  # never (again): no loops
        self.pending: dict[NodeId, Asked] = {}
        self.found: dict[NodeId, Acceptance] = {}
        self.reported = 0
        self.waits = False  # for somebody who was lost and may return
        self.ended = False

    @property
    def is_satisfied(self) -> bool:
        """Whether all instances were found."""
        return len(self.found) >= self.want.instances

    def part(self) -> Want:
        """What is still to be found."""
        want = self.want
        if not self.found:
            return want
        replies = want.replies and max(1, want.replies - self.reported)
        return Want(want.index, want.services, want.instances - len(self.found), replies)


class Search:
    """One request on one broker."""

    __slots__ = (
        *("hunts", "kept", "key", "open", "recovered", "request", "unacknowledged", "until"),
    )

    def __init__(
        self, key: Key, request: ServiceRequest, until: float, recovered: bool = False
    ) -> None:
        self.key = key
        self.request = request  # as it came first
        self.until = until
        self.hunts: dict[int, Hunt] = {}
        self.recovered = recovered  # from disk: nobody knows whom the earlier life asked
        self.open = 0  # hunts
        self.kept: dict[bytes, None] = {}  # on disk
        self.unacknowledged = 0  # responses of a reliable request
