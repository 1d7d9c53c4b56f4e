"""The real run: five broker processes, and a publisher process that moves around them under load.

Subscribers at three brokers stay where they are, and one of them moves as well, against the
publisher's direction. Everything runs over real sockets; each subscriber must get each publication
once and in order.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import trio

from bench.mobility_mover import Orders
from bench.processes import measure_alone
from bench.progress import Progress
from bench.report import Options, Report
from nodes.peer import Peer
from nodes.spawning import ROOT, peer_environment
from protocols.mobility import Gap

ALGORITHMS = ("standard", "prefetching", "proxy", "delayed", "prefetching+delayed")
LINKS: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (1,), (3,))
"""Whom of the earlier ones each broker links to: a tree with a fork."""
WAY = (0, 4, 2, 3, 1)
AT = (0, 2, 4)  # where subscribers stay
QUICK_SETS = ("content.beat=0.2", "content.lease=2", "content.client_lease=3")
SPREAD = 0.5  # s in which a subscription surely found its way over loopback
DEADLINE = 60.0  # s for anything


class Run(msgspec.Struct, frozen=True):
    """What one run showed."""

    algorithm: str
    published: int
    moves: int
    delivered: dict[str, int]
    missing: dict[str, int]
    doubled: dict[str, int]
    disordered: dict[str, int]
    gaps: int
    waits: list[float]  # s from a movein to the end of t4
    counts: dict[str, int]  # of the publisher

    @property
    def ratio(self) -> float:
        """Of what all subscribers should have got, what came."""
        return sum(self.delivered.values()) / max(1, self.published * len(self.delivered))

    @property
    def is_clean(self) -> bool:
        """Everything came to everybody, once and in order."""
        wrong = (*self.missing.values(), *self.doubled.values(), *self.disordered.values())
        return not any(wrong) and not self.gaps and self.published > 0


class Reader:
    """One subscriber, and what it read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.came: list[int] = []
        self.gaps = 0
        self._wanted = 0
        self._enough = trio.Event()

    async def read(self, stream: AsyncIterator[Any]) -> None:
        """Until the stream ends."""
        async for found in stream:
            if isinstance(found, Gap):
                self.gaps += 1
            else:
                self.came.append(int(found.item["n"]))
                if len(self.came) == self._wanted:
                    self._enough.set()

    async def has(self, count: int) -> None:
        """Wait until so many came."""
        self._wanted = count
        if len(self.came) < count:
            await self._enough.wait()


class Pace(msgspec.Struct, frozen=True):
    """How fast, and how long."""

    rate: float  # publications/s
    stay: float  # s at each broker
    away: float = 0.2  # s without one, between two
    rounds: int = 1  # around the brokers


async def real_runs(algorithms: Sequence[str], pace: Pace, folder: Path) -> list[Run]:
    """A publisher for each algorithm, one after the other, and the same brokers for all."""
    sets = [*QUICK_SETS, "zones.settle=600", "beacon.enabled=false"]
    with ExitStack() as processes:
        mover = processes.enter_context(process(folder, "bench.mobility_mover"))
        brokers = list(start_brokers(processes, folder, sets))
        async with AsyncExitStack() as stack:
            peers = [
                await stack.enter_async_context(subscriber(f"s{number}", brokers, sets))
                for number in range(len(AT) + 1)
            ]
            for peer, at in zip(peers, (*AT, 1), strict=True):
                await peer.move_to(brokers[at])
            return [await one_run(each, pace, brokers, mover, peers, sets) for each in algorithms]


async def one_run(
    algorithm: str,
    pace: Pace,
    brokers: list[str],
    mover: subprocess.Popen[bytes],
    peers: list[Peer],
    sets: list[str],
) -> Run:
    """One publisher, from its first to its last publication."""
    way = [brokers[at] for _ in range(pace.rounds) for at in WAY]
    moving = [*sets, f"mobility.algorithm={algorithm}", "mobility.handover=lossless"]
    name = f"by-{algorithm.replace('+', '-')}"
    orders = Orders(name, [*way, brokers[0]], moving, pace.rate, pace.stay, pace.away)
    say(mover, msgspec.json.encode(orders))
    await hear(mover)
    *stationary, rover = peers
    readers = [Reader(f"at {at}") for at in AT]
    with ExitStack() as subscriptions:
        async with trio.open_nursery() as nursery:
            wanted = f'kind = "{name}"'
            for reader, peer in zip(readers, stationary, strict=True):
                one = subscriptions.enter_context(peer.content.subscribe(wanted))
                nursery.start_soon(reader.read, one)
            readers.append(Reader("moving"))
            kept = subscriptions.enter_context(rover.mobile.subscribe(wanted))
            nursery.start_soon(readers[-1].read, kept)
            await trio.sleep(SPREAD)
            say(mover, b"go")
            nursery.start_soon(rove, rover, [*reversed(way)], pace.stay + pace.away)
            told = await hear(mover)
            published = int(told["published"])
            with trio.move_on_after(DEADLINE):
                for reader in readers:
                    await reader.has(published)
            await trio.sleep(SPREAD)  # for what must not come
            say(mover, b"end")
            nursery.cancel_scope.cancel()
    return Run(
        algorithm,
        published,
        len(told["waits"]),
        {reader.name: len(set(reader.came)) for reader in readers},
        {reader.name: published - len(set(reader.came)) for reader in readers},
        {reader.name: len(reader.came) - len(set(reader.came)) for reader in readers},
        {reader.name: sum(b < a for a, b in pairwise(reader.came)) for reader in readers},
        sum(reader.gaps for reader in readers),
        told["waits"],
        told["counts"],
    )


