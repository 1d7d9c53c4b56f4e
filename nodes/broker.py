"""A broker, as applications hold it: a peer that clients find, linked to other brokers.

async with BrokerNode.join(name="b1", bdns=["10.0.0.7:7400"], links=["10.0.0.8:7401"]) as broker:
    await broker.run()
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Self

import msgspec

from nodes.discovery_recipe import add_broker, overlay_clock, resolved, with_settings
from nodes.peer import Peer
from nodes.publishing import TopicPublisher, WouldWait
from nodes.settings import node_config
from nodes.usage import UsageMeter
from overlay.errors import OverlayError
from overlay.logs import about
from overlay.net.addresses import parse_endpoint
from overlay.protocol import PeerMet
from protocols.content import ContentSettings
from protocols.discovery import (
    TOPIC,
    AdvertisementChanged,
    Broker,
    BrokerSettings,
    DiscoverySettings,
)
from protocols.discovery.config import parse_group
from protocols.discovery.messages import Advertisement, Where
from protocols.timesync import TimeSync

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from nodes.settings import NodeConfig
    from overlay.host import Host

log = logging.getLogger("overlay.discovery")


class BrokerNode(Peer):
    """Advertises itself to BDNs and on the public topic, and answers who looks for a broker."""

    def __init__(
        self,
        config: NodeConfig,
        *,
        bdns: Iterable[str] = (),
        links: Iterable[str] = (),
        attributes: Any = None,
    ) -> None:
        settings = config.section(BrokerSettings)
        known = resolved((*settings.bdns, *bdns))
        told = with_settings(config, BrokerSettings, bdns=tuple(dict.fromkeys(known)))
        # Alone it asks its BDNs for others, as a client does: brokers should share one time.
        asked = (*config.section(DiscoverySettings).bdns, *known)
        told = with_settings(told, ContentSettings, role="broker")
        self._config = with_settings(told, DiscoverySettings, bdns=tuple(dict.fromkeys(asked)))
        self._links = {str(parse_endpoint(link)): None for link in links}
        self._topic: TopicPublisher | None = None
        super().__init__(self._config, attributes=attributes)
        self.node.control.register("broker", self._tell_broker)

    @classmethod
    def join(
        cls,
        *,
        name: str | None = None,
        bdns: Iterable[str] = (),
        links: Iterable[str] = (),
        **options: Any,
    ) -> Self:
        """A broker that advertises to these BDNs (HOST:PORT) and links to these brokers."""
        return cls(node_config(name, **options), bdns=bdns, links=links)

    def _assemble(self, host: Host) -> None:
        super()._assemble(host)
        usage = UsageMeter(self._connections, lambda: len(self.broker.neighbours()))
        add_broker(host, self._config, usage, overlay_clock(host.protocol(TimeSync)))
        host.listen(PeerMet, self._on_met)
        host.listen(AdvertisementChanged, self._on_advertisement)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        driver = self.node.driver
        driver.datagrams.join(parse_group(self._config.section(BrokerSettings).group))
        for link in self._links:
            driver.meet(link)
        try:
            self._topic = self.publisher(TOPIC, reliability="ordered")
            self._topic.open()
        except OverlayError as error:  # its certificate may not allow that topic: BDNs are enough
            self._topic = None
            log.warning(
                "not advertised on %s: %s",
                TOPIC,
                error,
                extra=about("not-advertised", "discovery"),
            )
        else:
            self._publish(self.broker.advertisement(driver.now()))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._topic is not None and self.node.is_running:
            self._topic.close()
        await super().__aexit__(kind, error, trace)

    @property
    def broker(self) -> Broker:
        """The machine."""
        return self.node.protocol(Broker)

    def _connections(self) -> int:
        return len(self.node.driver.status().sessions)

    def _on_met(self, event: PeerMet) -> None:
        if any(endpoint in self._links for endpoint in event.endpoints):
            self.node.driver.host.at_tick_end(lambda now: self.broker.link(event.peer, now))

    def _on_advertisement(self, event: AdvertisementChanged) -> None:
        if self._topic is not None:
            self.node.driver.host.at_tick_end(lambda _now: self._publish(event.advertisement))

    def _publish(self, told: Advertisement) -> None:
        """Tell it on the topic, with an address: there is no datagram that would show it."""
        addresses = [parse_endpoint(text).udp for text in self.node.endpoints]
        at = next((address for address in addresses if address is not None), None)
        if at is None or self._topic is None or not self._topic.is_open:
            return
        try:
            self._topic.publish_nowait(
                msgspec.msgpack.encode(msgspec.structs.replace(told, address=Where(*at)))
            )
        except WouldWait:
            log.warning(
                "an advertisement was not published: its subscribers are behind",
                extra=about("not-advertised", "discovery"),
            )

    def _tell_broker(self) -> dict[str, Any]:
        told = self.broker.advertisement(self.node.driver.now())
        return {
            "node": self.name,
            "advertisement": msgspec.structs.asdict(told) | {"address": None, "proof": None},
            "neighbours": self.broker.neighbours(),
            "counts": msgspec.to_builtins(self.broker.counts),
        }
