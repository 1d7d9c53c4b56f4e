"""Weighs what brokers and clients send each other, and counts it by kind.

The paper counts each hop of each (un)advertisement, (un)subscription and control message, and gives
no sizes. Ours tell several lines in one message where they change at once; here every line is a
message of the paper, of the size that the workload says, and so is every publication. What else is
sent (words between a client, its old broker and the new one) has the size that it has on the wire.
Greetings of a client that connects, and leases of proxies, are not in the paper: counted apart. Two
brokers that are not neighbours have a link of their own here; in the paper their words go over the
tree, and are counted so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from overlay.ids import NodeId
from protocols.content.messages import Again, Change, Greeting, Page, Publication
from protocols.mobility.messages import StandIn

HEADERS = 60  # bytes of IP, TCP and ZMTP around a message
LINES = {  # fields of a message of a ledger, and what their lines are
    "advertisements": "advertisements",
    "unadvertised": "unadvertisements",
    "subscriptions": "subscriptions",
    "unsubscribed": "unsubscriptions",
    "grafts": "grafts",
    "ungrafted": "ungrafts",
}
TREE = tuple(LINES.values())
CONTROL = "control"
CONNECTING = "connecting"
RENEWALS = "renewals"
PUBLICATIONS = "publications"

_CHANGE = tuple(LINES)
_PAGE = ("advertisements", "subscriptions", "grafts")
_encoded = msgspec.msgpack.Encoder().encode


class Meter:
    """What a frame takes of a link; and how often what was sent."""

    def __init__(self, size: int, distance: Callable[[NodeId, NodeId], int]) -> None:
        self.size = size  # bytes of a line or a publication
        self.hops: Counter[str] = Counter()
        self.named: Counter[str] = Counter()  # messages as ours travel, by their class
        self._distance = distance
        self._by_type: Mapping[type, Callable[[Any, int], int]] = {
            Publication: self._publication,
            Change: self._change,
            Page: self._page,
            Greeting: self._connecting,
            Again: self._connecting,
            StandIn: self._stand_in,
        }

    def __call__(self, source: NodeId, target: NodeId, sections: list[Any]) -> int:
        """The bytes of a frame: all its messages."""
        weighed = 0
        by_type = self._by_type
        links = self._distance(source, target)
        for batch in sections[1::2]:
            for msg in batch:
                kind = type(msg)
                self.named[kind.__name__] += 1
                weighed += by_type.get(kind, self._control)(msg, links)
        return weighed

    @property
    def told(self) -> int:
        """Messages that change ledgers, so far."""
        return self.named["Change"] + self.named["Page"]

    def _publication(self, _msg: Publication, links: int) -> int:
        self.hops[PUBLICATIONS] += links
        return self.size

    def _change(self, msg: Change, links: int) -> int:
        return self.size * self._count(msg, _CHANGE, links)

    def _page(self, msg: Page, links: int) -> int:
        return self.size * self._count(msg, _PAGE, links) or self._connecting(msg, links)

    def _count(self, msg: Change | Page, fields: tuple[str, ...], links: int) -> int:
        found = 0
        for field in fields:
            lines = len(getattr(msg, field))
            if lines:
                self.hops[LINES[field]] += links * lines
                found += lines
        return found

    def _connecting(self, msg: Any, links: int) -> int:
        return self._as_it_is(CONNECTING, msg, links)

    def _stand_in(self, msg: StandIn, links: int) -> int:
        kind = RENEWALS if msg.proxy else CONTROL
        return self._as_it_is(kind, msg, links)

    def _control(self, msg: Any, links: int) -> int:
        return self._as_it_is(CONTROL, msg, links)

    def _as_it_is(self, kind: str, msg: Any, links: int) -> int:
        self.hops[kind] += links
        return len(_encoded(msg)) + HEADERS
