"""Pyre, the Python port of Zyre: UDP beacons find peers, links of ZeroMQ hold them (ZRE, RFC 36).

On loopback alone it multicasts its beacons. It takes a peer for gone after 30 s of silence.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import ClassVar

from bench.peers.contender import GONE, JOINED, READY, Command, Contender
from bench.peers.telling import tell

PACKAGE = "zeromq-pyre"  # `pyre` alone is something else


class PyrePeers(Contender):
    """Peers with pyre's defaults; whom they may meet they find by themselves."""

    name: ClassVar[str] = "pyre"

    def missing(self) -> str:
        """The package, if it is not there."""
        try:
            version(PACKAGE)
        except PackageNotFoundError:
            return f"pip install {PACKAGE}"
        return ""

    def commands(self, folder: Path, names: Sequence[str], seeds: int) -> dict[str, Command]:
        """This module, as a program."""
        return {name: Command([sys.executable, "-m", __spec__.name, name]) for name in names}


def main(name: str) -> None:
    """Run a peer until it is killed."""
    from pyre import Pyre

    node = Pyre(name)
    node.start()
    tell(READY)
    while True:
        kind, _, peer, *_ = node.recv()
        if kind == b"ENTER":
            tell(JOINED, peer.decode())
        elif kind == b"EXIT":
            tell(GONE[1], peer.decode())


if __name__ == "__main__":
    main(sys.argv[1])
