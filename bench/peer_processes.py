"""Peers as processes of their own for benchmarks: started at once, read together, always ended."""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from nodes.control import ask, sockets_of
from nodes.peer_options import PeerOptions
from nodes.spawning import peer_command, peer_environment
from overlay.security.authority import Authority
from overlay.security.rights import Rights

PATIENCE = 120.0  # s until something that must happen
ZONE = "bench"
ESTABLISHED = "01"  # as /proc/net/tcp writes it
PAGE = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """What a process took since its start."""

    cpu: float  # s
    sent: int  # bytes of frames
    memory: int  # bytes, resident


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
        self._rest = b""

    def take(self, data: bytes) -> None:
        """Read what it printed."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._on_line(msgspec.json.decode(line))

    def _on_line(self, told: dict[str, Any]) -> None:
        match told.get("event"):
            case None:
                self.ready = told["monotonic"]
            case "member-joined":
                self.view[told["member"]] = self.joined_last = told["monotonic"]
                self.failed.pop(told["member"], None)
            case "member-failed" | "member-left":
                self.view.pop(told["member"], None)
                self.failed[told["member"]] = told["monotonic"]
                self.removals.append(told["member"])

    def kill(self) -> None:
        """End it for good."""
        self.alive = False
        self.process.kill()
        self.process.wait()


class Processes(AbstractContextManager["Processes"]):
    """`size` peers of one zone; the first `seeds` of them at ports that all know."""

    def __init__(self, folder: Path, size: int, seeds: int) -> None:
        self.size = size
        self.expected_gone: dict[str, None] = {}
        self._folder = folder
        self._seeds = seeds
        self._peers: dict[str, PeerProcess] = {}
        self._selector = selectors.DefaultSelector()
        folder.mkdir(parents=True)
        self._runtime = folder / "run"
        self._runtime.mkdir(mode=0o700)
        self._log = (folder / "errors.log").open("wb")

    def start(self) -> None:
        """Make keys, then start everybody at once."""
        names = [f"peer{number:03}" for number in range(self.size)]
        authority = Authority.create(self._folder / "keys", "bench")
        for name in names:
            authority.issue(name, Rights(zones=(ZONE,)), 1).save(self._folder / "keys")
        ports = free_ports(self._seeds)
        seeds = tuple(f"127.0.0.1:{port}" for port in ports)
        environment = peer_environment(XDG_RUNTIME_DIR=str(self._runtime))
        for number, name in enumerate(names):
            bind = seeds[number] if number < len(seeds) else "127.0.0.1:0"
            options = PeerOptions(
                name=name,
                zone=ZONE,
                seed=tuple(seed for seed in seeds if seed != bind),
                profile="local",
                bind=(bind,),
                keys=str(self._folder / "keys"),
                events=True,
                json=True,
            )
            process = subprocess.Popen(
                peer_command(options),
                env=environment,
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
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"waited {PATIENCE:g} s in vain for {what}: {self._last_words()}"
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
                peer.take(data)
            else:
                self._selector.unregister(key.fileobj)
                if peer.alive and peer.name not in self.expected_gone:
                    raise RuntimeError(f"{peer.name} ended: {self._last_words()}")

    def _last_words(self) -> str:
        lines = (self._folder / "errors.log").read_text(errors="replace").splitlines()
        return lines[-1] if lines else "nobody complained"

    def false_removals(self) -> int:
        """How often somebody was removed who lives."""
        return sum(
            name not in self.expected_gone for peer in self.alive() for name in peer.removals
        )

    def usage(self) -> dict[str, Usage]:
        """What each living process took so far."""
        return {peer.name: self._usage(peer) for peer in self.alive()}

    def _usage(self, peer: PeerProcess) -> Usage:
        folder = Path(f"/proc/{peer.process.pid}")
        # In ns for each thread; the counters in ticks of 10 ms miss what runs for less.
        threads = (task / "schedstat" for task in (folder / "task").iterdir())
        cpu = sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9
        memory = int((folder / "statm").read_text().split()[1]) * PAGE
        (path,) = sockets_of(self._runtime / "zmq-overlay", peer.name)
        counters = ask(path, "status", timeout=PATIENCE)["driver"]["counters"]
        return Usage(cpu, counters["bytes sent"], memory)

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


def cut_connections(pid: int) -> int:
    """Close every TCP connection of a process as a broken network does; it goes on."""
    open_pidfd, take_descriptor = 434, 438  # system calls that Python 3.11 does not wrap
    system = ctypes.CDLL(None, use_errno=True).syscall
    process = system(open_pidfd, pid, 0)
    cut = 0
    try:
        for number in established(pid):
            taken = system(take_descriptor, process, number, 0)
            if taken < 0:
                raise OSError(ctypes.get_errno(), "a descriptor of another process")
            with socket.socket(fileno=taken) as connection:
                connection.shutdown(socket.SHUT_RDWR)
                cut += 1
    finally:
        os.close(process)
    return cut


def established(pid: int) -> list[int]:
    """The descriptors of a process that are TCP connections."""
    rows = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    inodes = {fields[9] for row in rows if (fields := row.split())[3] == ESTABLISHED}
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(entry)
        except FileNotFoundError:
            continue  # it was closed meanwhile
        if target.startswith("socket:[") and target[8:-1] in inodes:
            found.append(int(entry.name))
    return found


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago."""
    held = []
    for _ in range(count):
        one = socket.socket()
        one.bind(("127.0.0.1", 0))
        held.append(one)
    ports = [int(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return ports
