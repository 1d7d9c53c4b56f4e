"""Discovery as the paper ran it, beside ours: its BDN distributes, and its client waits to the end.

Ours departs in three ways that make waiting shorter: a BDN has links open to all brokers and hands
a request to them in one tick; it tells the requester whom to wait for; and it wants an address
proven, which costs a round trip. Here a BDN opens a connection to one unconnected broker after
the other (§9: "O(N) distribution"), has connections only to the closest and the farthest (§4), and
asks for no proof; a client waits for as many responses as there are brokers, or for the timeout,
and asks once.
"""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.structs import replace

from overlay.host import Host
from overlay.ids import NodeId
from overlay.protocol import Origin
from protocols.discovery import Bdn, BdnSettings, DiscoverySettings
from protocols.discovery.messages import Inject, Request, RequestAck, Where

CONNECTED = 2  # brokers, the closest and the farthest, to which connections are open
NEVER = 10.0  # s: past the timeout


class DistributingBdn(Bdn):
    """Turns to one broker after the other, and to each with a new connection: one round trip."""

    wanted = 5  # responses that a client is told to expect

    def _on_request(self, origin: Origin, msg: Request, now: float) -> None:
        self.counts.requests += 1
        ack = RequestAck(msg.id, msg.attempt, "accepted", total=self.wanted)
        self.effects.cast(origin.address, ack, origin.name)
        if not self._requests.is_new(origin.name, msg.id, msg.attempt):
            return
        self._make_plan(now)
        request = replace(msg, address=Where(*origin.address), cookie=b"", padding=b"")
        inject = Inject(origin.name, request)
        if len(self._plan) <= CONNECTED:
            self.effects.send(self._plan, inject)
            return
        at = now
        for name in self._plan:
            listed = self._registry.get(name)
            at += listed.rtt or 0.0 if listed is not None else 0.0
            self.effects.set_timer((name, inject), at)

    def on_timer(self, key: Hashable, now: float) -> None:
        """A connection is open, or what every BDN does."""
        if isinstance(key, tuple):
            name, inject = key
            self.effects.send(name, inject)
        else:
            super().on_timer(key, now)


def add_distributing_bdn(host: Host) -> None:
    """The recipe of such a node; it holds no links."""
    host.add(DistributingBdn, BdnSettings(held_links=0))


def patient(bdn: str, brokers: list[NodeId], selected: int) -> DiscoverySettings:
    """A client that waits for all, and asks once."""
    return DiscoverySettings(
        bdns=(bdn,),
        targets=selected,
        max_responses=len(brokers),
        retry=NEVER,
        retry_least=NEVER,
    )
