"""The gateway's part: which streams this node relays, and whom it asks for them."""

from __future__ import annotations

from collections.abc import Iterable

from overlay.ids import NodeId
from protocols.topics.core import Core
from protocols.topics.departures import Departures
from protocols.topics.messages import LEFT, NO_INTEREST, NOT_ADMITTED, Knock, StreamKey
from protocols.topics.modes import Mode
from protocols.topics.receiving import Incoming
from protocols.topics.relation import Seat
from protocols.topics.relaying import Relay

KNOCK_AGAIN = 4  # × offer_every
WANT_NO_MORE = (LEFT, NO_INTEREST, NOT_ADMITTED)  # why a receiver is shunned


class Bridge:
    """Relays streams of this zone's publishers to other zones, and theirs to this zone."""

    def __init__(self, core: Core, departures: Departures) -> None:
        self._core = core
        self._departures = departures
        self._topics: dict[str, None] = {}  # for which this node stands
        self._knocked: dict[tuple[str, NodeId], float] = {}  # who was called a moment ago, and when

    def appointed(self, topic: str) -> None:
        """This node stands for its zone in a topic."""
        self._topics[topic] = None

    def dismissed(self, topic: str) -> None:
        """It does so no more."""
        self._topics.pop(topic, None)
        self._knocked = {pair: at for pair, at in self._knocked.items() if pair[0] != topic}

    # -- relays ---------------------------------------------------------------------------------

    def behind(self, key: StreamKey, topic: str, source: NodeId) -> dict[Seat, str]:
        """To whom this node must hand a stream on: other zones' gateways, or its own zone.

        Others get it only if this node has it from its publisher: one that moved here may still
        come by another zone, and two gateways must not feed each other.
        """
        core, book = self._core, self._core.book
        if not book.is_gateway(topic) or key[0] == core.me:
            return {}
        if key[0] in core.members:
            remote = book.remote_gateways(topic) if source == key[0] else {}
            return {
                Seat(peer, relay=True): far.zone for peer, far in remote.items() if far.subscribes
            }
        found = {
            Seat(peer): ""
            for peer in core.audience.interested(topic)
            if core.may(peer, "subscribe", topic)
        }
        if core.wanted_here(topic):
            found[Seat(core.me)] = ""
        return found

    def add_relay(self, stream: Incoming, window: int, keep: int) -> None:
        """Hand a stream on from where it begins here."""
        key, topic = stream.key, stream.topic
        relay = Relay(
            self._core,
            key,
            topic,
            stream.mode,
            window=window,
            keep=keep,
            wanted=lambda: self.behind(key, topic, stream.source),
        )
        relay.progressed = stream.relay_progressed
        relay.source = lambda: stream.source
        stream.relay = relay
        self._departures.add(relay)

    def is_idle(self, stream: Incoming) -> bool:
        """Whether nobody is behind a relay any more, or all who are get it from another one.

        Such a relay holds nothing up. If it stayed, it would acknowledge what the others do not
        have, and its history would lack that when they come back: their gateway may die.
        """
        relay = stream.relay
        if relay is None or relay.relations or relay.orphans:
            return False
        behind = self.behind(stream.key, stream.topic, stream.source)
        return not behind or (
            stream.mode is Mode.ACK and all(seat in relay.shunned for seat in behind)
        )

    def others_serve(self, stream: Incoming) -> bool:
        """Whether somebody behind an idle relay may want more of it, from another one.

        What the zone says of who is interested is older than the word of who left.
        """
        relay = stream.relay
        assert relay is not None
        behind = self.behind(stream.key, stream.topic, stream.source)
        return any(relay.shunned.get(seat) not in WANT_NO_MORE for seat in behind)

    # -- calling --------------------------------------------------------------------------------

    def call_all(self, streams: Iterable[Incoming], now: float) -> None:
        """Ask for streams that should be here and are not: the first call may be lost."""
        again = self._core.settings.offer_every * KNOCK_AGAIN
        self._knocked = {pair: at for pair, at in self._knocked.items() if now - at < again}
        arriving: dict[str, dict[NodeId, None]] = {}
        for stream in streams:
            if stream.relay is not None and stream.relay.attached:
                arriving.setdefault(stream.topic, {})[stream.source] = None
        for topic in self._topics:
            if self._core.book.gateway_of(topic) != self._core.me:
                continue  # it stands for its zone only until its successor is known everywhere
            self._call(topic, arriving.get(topic, {}), now)

    def _call(self, topic: str, known: dict[NodeId, None], now: float) -> None:
        book = self._core.book
        far = book.remote_gateways(topic)
        wanted: list[NodeId] = []
        if any(one.subscribes for one in far.values()):
            wanted += book.local_publishers(topic)
        if book.local_subscribers(topic):
            served = {far[peer].zone for peer in known if peer in far}
            wanted += [
                peer for peer, one in far.items() if one.publishes and one.zone not in served
            ]
        for peer in wanted:
            if peer == self._core.me or peer in known:
                continue
            if (topic, peer) not in self._knocked:
                self._knocked[topic, peer] = now
                self._core.effects.send(peer, Knock(topic))
