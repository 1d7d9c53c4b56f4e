"""How requests and their answers travel: directly, or hop by hop over the links of the zone.

Where nodes may not link with everybody (`direct = false`) a request for a member of the zone is
routed to that member's own place on the ring, and so is the answer. Replicas of one group still
talk directly: they are few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from overlay.ids import NodeId, vid_of
from overlay.protocol import Effects, Message
from protocols.dht.interface import DHT
from protocols.dht.messages import Confirm, Confirmed, Reply, Request, Route, RouteRequest
from protocols.membership.interface import MembershipView
from protocols.routing.events import RouteArrived
from protocols.routing.interface import Router

Posted: TypeAlias = Request | Reply | Confirm | Confirmed | RouteRequest | Route


class Post:
    """Sends what an application waits for; `router` is None where links go everywhere."""

    def __init__(self, effects: Effects, view: MembershipView, router: Router | None) -> None:
        self._effects = effects
        self._view = view
        self._router = router
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Posted).decode
        self.misread = 0  # payloads that are no message
        self.now = 0.0  # the node's clock: routing wants it

    def send(self, to: NodeId | Sequence[NodeId], message: Message) -> None:
        """Bring a message to a node, best effort."""
        assert isinstance(to, str)
        if self._router is None or to not in self._view:
            self._effects.send(to, message)
        else:
            self._router.route(
                vid_of(to), self._encode(message), self.now, service=DHT, direct=False
            )

    def on_arrived(
        self, event: RouteArrived, handle: Callable[[NodeId, Message, float], None], now: float
    ) -> None:
        """Hand a routed message to its handler."""
        if event.service != DHT:
            return
        try:
            message = self._decode(event.payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.misread += 1
            return
        handle(event.origin, message, now)
