"""What protocols send: to the queue of a peer's link, or back to the node itself."""

from __future__ import annotations

from collections.abc import Sequence

from overlay.ids import NodeId
from overlay.net.link import Link
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
        link = self._links.by_name.get(to) or self._open(to, scope, msg)
        if link is not None:
            self._links.mark(link)
            if not link.put(scope, msg):
                link.push()

    def send_to_many(self, to: Sequence[NodeId], scope: Scope, msg: Message) -> None:
        """Encode once, queue for each; a payload that travels apart is the same for all."""
        encoded = self._sizes.encoded(msg)
        for peer in to:
            link = self._links.by_name.get(peer) or self._open(peer, scope, msg)
            if link is not None:
                self._links.mark(link)
                if not link.put_encoded(scope, encoded):
                    link.push()

    def _open(self, to: NodeId, scope: Scope, msg: Message) -> Link | None:
        """Begin to open a link; None when the message is for the node itself."""
        if to != self._me:
            return self._links.to(to)
        if len(self.loopback) < LOOPBACK_CAP:
            self.loopback.append((scope, msg))
        else:
            self.loopback_dropped += 1
        return None
