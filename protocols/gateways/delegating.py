"""The delegate's part: registrations go to topics' homes, what homes tell goes to gateways."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from protocols.gateways.core import Core
from protocols.gateways.covering import Covering, summary
from protocols.gateways.interface import PATTERNS
from protocols.gateways.ledger import OWN_STAKES, PUBLISHES, Book, Stake, key_for
from protocols.gateways.messages import Party
from protocols.gateways.names import gateway_key, topic_id
from protocols.gateways.placing import Placement
from protocols.gateways.reading import Reader
from protocols.gateways.writing import Writer

MAX_ENDPOINTS = 8


class Envoy:
    """Stands between the gateways of its zone and the homes, while it is in the management zone."""

    def __init__(self, core: Core, reader: Reader, writer: Writer, covering: Covering) -> None:
        self._core = core
        self._reader = reader
        self._writer = writer
        self._covering = covering
        self._told: dict[str, dict[NodeId, Stake]] = {}  # topic, gateway
        self._interests = Placement(writer, core.managers, Book.INTERESTS, topic_id)
        self._prospects = Placement(writer, core.fellows, Book.PROSPECTS, gateway_key)

    # -- registrations --------------------------------------------------------------------------

    def settle(self, topics: Iterable[str], now: float) -> None:
        """What gateways register changed: tell the homes."""
        core = self._core
        if not core.manages or core.base is None:
            return
        parties: dict[NodeId, Party] = {}
        for topic in topics:
            before = self._told.get(topic, {})
            after: dict[NodeId, Stake] = {}
            for gateway, stake in self._reader.holders(Book.REGISTRATIONS, topic).items():
                party = parties.get(gateway)
                if party is None:
                    party = parties[gateway] = self._party(gateway)
                after[gateway] = Stake(stake.flags, party)
            for gateway in before:
                if gateway not in after:
                    self._interests.withdraw(key_for(topic, gateway), now)
            for gateway, stake in after.items():
                self._interests.put(key_for(topic, gateway), stake, now)
            if after:
                self._told[topic] = after
            else:
                self._told.pop(topic, None)

    def _party(self, gateway: NodeId) -> Party:
        core = self._core
        assert core.base is not None
        record = core.base.record(gateway)
        endpoints = () if record is None else record.endpoints[:MAX_ENDPOINTS]
        return Party(gateway, core.zone, endpoints)

    def entered(self, now: float) -> None:
        """This node is in the management zone: forward what gateways registered so far."""
        self.settle(list(self._reader.topics(Book.REGISTRATIONS)), now)
        self.publish(now)

    def left(self, now: float) -> None:
        """It is no more: other delegates tell, and what this one told holds until they do."""
        self._told.clear()
        for peer in self._writer.peers(Book.PROSPECTS):
            self._writer.forget_all(Book.PROSPECTS, peer, now)

    def follow_managers(self, new: Sequence[NodeId], gone: Sequence[NodeId], now: float) -> None:
        """Homes moved: tell the new ones at once."""
        self._interests.follow(new, gone, now)

    # -- topics for patterns --------------------------------------------------------------------

    def settle_existing(self, topics: Iterable[str], now: float) -> None:
        """Topics appeared or ended that patterns of this zone cover, as homes tell."""
        for topic in topics:
            if self._reader.holders(Book.EXISTING, topic):
                self._prospects.put(topic, OWN_STAKES[PUBLISHES], now)
            else:
                self._prospects.withdraw(topic, now)

    def follow_fellows(self, new: Sequence[NodeId], gone: Sequence[NodeId], now: float) -> None:
        """Gateways moved."""
        self._prospects.follow(new, gone, now)

    def publish(self, now: float) -> None:
        """Let the management zone know the patterns of this zone."""
        core = self._core
        management = core.zones.management
        if management is None or management.stopped or core.base is None:
            return
        text = summary(self._covering.patterns, core.settings.pattern_bytes)
        said = management.view.attributes(core.me).get(PATTERNS, "")
        if text == said:
            return
        try:
            if text:
                management.set_attribute(PATTERNS, text, now)
            else:
                management.remove_attribute(PATTERNS, now)
        except LocalProtocolError:
            core.counts.attributes_refused += 1
