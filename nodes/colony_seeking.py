"""When no leader that a unit knows takes it: BDNs are asked for brokers, one of which may lead."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from nodes.bdn_asking import BdnAsker
from nodes.discovery import NoBroker, endpoints_of, find
from overlay.errors import LocalProtocolError
from overlay.logs import about
from protocols.colony import Colony, LeaderWanted

if TYPE_CHECKING:
    from nodes.node import Node

log = logging.getLogger("overlay.colony")

NEAREST = 3  # brokers that are tried: the nearest may lead nobody


class LeaderSeeker(BdnAsker):
    """Finds brokers by discovery whenever a unit wants a leader."""

    def __init__(self, node: Node) -> None:
        super().__init__(node, LeaderWanted)

    async def _ask(self) -> None:
        node = self._node
        try:
            found = await find(node)
        except (NoBroker, LocalProtocolError) as error:  # or another discovery is under way
            log.info("no leader found: %s", error, extra=about("no-leader-found", "colony"))
            return
        near = [one for one in found.candidates if one.answered and one.name != node.name]
        for one in near[:NEAREST]:
            node.learn(one.name, endpoints_of(one))
        if node.is_running:
            names = [one.name for one in near[:NEAREST]]
            node.call(node.protocol(Colony).learn_leaders, names)
