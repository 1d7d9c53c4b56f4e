"""Serf: HashiCorp's agent on memberlist, SWIM with Lifeguard over UDP, written in Go.

Its agents log whom they see come and go. The log's clock counts seconds, so a line counts when it
is read.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from bench.connections import free_ports
from bench.peers.contender import GONE, JOINED, Command, Contender, Told

RUNNING = b"Serf agent running!"
CHANGE = re.compile(rb"serf: EventMember(Join|Failed|Leave|Reap): (\S+)")
KINDS = {b"Join": JOINED, b"Failed": GONE[0], b"Leave": GONE[1], b"Reap": GONE[1]}


class SerfPeers(Contender):
    """Agents with Serf's settings for one machine, which repeat a join that came too early."""

    name: ClassVar[str] = "serf"

    def missing(self) -> str:
        """The program, if it is not there."""
        return "" if shutil.which("serf") else "apt-get install serf"

    def commands(self, folder: Path, names: Sequence[str], seeds: int) -> dict[str, Command]:
        """Two ports for each agent: gossip, and a control port that nobody uses."""
        ports = free_ports(2 * len(names))
        binds = [f"127.0.0.1:{port}" for port in ports[::2]]
        controls = [f"127.0.0.1:{port}" for port in ports[1::2]]
        return {
            name: Command(self._words(name, bind, control, binds[:seeds]))
            for name, bind, control in zip(names, binds, controls, strict=True)
        }

    @staticmethod
    def _words(name: str, bind: str, control: str, seeds: Sequence[str]) -> list[str]:
        words = ["serf", "agent", f"-node={name}", f"-bind={bind}", f"-rpc-addr={control}"]
        words += ["-profile=local", "-retry-interval=1s"]
        return [*words, *(f"-retry-join={seed}" for seed in seeds if seed != bind)]

    def told(self, line: bytes, now: float) -> Told | None:
        """Read its log."""
        if RUNNING in line:
            return Told(now)
        if found := CHANGE.search(line):
            return Told(now, KINDS[found[1]], found[2].decode())
        return None
