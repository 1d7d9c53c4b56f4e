"""Our own peers for benchmarks: `overlay peer` with keys, all in one zone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from bench.connections import free_ports
from bench.peers.contender import Command, Contender
from nodes.control import ask, sockets_of
from nodes.peer_options import PeerOptions
from nodes.spawning import peer_command, peer_environment
from overlay.security.authority import Authority
from overlay.security.rights import Rights

ZONE = "bench"


class OverlayPeers(Contender):
    """Peers with the settings for one machine, and security on."""

    name: ClassVar[str] = "overlay"
    patience: ClassVar[float] = 120.0

    def __init__(self) -> None:
        self._sockets = Path()

    def missing(self) -> str:
        """Never: this is the project itself."""
        return ""

    def commands(self, folder: Path, names: Sequence[str], seeds: int) -> dict[str, Command]:
        """Make keys for all; whoever is no seed takes any port."""
        keys, runtime = folder / "keys", folder / "run"
        runtime.mkdir(mode=0o700)
        self._sockets = runtime / "zmq-overlay"
        authority = Authority.create(keys, "bench")
        for name in names:
            authority.issue(name, Rights(zones=(ZONE,)), 1).save(keys)
        addresses = [f"127.0.0.1:{port}" for port in free_ports(seeds)]
        binds = [*addresses, *["127.0.0.1:0"] * len(names)]
        environment = peer_environment(XDG_RUNTIME_DIR=str(runtime))
        return {
            name: Command(self._words(name, bind, addresses, keys), environment)
            for name, bind in zip(names, binds, strict=False)
        }

    def bytes_sent(self, name: str) -> int:
        """Bytes of frames that a peer sent since its start, by its own count."""
        (path,) = sockets_of(self._sockets, name)
        sent: int = ask(path, "status", timeout=self.patience)["driver"]["counters"]["bytes sent"]
        return sent

    @staticmethod
    def _words(name: str, bind: str, seeds: Sequence[str], keys: Path) -> list[str]:
        options = PeerOptions(
            name=name,
            zone=ZONE,
            seed=tuple(seed for seed in seeds if seed != bind),
            profile="local",
            bind=(bind,),
            keys=str(keys),
            events=True,
            json=True,
        )
        return peer_command(options)