async def rove(peer: Peer, way: list[str], stay: float) -> None:
    """Let a subscriber move as well."""
    for broker in way:
        await trio.sleep(stay)
        await peer.move_to(broker)


@asynccontextmanager
async def subscriber(name: str, brokers: list[str], sets: list[str]) -> AsyncIterator[Peer]:
    """A peer of this process."""
    options: dict[str, Any] = {"insecure": True, "profile": "local", "bind": ["127.0.0.1:0"]}
    async with Peer.join(name=name, seeds=brokers[:1], sets=sets, control=False, **options) as peer:
        yield peer


# -- processes ----------------------------------------------------------------------------------


def start_brokers(processes: ExitStack, folder: Path, sets: list[str]) -> Iterator[str]:
    """Brokers in processes of their own; their addresses."""
    addresses: list[str] = []
    for number, links in enumerate(LINKS):
        words = ["broker", "--name", f"b{number}", "--insecure", "--profile", "local", "--json"]
        words += ["--bind", "127.0.0.1:0"]
        words += [word for link in links for word in ("--link", addresses[link])]
        words += [word for one in sets for word in ("--set", one)]
        words += ["--seed", addresses[0]] if addresses else []
        one = processes.enter_context(process(folder, "nodes.cli", *words))
        assert one.stdout is not None
        addresses.append(str(json.loads(one.stdout.readline())["address"]).removeprefix("tcp://"))
    yield from addresses


@contextmanager
def process(folder: Path, module: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process that is ended in any case."""
    one = subprocess.Popen(
        [sys.executable, "-m", module, *words],
        cwd=ROOT,
        env=peer_environment(XDG_RUNTIME_DIR=str(folder), OVERLAY_HOME=str(folder / "home")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield one
    finally:
        one.kill()
        one.communicate()


def say(one: subprocess.Popen[bytes], line: bytes) -> None:
    """A line to its standard input."""
    assert one.stdin is not None
    one.stdin.write(line + b"\n")
    one.stdin.flush()


async def hear(one: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Its next line."""
    assert one.stdout is not None
    line = await trio.to_thread.run_sync(one.stdout.readline)
    if not line:
        raise RuntimeError(f"{one.args!r} ended: {one.wait(DEADLINE)}")
    told: dict[str, Any] = json.loads(line)
    return told


# -- the section of `bench mobility` --------------------------------------------------------------


def measure(algorithms: Sequence[str], pace: Pace) -> list[Run]:
    """In a process of its own."""
    with tempfile.TemporaryDirectory(prefix="overlay-real-") as folder:
        return trio.run(real_runs, algorithms, pace, Path(folder))


def real(report: Report, options: Options) -> None:
    """Each algorithm with lossless handover, over sockets."""
    pace = Pace(300.0, 0.3) if options.quick else Pace(1000.0, 2.0, rounds=3)
    progress = Progress("mobility, real", 1)
    progress.step(f"{len(ALGORITHMS)} publishers")
    for run in measure_alone(measure, ALGORITHMS, pace):
        name = f"real, {run.algorithm}"
        wrong = sum(run.doubled.values()) + sum(run.disordered.values())
        report.add(f"{name}: from movein to the end of t4, p50", "ms", [1000 * median(run.waits)])
        report.require(f"{name}: delivered", 100 * run.ratio, "%", "at least", 100.0)
        report.require(f"{name}: doubled or out of order", wrong, "", "at most", 0)
        report.notes.append(
            f"{name}: {run.published} publications to {len(run.delivered)} subscribers, one of"
            f" which moves; {run.moves} moves of the publisher, for which {run.counts['waited']}"
            f" publications waited; {run.gaps} gaps"
        )
