"""Weighs what brokers and clients send each other, and counts it by kind.

The paper counts each hop of each (un)advertisement, (un)subscription and control message, and gives
no sizes. Ours tell several lines in one message where they change at once; here every line is a
message of the paper, of the size that the workload says, and so is every publication. What else is
sent (greetings, requests for a ledger, words between old and new broker) has the size that it has
on the wire. Two brokers that are not neighbours have a link of their own here; in the paper their
words go over the tree, and are counted so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from overlay.ids import NodeId
from protocols.content.messages import Change, Page, Publication

HEADERS = 60  # bytes of IP, TCP and ZMTP around a message
TREE = ("advertisements", "unadvertisements", "subscriptions", "unsubscriptions")
CONTROL = "control"
PUBLICATIONS = "publications"

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
        lines = len(msg.unadvertised) + len(msg.unsubscribed)
        if msg.unadvertised:
            self.hops["unadvertisements"] += links * len(msg.unadvertised)
        if msg.unsubscribed:
            self.hops["unsubscriptions"] += links * len(msg.unsubscribed)
        return self.size * (lines + self._lines(msg, links))

    def _page(self, msg: Page, links: int) -> int:
        return self.size * self._lines(msg, links) or self._control(msg, links)

    def _lines(self, msg: Change | Page, links: int) -> int:
        if msg.advertisements:
            self.hops["advertisements"] += links * len(msg.advertisements)
        if msg.subscriptions:
            self.hops["subscriptions"] += links * len(msg.subscriptions)
        return len(msg.advertisements) + len(msg.subscriptions)

    def _control(self, msg: Any, links: int) -> int:
        self.hops[CONTROL] += links
        return len(_encoded(msg)) + HEADERS
