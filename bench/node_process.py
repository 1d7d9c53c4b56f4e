"""A bare node in a process of its own, for `bench node`: driver, security and the echo protocol.

`python -m bench.node_process NAME [--keys FOLDER] SEED...` prints its address, then a line for each
link that is up, and runs until SIGTERM.
"""

import json
import signal
import sys
from pathlib import Path

import trio

from nodes.node import Node
from nodes.recipes import visitor
from nodes.settings import node_config
from overlay.protocol import LinkUp


async def main(name: str, keys: Path | None, seeds: list[str]) -> None:
    """Run, and tell."""
    config = node_config(
        name,
        insecure=keys is None,
        keys=keys,
        seeds=seeds,
        profile="local",
        bind=["127.0.0.1:0"],
        control=False,
    )
    node = Node(config, visitor(config))
    links = node.events(LinkUp)
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with node, trio.open_nursery() as nursery:
            print(json.dumps({"address": node.endpoints[0]}), flush=True)

            async def tell() -> None:
                async for event in links:
                    print(json.dumps({"up": event.peer}), flush=True)

            nursery.start_soon(tell)
            async for _ in signals:
                break
            node.stop()
            nursery.cancel_scope.cancel()


if __name__ == "__main__":
    signal.alarm(300)  # a benchmark that was killed leaves nobody behind for long
    name, *rest = sys.argv[1:]
    keys = Path(rest[1]) if rest[:1] == ["--keys"] else None
    trio.run(main, name, keys, rest[2:] if keys else rest)
