"""A program for hosts: a broker that lies about when it answered, and about its load.

    false_broker.py NAME BDN SECONDS

It claims to have answered SECONDS later than it did (so it seems nearer), within a microsecond, and
to be idle.
"""

from __future__ import annotations

import sys
from typing import Any

import trio

from nodes.broker import BrokerNode
from nodes.discovery_recipe import add_broker
from nodes.peer import Peer
from overlay.host import Host
from protocols.discovery import Usage
from protocols.discovery.interface import Moment
from tests.netns.peers import PORT


class FalseBroker(BrokerNode):
    """All of it is honest, but what it says of itself."""

    lie = 0.0

    def _assemble(self, host: Host) -> None:
        Peer._assemble(self, host)
        add_broker(
            host,
            self._config,
            lambda: Usage(memory_total=1 << 40),
            lambda now: Moment(now + self.lie, 1e-6),
        )


async def main(name: str, bdn: str, lie: float) -> None:
    """Run until killed."""
    options: dict[str, Any] = {"insecure": True, "bind": [f"0.0.0.0:{PORT}"], "control": False}
    async with FalseBroker.join(name=name, bdns=[bdn], **options) as broker:
        broker.lie = lie
        print("ready", flush=True)
        await broker.run()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2], float(sys.argv[3]))
