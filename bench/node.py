"""What a node costs: its start, its memory, its idle CPU, and two hundred of them in one process.

Baselines of the same run: a bare interpreter, and one that has a ZeroMQ socket.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Literal

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
SETTLE = 4  # s
START_BAR, MEMORY_BAR = 0.4, 45.0
IDLE_BARS = (0.3, 0.5)  # of a bare node, and of a member of a zone

Kind = Literal["node", "peer"]
KINDS: tuple[Kind, ...] = ("node", "peer")  # bare, and a member of a zone

BARE = "print('ready', flush=True); input()"
WITH_SOCKET = f"import zmq; s = zmq.Context().socket(zmq.ROUTER); {BARE}"


class Process:
    """A node or an `overlay peer`, from its start to its first message."""

    def __init__(
        self, folder: Path, kind: Kind, name: str, *, secure: bool, seeds: list[str]
    ) -> None:
        keys = ["--keys", str(folder / "keys")]
        if kind == "node":
            words = ["bench.node_process", name, *(keys if secure else []), *seeds]
        else:
            words = ["nodes.cli", "peer", "--name", name, "--json", "--events"]
            words += ["--profile", "local", "--bind", "127.0.0.1:0"]
            words += keys if secure else ["--insecure"]
            words += ["--zone", "bench", *(f"--seed={seed}" for seed in seeds)]
        environment = peer_environment(XDG_RUNTIME_DIR=str(folder), OVERLAY_HOME=str(folder))
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as on most machines
        began = monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", *words],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
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
def running(
    folder: Path, kind: Kind, name: str, *, secure: bool = False, seeds: Sequence[str] = ()
) -> Iterator[Process]:
    """A process that ends with the block."""
    process = Process(folder, kind, name, secure=secure, seeds=list(seeds))
    try:
        yield process
    finally:
        process.process.terminate()
        process.process.communicate(timeout=30)


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


def idle_share(folder: Path, kind: Kind, seconds: float) -> float:
    """Percent of a core that one with three links uses while nothing happens."""
    with ExitStack() as stack:
        peers = [stack.enter_context(running(folder, kind, name)) for name in ("a", "b", "c")]
        seeds = [peer.address for peer in peers]
        idle = stack.enter_context(running(folder, kind, "idle", seeds=seeds))
        sleep(SETTLE)  # peers form their zone, and elect delegates
        before = idle.busy
        sleep(seconds)
        return (idle.busy - before) / seconds * 100


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
    progress = Progress(NAME, options.repeats + 3)
    found: dict[str, list[float]] = {}

    def note(case: str, value: float) -> None:
        found.setdefault(case, []).append(value)

    with tempfile.TemporaryDirectory(prefix="ovl-") as name:
        folder = Path(name)
        authority = Authority.create(folder / "keys", "bench")
        for who in ("seed", "one"):
            authority.issue(who, Rights(zones=("*",)), 1).save(folder / "keys")
        with running(folder, "peer", "seed", secure=True):
            pass  # the first start compiles; the others are measured
        for _ in range(options.repeats):
            progress.step("start and memory")
            for case, code in (("bare Python", BARE), ("with a ZeroMQ socket", WITH_SOCKET)):
                seconds, mebibytes = interpreter(code)
                note(f"start, {case}", seconds)
                note(f"memory, {case}", mebibytes)
            for kind in KINDS:
                for secure in (False, True):
                    case = f"{'secure' if secure else 'insecure'} {kind}"
                    with (
                        running(folder, kind, "seed", secure=secure) as seed,
                        running(folder, kind, "one", secure=secure, seeds=[seed.address]) as one,
                    ):
                        note(f"start to first message, {case}", one.started_in)
                        note(f"memory, {case}", one.resident)
        for kind in KINDS:
            progress.step(f"idle {kind}")
            idle = idle_share(folder, kind, 2 if options.quick else IDLE_SECONDS)
            note(f"idle CPU of a {kind} with 3 links", idle)
    progress.step("crowd")
    nodes = 20 if options.quick else CROWD
    seconds, mebibytes, descriptors = measure_alone(crowd, nodes, CROWD_LINKS)
    for case, values in found.items():
        unit = "MiB" if case.startswith("memory") else "%" if case.startswith("idle") else "s"
        report.add(case, unit, values)
    report.add(f"{nodes} nodes with {CROWD_LINKS} links each, until all are open", "s", [seconds])
    report.add("memory of each of them", "MiB", [mebibytes])
    report.add("descriptors of each of them", "descriptors", [float(descriptors)])
    for case, bar in (("start to first message", START_BAR), ("memory", MEMORY_BAR)):
        for whose in ("insecure node", "secure node"):
            measured = report.results[f"{case}, {whose}"]
            report.require(f"{case}, {whose}", measured.median, measured.unit, "at most", bar)
    for kind, bar in zip(KINDS, IDLE_BARS, strict=True):
        case = f"idle CPU of a {kind} with 3 links"
        report.require(f"{case}, of a core", report.results[case].median, "%", "at most", bar)
    return report
