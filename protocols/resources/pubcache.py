"""The PubCache of an edge broker: the latest values of each dynamic resource (§4.2)."""

from __future__ import annotations

import msgspec

from overlay.predicates import Item
from protocols.resources.messages import Found

UNPUBLISHED = 20  # bits of a version for updates between two publications


def version_of(sequence: int, since: int = 0) -> int:
    """The version of values: the number of their publication, and updates that came after it."""
    return (sequence << UNPUBLISHED) + min(since, (1 << UNPUBLISHED) - 1)


class Latest(msgspec.Struct, frozen=True):
    """What a resource published last."""

    resource: str
    epoch: int
    version: int
    item: Item
    at: float

    def found(self, hops: int) -> Found:
        """As a result, read now."""
        return Found(self.resource, self.epoch, self.version, dict(self.item), 0.0, hops)


class PubCache:
    """Pairs of an advertisement's id and its latest publication."""

    def __init__(self) -> None:
        self._latest: dict[str, Latest] = {}

    def __len__(self) -> int:
        return len(self._latest)

    def get(self, resource: str) -> Latest | None:
        """The latest values of that resource, if it published any."""
        return self._latest.get(resource)

    def put(self, latest: Latest) -> None:
        """Keep these in place of what was before."""
        self._latest[latest.resource] = latest

    def drop(self, resource: str) -> None:
        """It is registered no more."""
        self._latest.pop(resource, None)
