"""What protocols send: to the queue of a peer's link, or back to the node itself."""

from __future__ import annotations

from collections.abc import Sequence

from overlay.ids import NodeId
from overlay.net.links import Links
from overlay.protocol import Message, Scope
from overlay.wire.sizes import Sizes

LOOPBACK_CAP = 10_000  # messages to itself that a node may have waiting


class Outbox:
    """Queues messages; the driver flushes the links at the end of its tick."""

    def __init__(self, me: NodeId, links: Links, sizes: Sizes) -> None:
        self.loopback: list[tuple[Scope, Message]] = []  # what the node sent to itself
        self.loopback_dropped = 0
        self._me = me
        self._links = links
        self._sizes = sizes

    def send(self, to: NodeId, scope: Scope, msg: Message) -> None:
        """Queue for one peer; the first message for it begins to open a link."""
        link = self._links.by_name.get(to)
        if link is None:
            self._send_first(to, scope, msg)
            return
        self._links.mark(link)
        if not link.writer.put(scope, msg):
            link.push()

    def send_to_many(self, to: Sequence[NodeId], scope: Scope, msg: Message) -> None:
        """Encode once, queue for each."""
        if msg.__class__ in self._sizes.carriers:
            for peer in to:  # its payload may be a part of its own: nothing to encode
                self.send(peer, scope, msg)
            return
        size, raw = self._sizes.encoded(msg)
        for peer in to:
            link = self._links.by_name.get(peer)
            if link is None:
                self._send_first(peer, scope, msg)
                continue
            self._links.mark(link)
            if not link.writer.put_encoded(scope, raw, size):
                link.push()

    def _send_first(self, to: NodeId, scope: Scope, msg: Message) -> None:
        if to == self._me:
            if len(self.loopback) < LOOPBACK_CAP:
                self.loopback.append((scope, msg))
            else:
                self.loopback_dropped += 1
            return
        link = self._links.to(to)
        self._links.mark(link)
        link.writer.put(scope, msg)
