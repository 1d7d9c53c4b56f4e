"""Peers as processes of their own for benchmarks: started at once, read together, always ended."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from bench.peers.contender import GONE, JOINED, READY, Contender, Told

PAGE = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """What a process took since its start."""

    cpu: float  # s
    memory: int  # bytes, resident


class NeverHappenedError(Exception):
    """Something that was waited for did not happen."""


class EndedError(Exception):
    """A peer ended by itself."""


class PeerProcess:
    """One process, and what its events said."""

    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.process = process
        self.ready = 0.0  # when it told its address, by its own clock
        self.view: dict[str, float] = {}  # the others, and since when
        self.failed: dict[str, float] = {}  # those it removed, and when
        self.removals: list[str] = []  # the same, also of those who came back
        self.joined_last = 0.0
        self.alive = True
        self.unread = b""  # the beginning of a line

    def hear(self, told: Told) -> None:
        """Take what it told."""
        if told.event == READY:
            self.ready = told.monotonic
        elif told.event == JOINED and told.member != self.name:
            self.view[told.member] = self.joined_last = told.monotonic
            self.failed.pop(told.member, None)
        elif told.event in GONE:
            self.view.pop(told.member, None)
            self.failed[told.member] = told.monotonic
            self.removals.append(told.member)

    def usage(self) -> Usage:
        """What it took so far."""
        folder = Path(f"/proc/{self.process.pid}")
        # In ns for each thread; the counters in ticks of 10 ms miss what runs for less.
        threads = (task / "schedstat" for task in (folder / "task").iterdir())
        cpu = sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9
        return Usage(cpu, int((folder / "statm").read_text().split()[1]) * PAGE)

    def kill(self) -> None:
        """End it for good."""
        self.alive = False
        self.process.kill()
        self.process.wait()


class Processes(AbstractContextManager["Processes"]):
    """`size` peers who are to know each other; the first `seeds` of them are known to all."""

    def __init__(self, contender: Contender, folder: Path, size: int, seeds: int) -> None:
        self.size = size
        self.expected_gone: dict[str, None] = {}
        self._contender = contender
        self._folder = folder
        self._seeds = seeds
        self._peers: dict[str, PeerProcess] = {}
        self._selector = selectors.DefaultSelector()
        folder.mkdir(parents=True)
        self._log = (folder / "errors.log").open("wb")

    def start(self) -> None:
        """Start everybody at once, and wait until all are ready."""
        names = [f"peer{number:03}" for number in range(self.size)]
        commands = self._contender.commands(self._folder, names, self._seeds)
        for name, command in commands.items():
            process = subprocess.Popen(
                command.words,
                env=command.environment,
                stdout=subprocess.PIPE,
                stderr=self._log,
                stdin=subprocess.DEVNULL,
            )
            assert process.stdout is not None
            os.set_blocking(process.stdout.fileno(), False)
            self._peers[name] = PeerProcess(name, process)
            self._selector.register(process.stdout, selectors.EVENT_READ, self._peers[name])
        self.wait(lambda: all(peer.ready for peer in self._peers.values()), "all to be ready")

    def alive(self) -> list[PeerProcess]:
        """Who was not killed, the seeds first."""
        return [
            peer
            for peer in self._peers.values()
            if peer.alive and peer.name not in self.expected_gone
        ]

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Read events until they make the condition true."""
        patience = self._contender.patience
        deadline = time.monotonic() + patience
        while not condition():
            if time.monotonic() > deadline:
                raise NeverHappenedError(
                    f"waited {patience:g} s in vain for {what}: {self._last_words()}"
                )
            self._read(0.1)

    def watch(self, seconds: float) -> None:
        """Read events for a while."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._read(0.5)

    def _read(self, timeout: float) -> None:
        for key, _ in self._selector.select(timeout):
            peer: PeerProcess = key.data
            data = os.read(key.fd, 1 << 16)
            if data:
                self._take(peer, data)
            else:
                self._selector.unregister(key.fileobj)
                if peer.alive and peer.name not in self.expected_gone:
                    raise EndedError(f"{peer.name} ended: {self._last_words()}")

    def _take(self, peer: PeerProcess, data: bytes) -> None:
        now = time.monotonic()
        *lines, peer.unread = (peer.unread + data).split(b"\n")
        for line in lines:
            told = self._contender.told(line, now)
            if told is not None:
                peer.hear(told)

    def _last_words(self) -> str:
        lines = (self._folder / "errors.log").read_text(errors="replace").splitlines()
        return lines[-1] if lines else "nobody complained"

    def false_removals(self) -> int:
        """How often somebody was removed who lives."""
        return sum(
            name not in self.expected_gone for peer in self.alive() for name in peer.removals
        )

    def __exit__(self, *_: object) -> None:
        for peer in self._peers.values():
            if peer.process.poll() is None:
                os.kill(peer.process.pid, signal.SIGKILL)
        for peer in self._peers.values():
            peer.process.wait()
            if peer.process.stdout is not None:
                peer.process.stdout.close()
        self._selector.close()
        self._log.close()
