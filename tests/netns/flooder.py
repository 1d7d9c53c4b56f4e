"""A program for hosts: flood nodes with well-formed requests, advertisements and pings.

flooder.py HOST:PORT…    prints `ready`, and floods until killed
"""

from __future__ import annotations

import sys

import trio

from nodes.node import Node
from nodes.scenarios.discovery_flooder import Flooder, add_flooder
from nodes.settings import node_config
from protocols.discovery.config import parse_address
from tests.netns.peers import PORT

EACH = 20  # of each of three kinds to each target, at once
PAUSE = 0.01  # s: 6,000 datagrams a second to each target


async def main(*targets: str) -> None:
    """Run until killed."""
    config = node_config("flooder", insecure=True, bind=[f"0.0.0.0:{PORT}"], control=False)
    async with Node(config, add_flooder) as node:
        flooder = node.protocol(Flooder)
        print("ready", flush=True)
        while True:
            for target in targets:
                node.call(flooder.flood, parse_address(target), EACH)
            await trio.sleep(PAUSE)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
