"""What a topics benchmark needs of those who compete: who carries messages, and how to start them.

A publisher and a subscriber are a process each (`carrier_end`); a server between them, where there
is one, is started on loopback for each run and ended after it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from typing import ClassVar, NamedTuple

from bench.connections import free_ports

TOPIC = "bench/load"
STAMP = 8  # bytes at the start of a message whose delay counts
STARTS_WITHIN = 10.0  # s until a server must listen
LIVES = 150  # s; a benchmark that was killed leaves no server behind for longer
SERVERS_TOO = "/usr/local/sbin:/usr/sbin:/sbin"  # where a user's PATH may not look


class ServerError(Exception):
    """A server did not start."""


class Load(NamedTuple):
    """What a publisher sends."""

    size: int  # bytes
    number: int
    rate: float = 0.0  # messages/s; 0: as fast as it can

    def messages(self) -> Iterator[bytes]:
        """All of them, each at its time: the thread sleeps in between."""
        return self._paced() if self.rate else repeat(bytes(self.size), self.number)

    def _paced(self) -> Iterator[bytes]:
        for due in self.times():
            time.sleep(max(0.0, due - time.monotonic()))
            yield self.stamped()

    def times(self) -> Iterator[float]:
        """When each is due, by the monotonic clock, from now on."""
        began = time.monotonic()
        return (began + nth / self.rate for nth in range(1, self.number + 1))

    def stamped(self) -> bytes:
        """A message that says when it was published."""
        return time.monotonic_ns().to_bytes(STAMP, "big") + bytes(self.size - STAMP)


class Served(ABC):
    """Somebody who may need packages and a server."""

    name: ClassVar[str]
    packages: ClassVar[Mapping[str, str]] = {}  # what pip calls it, by the module's name
    program: ClassVar[str] = ""  # its server, which Debian packs under that name; none: no server
    debian: ClassVar[str] = ""  # where Debian calls the package otherwise

    def missing(self) -> str:
        """How to get what is not there; nothing when all is."""
        wanted = [package for module, package in self.packages.items() if not find_spec(module)]
        ways = [f"pip install {' '.join(wanted)}"] if wanted else []
        if self.program and not self._found():
            ways.append(f"apt-get install {self.debian or self.program}")
        return ", ".join(ways)

    def _found(self) -> str:
        where = f"{os.environ.get('PATH', os.defpath)}:{SERVERS_TOO}"
        return shutil.which(self.program, path=where) or ""

    def arguments(self, folder: Path, port: int) -> Sequence[str]:
        """What the server is started with; it may write into the folder."""
        return ()

    @contextmanager
    def serving(self, folder: Path) -> Iterator[int]:
        """The port where a server listens; without one, a port that is free."""
        (port,) = free_ports(1)
        if not self.program:
            yield port
            return
        folder.mkdir(parents=True, exist_ok=True)
        words = ["timeout", "--kill-after=5", str(LIVES)]
        words += [self._found(), *self.arguments(folder, port)]
        log = folder / "server.log"
        with log.open("wb") as out:
            server = subprocess.Popen(
                words, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        try:
            self._wait_for(server, port, log)
            yield port
        finally:
            server.terminate()
            server.wait()

    def _wait_for(self, server: subprocess.Popen[bytes], port: int, log: Path) -> None:
        deadline = time.monotonic() + STARTS_WITHIN
        while server.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        lines = log.read_text(errors="replace").splitlines() or ["it said nothing"]
        raise ServerError(f"{self.program} does not listen: {lines[-1]}")


class Carrier(Served):
    """Somebody who carries messages from a publisher to a subscriber."""

    messages: ClassVar[int]  # about a second of its messages

    @abstractmethod
    def receive(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        """Subscribe, tell when nothing can be missed, and hand over each until `take` is False."""

    @abstractmethod
    def send(self, port: int, load: Load) -> None:
        """Publish everything; return when it left this process."""


def until_received() -> None:
    """Wait until the subscriber has all: whoever has no server must be there until then."""
    sys.stdin.read()
