"""What a node costs: its start, its memory, its idle CPU, and two hundred of them in one process.

Baselines of the same run: a bare interpreter, and one that has a ZeroMQ socket.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep

import psutil
import trio

from bench.processes import measure_alone
from bench.progress import Progress
from bench.report import Options, Report, machine
from nodes.spawning import peer_environment
from overlay.net.config import NetSettings
from overlay.net.driver import Driver
from overlay.protocol import LinkUp
from overlay.security.authority import Authority
from overlay.security.rights import Rights
from protocols.echo import Echo, EchoConfig

NAME = "node"

IDLE_SECONDS = 20
CROWD = 200
CROWD_LINKS = 10
START_BAR, MEMORY_BAR, IDLE_BAR = 0.4, 45.0, 0.3

BARE = "print('ready', flush=True); input()"
WITH_SOCKET = f"import zmq; s = zmq.Context().socket(zmq.ROUTER); {BARE}"


class Peer:
    """An `overlay peer` process, from its start to its first message."""

    def __init__(self, folder: Path, name: str, secure: bool, seeds: list[str]) -> None:
        words = [sys.executable, "-m", "nodes.cli", "peer", "--name", name, "--json", "--events"]
        words += ["--profile", "local", "--bind", "127.0.0.1:0"]
        words += ["--keys", str(folder / "keys")] if secure else ["--insecure"]
        for seed in seeds:
            words += ["--seed", seed]
        environment = peer_environment(XDG_RUNTIME_DIR=str(folder), OVERLAY_HOME=str(folder))
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as on most machines
        began = monotonic()
        self.process = subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.address = str(self._told()["address"])
        for _ in seeds:
            self._told()  # each link says Hello and is welcomed
        self.started_in = monotonic() - began

    def _told(self) -> dict[str, object]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a peer ended at once: try `overlay peer --insecure` by hand")
        told: dict[str, object] = json.loads(line)
        return told

    @property
    def resident(self) -> float:
        """Mebibytes."""
        return float(psutil.Process(self.process.pid).memory_info().rss) / 2**20

    @property
    def busy(self) -> float:
        """CPU seconds so far."""
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)


@contextmanager
def running(folder: Path, name: str, *, secure: bool, seeds: list[str]) -> Iterator[Peer]:
    """A peer that ends with the block."""
    peer = Peer(folder, name, secure, seeds)
    try:
        yield peer
    finally:
        peer.process.terminate()
        peer.process.communicate(timeout=30)


def interpreter(code: str) -> tuple[float, float]:
    """Seconds to the first line of a bare interpreter, and its mebibytes."""
    began = monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    started = monotonic() - began
    resident = psutil.Process(process.pid).memory_info().rss / 2**20
    process.communicate("\n", timeout=30)
    return started, resident


def idle_share(folder: Path, seconds: float) -> float:
    """Percent of a core that a peer with three links uses while nothing happens."""
    with ExitStack() as stack:
        seeds: list[str] = []
        for name in ("a", "b", "c"):
            one = stack.enter_context(running(folder, name, secure=False, seeds=[]))
            seeds.append(one.address)
        peer = stack.enter_context(running(folder, "idle", secure=False, seeds=seeds))
        sleep(1)
        before = peer.busy
        sleep(seconds)
        return (peer.busy - before) / seconds * 100


def crowd(nodes: int, links: int) -> tuple[float, float, int]:
    """Seconds until all links of all nodes are open, mebibytes and descriptors for each node."""

    async def main() -> tuple[float, float, int]:
        this = psutil.Process()
        memory, descriptors = this.memory_info().rss, this.num_fds()
        net = NetSettings(bind=("tcp://127.0.0.1:0",), idle_close=3600)
        names = [f"n{number}" for number in range(nodes)]
        drivers = [Driver(name, overlay="bench", credentials=None, net=net) for name in names]
        up: set[tuple[str, str]] = set()
        done = trio.Event()

        def note(me: str) -> Callable[[LinkUp], None]:
            def link_up(event: LinkUp) -> None:
                up.add((me, event.peer))
                if len(up) == nodes * links:
                    done.set()

            return link_up

        began = monotonic()
        async with trio.open_nursery() as nursery:
            for driver in drivers:
                driver.host.add(Echo, EchoConfig())
                driver.host.listen(LinkUp, note(driver.name))
                await nursery.start(driver.run)
            for number, driver in enumerate(drivers):
                for step in range(1, links + 1):
                    peer = drivers[(number + step) % nodes]
                    driver.learn(peer.name, peer.endpoints)
                    driver.call(driver.host.protocol(Echo).ask, peer.name, b"")
                await trio.lowlevel.checkpoint()
            with trio.fail_after(120):
                await done.wait()
            seconds = monotonic() - began
            grown = (this.memory_info().rss - memory) / 2**20
            opened = this.num_fds() - descriptors
            for driver in drivers:
                driver.stop()
        return seconds, grown / nodes, opened // nodes

    return trio.run(main)


def run(options: Options) -> Report:
    """Measure all, and compare."""
    report = Report(NAME, machine())
    progress = Progress(NAME, options.repeats + 2)
    found: dict[str, list[float]] = {}

    def note(case: str, value: float) -> None:
        found.setdefault(case, []).append(value)

    with tempfile.TemporaryDirectory(prefix="ovl-") as name:
        folder = Path(name)
        authority = Authority.create(folder / "keys", "bench")
        for who in ("seed", "peer"):
            authority.issue(who, Rights(zones=("*",)), 1).save(folder / "keys")
        with running(folder, "seed", secure=True, seeds=[]):
            pass  # the first start compiles; the others are measured
        for _ in range(options.repeats):
            progress.step("start and memory")
            for case, code in (("bare Python", BARE), ("with a ZeroMQ socket", WITH_SOCKET)):
                seconds, mebibytes = interpreter(code)
                note(f"start, {case}", seconds)
                note(f"memory, {case}", mebibytes)
            for secure in (False, True):
                kind = "secure peer" if secure else "insecure peer"
                with (
                    running(folder, "seed", secure=secure, seeds=[]) as seed,
                    running(folder, "peer", secure=secure, seeds=[seed.address]) as peer,
                ):
                    note(f"start to first message, {kind}", peer.started_in)
                    note(f"memory, {kind}", peer.resident)
        progress.step("idle")
        note("idle CPU, 3 links", idle_share(folder, 2 if options.quick else IDLE_SECONDS))
    progress.step("crowd")
    nodes = 20 if options.quick else CROWD
    seconds, mebibytes, descriptors = measure_alone(crowd, nodes, CROWD_LINKS)
    for case, values in found.items():
        unit = "MiB" if case.startswith("memory") else "%" if case.startswith("idle") else "s"
        report.add(case, unit, values)
    report.add(f"{nodes} nodes with {CROWD_LINKS} links each, until all are open", "s", [seconds])
    report.add("memory of each of them", "MiB", [mebibytes])
    report.add("descriptors of each of them", "descriptors", [float(descriptors)])
    for kind in ("insecure peer", "secure peer"):
        for case, bar in (("start to first message", START_BAR), ("memory", MEMORY_BAR)):
            measured = report.results[f"{case}, {kind}"]
            report.require(f"{case}, {kind}", measured.median, measured.unit, "at most", bar)
    idle = report.results["idle CPU, 3 links"].median
    report.require("idle CPU of a node, of a core", idle, "%", "at most", IDLE_BAR)
    return report
