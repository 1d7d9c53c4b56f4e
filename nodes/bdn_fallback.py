"""Where beacons find nobody: BDNs are asked for brokers, which are met as seeds are.

Brokers are peers of the overlay, so whoever links to one finds its own zone from there. Where no
broker answers the BDNs themselves are met: they are peers, too.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from nodes.bdn_asking import BdnAsker
from nodes.discovery import NoBroker, endpoints_of, find
from overlay.errors import LocalProtocolError
from overlay.logs import about
from protocols.beacon import NobodyFound
from protocols.discovery import DiscoverySettings

if TYPE_CHECKING:
    from nodes.node import Node

log = logging.getLogger("overlay.discovery")

MET = 3  # brokers: the nearest may be of a zone that knows little of ours


class BdnFallback(BdnAsker):
    """Asks each time that the beacons of a node tell that it is alone."""

    def __init__(self, node: Node) -> None:
        super().__init__(node, NobodyFound)

    async def _ask(self) -> None:
        node = self._node
        try:
            found = await find(node)
        except NoBroker as error:
            log.info("no broker to meet: %s", error, extra=about("no-broker-found", "discovery"))
            places = list(node.config.section(DiscoverySettings).bdns)
        except LocalProtocolError as error:  # another discovery is under way
            log.info("BDNs are not asked: %s", error, extra=about("bdn-not-asked", "discovery"))
            return
        else:
            near = [endpoints_of(one) for one in found.candidates if one.answered]
            places = [told[0] for told in near if told][:MET]
        for place in places:
            if node.is_running:
                node.meet(place)
