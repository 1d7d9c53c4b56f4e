"""A host of the lab: a network namespace with its interfaces, addresses, folder and processes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.netns.commands import inside, tool
from tests.netns.process import HostProcess
from tests.netns.waiting import WITHIN


class Network(NamedTuple):
    """A bridge in the switch's namespace, and the addresses of those on it."""

    name: str
    number: int

    @property
    def bridge(self) -> str:
        """The bridge's interface name."""
        return f"b{self.number}"

    def ipv4(self, host: int) -> str:
        """The IPv4 address of the host with that number."""
        return f"10.77.{self.number}.{host}"

    def ipv6(self, host: int) -> str:
        """The IPv6 address of the host with that number."""
        return f"fd77:0:0:{self.number}::{host:x}"


class Port(NamedTuple):
    """Where an interface of a host meets the switch."""

    number: int
    network: Network
    interface: str  # inside the host
    ipv4: str
    ipv6: str

    @property
    def plug(self) -> str:
        """The switch's end of the cable."""
        return f"p{self.number}"

    @property
    def near_tap(self) -> str:
        """The end of the delay line at the host's side."""
        return f"t{self.number}"

    @property
    def far_tap(self) -> str:
        """The end of the delay line at the network's side: there it stands for the plug."""
        return f"u{self.number}"

    @property
    def stub(self) -> str:
        """The little bridge that joins the plug and its delay line."""
        return f"d{self.number}"


class Host:
    """Run commands here with `run` and `start`; the lab makes it, and ends what it started."""

    def __init__(self, name: str, namespace: str, folder: Path, ports: Sequence[Port]) -> None:
        self.name = name
        self.namespace = namespace
        self.folder = folder
        self.ports = tuple(ports)
        self.processes: list[HostProcess] = []

    def __repr__(self) -> str:
        return f"<Host {self.name} {self.address}>"

    @property
    def address(self) -> str:
        """Its IPv4 address on its first network."""
        return self.ports[0].ipv4

    @property
    def address6(self) -> str:
        """Its IPv6 address on its first network."""
        return self.ports[0].ipv6

    def port(self, network: str) -> Port:
        """Its port on that network."""
        return next(port for port in self.ports if port.network.name == network)

    def run(
        self,
        words: Sequence[str],
        *,
        check: bool = True,
        within: float = WITHIN,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; AssertionError with its words if it fails and `check`."""
        ip, *rest = inside(self.namespace, words)
        done = subprocess.run(
            [tool(ip), *rest],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within,
            env=self._environment(environment),
            cwd=self.folder,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(
                f"`{' '.join(words)}` on {self.name} ended with {done.returncode}:"
                f"\n{done.stdout}{done.stderr}"
            )
        return done

    def start(
        self, words: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> HostProcess:
        """Start a command; it ends with the lab at the latest."""
        process = HostProcess(self.namespace, words, self._environment(environment), self.folder)
        self.processes.append(process)
        return process

    def reaches(self, address: str, *, tries: int = 1) -> bool:
        """True when at least one of `tries` pings is answered within a second."""
        words = ["ping", "-n", "-q", "-c", str(tries), "-W", "1", "-i", "0.2", address]
        return self.run(words, check=False).returncode == 0

    def _environment(self, extra: Mapping[str, str] | None) -> dict[str, str]:
        # Control sockets of nodes are files: each host has its own, as machines do.
        base = os.environ if extra is None else extra
        return {**base, "XDG_RUNTIME_DIR": str(self.folder), "HOME": str(self.folder)}
