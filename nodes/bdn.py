"""A broker discovery node, as applications hold it.

async with BdnNode.join(name="bdn", bind=["0.0.0.0:7400"]) as bdn:
    print(bdn.brokers)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import msgspec

from nodes.discovery_recipe import add_bdn, overlay_clock
from nodes.peer import Peer
from overlay.errors import RemoteProtocolError
from overlay.protocol import UdpAddress
from protocols.discovery import TOPIC, Bdn, BdnSettings
from protocols.discovery.config import parse_group
from protocols.discovery.messages import Advertisement
from protocols.timesync import TimeSync

if TYPE_CHECKING:
    from nodes.settings import NodeConfig
    from nodes.subscribing import Message
    from overlay.host import Host

_read = msgspec.msgpack.Decoder(Advertisement).decode


class BdnNode(Peer):
    """Lists the brokers that advertise here or on the public topic, and passes requests on."""

    def __init__(self, config: NodeConfig, *, attributes: Any = None) -> None:
        self._config = config
        super().__init__(config, attributes=attributes)
        self.node.control.register("bdn", self._tell_bdn)

    def _assemble(self, host: Host) -> None:
        super()._assemble(host)
        add_bdn(host, self._config, overlay_clock(host.protocol(TimeSync)))

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.node.driver.datagrams.join(parse_group(self._config.section(BdnSettings).group))
        self.on_message(TOPIC, self._on_message)
        return self

    @property
    def bdn(self) -> Bdn:
        """The machine."""
        return self.node.protocol(Bdn)

    @property
    def brokers(self) -> list[tuple[Advertisement, UdpAddress, float | None]]:
        """All brokers listed now, each with its address and the round trip to it."""
        return self.bdn.brokers()

    def _on_message(self, message: Message) -> None:
        """Take an advertisement of the topic; what is none is counted, as on any wire."""
        try:
            told = _read(message.data)
        except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
            refused = RemoteProtocolError("advertisement-malformed", str(error)[:200])
            self.node.driver.host.refuse(message.publisher, refused)
        else:
            self.node.call(self.bdn.learn, told, message.publisher)

    def _tell_bdn(self) -> dict[str, Any]:
        return {
            "node": self.name,
            "overlay": self.node.overlay,
            "brokers": [
                {
                    "name": told.name,
                    "address": f"{address.host}:{address.port}",
                    "round_trip": rtt,
                    "endpoints": told.endpoints,
                    "logical": told.logical,
                    "region": told.region,
                    "institution": told.institution,
                    "links": told.links,
                }
                for told, address, rtt in self.brokers
            ],
            "counts": msgspec.to_builtins(self.bdn.counts),
        }
