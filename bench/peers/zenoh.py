"""Zenoh: peers in a full mesh; each declares a liveliness token, and watches those of the others.

As ours do, all connect to a few whom they are told of, and learn the rest from them (gossip
scouting). A token goes with its session: when the connection closes, or its lease of 10 s ends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, ClassVar

from bench.connections import free_ports
from bench.peers.contender import GONE, JOINED, READY, Command, Contender
from bench.peers.telling import tell

if TYPE_CHECKING:
    import zenoh

PACKAGE = "eclipse-zenoh"
TOKENS = "bench"


class ZenohPeers(Contender):
    """Peers with zenoh's defaults."""

    name: ClassVar[str] = "zenoh"

    def missing(self) -> str:
        """The package, if it is not there."""
        return "" if find_spec("zenoh") else f"pip install {PACKAGE}"

    def commands(self, folder: Path, names: Sequence[str], seeds: int) -> dict[str, Command]:
        """This module, as a program."""
        addresses = [f"tcp/127.0.0.1:{port}" for port in free_ports(seeds)]
        listens = [*addresses, *["tcp/127.0.0.1:0"] * len(names)]
        program = [sys.executable, "-m", __spec__.name]
        return {
            name: Command([*program, name, listen, *(seed for seed in addresses if seed != listen)])
            for name, listen in zip(names, listens, strict=False)
        }


def main(name: str, listen: str, *seeds: str) -> None:
    """Run a peer until it is killed."""
    import zenoh

    config = zenoh.Config()
    for key, value in {
        "mode": "peer",
        "listen/endpoints": [listen],
        "connect/endpoints": list(seeds),
        "scouting/multicast/enabled": False,
    }.items():
        config.insert_json5(key, json.dumps(value))
    with zenoh.open(config) as session:

        def changed(sample: zenoh.Sample) -> None:
            member = str(sample.key_expr).rpartition("/")[2]
            tell(JOINED if sample.kind == zenoh.SampleKind.PUT else GONE[1], member)

        liveliness = session.liveliness()
        watched = liveliness.declare_subscriber(f"{TOKENS}/*", changed, history=True)
        token = liveliness.declare_token(f"{TOKENS}/{name}")
        tell(READY)
        Event().wait()  # for ever; the two must not be collected
        del watched, token


if __name__ == "__main__":
    main(*sys.argv[1:])
