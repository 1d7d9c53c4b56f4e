"""What a node costs that has nothing to do: wake-ups, CPU, and 200 of them in one process."""

from __future__ import annotations

import json
import os
import resource
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
import trio

from overlay.net.driver import Driver
from tests.net.drivers import OVERLAY, running, speaker, until
from tests.net.processes import RunningPeer, overlay, peer

QUIET = 4.0  # s


def test_an_idle_node_wakes_up_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks: Counter[str] = Counter()
    tick = Driver._tick

    def counted(self: Driver) -> bool:
        ticks[self.name] += 1
        return tick(self)

    monkeypatch.setattr(Driver, "_tick", counted)

    async def main() -> None:
        ada = speaker("ada", heartbeat=0.2)  # ZeroMQ's own thread sends and answers heartbeats
        others = [speaker(name) for name in ("bob", "cyn", "dan")]
        async with running(ada, *others):
            ada.knows(*others)
            for other in others:
                ada.say(other.name, 1)
            await until(lambda: all(other.numbers for other in others), "three links")
            quiet_until = ada.driver.now() + 1
            await until(lambda: ada.driver.now() > quiet_until, "the last handshake's echo")
            ticks.clear()
            began = ada.driver.now()
            await until(lambda: ada.driver.now() > began + QUIET, "a quiet time")
            quiet = ada.driver.now() - began
        for name in ("ada", "bob", "cyn", "dan"):
            assert 1 <= ticks[name] <= 2 * quiet + 2

    trio.run(main)


@contextmanager
def _four_peers(runtime: Path) -> Iterator[RunningPeer]:
    """Yield one that opens links to three others."""
    words = ("--insecure", "--overlay", OVERLAY, "--set", "net.idle_close=600")
    with ExitStack() as stack:
        others = [
            stack.enter_context(peer(runtime, "--name", name, *words)) for name in ("b", "c", "d")
        ]
        seeds = [word for other in others for word in ("--seed", other.address)]
        yield stack.enter_context(peer(runtime, "--name", "a", *words, *seeds))


@pytest.mark.slow
def test_an_idle_process_takes_less_than_three_thousandths_of_a_core(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    def used(pid: int) -> float:
        """CPU time of all its threads in seconds, exact to the nanosecond."""
        tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    runtime = tmp_path_factory.mktemp("r")

    def linked() -> bool:
        (status,) = json.loads(overlay(runtime, "status", "a", "--json").stdout)["nodes"]
        return [link["state"] for link in status["driver"]["links"]] == ["open"] * 3

    async def main(one: RunningPeer) -> None:
        await until(linked, "three links")
        before, began = used(one.process.pid), time.monotonic()
        await trio.sleep(20)
        share = (used(one.process.pid) - before) / (time.monotonic() - began)
        print(f"\nidle CPU: {share:.3%} of a core")
        assert share < 0.003

    with _four_peers(runtime) as one:
        trio.run(main, one)


NODES, LINKS = 200, 10


@pytest.mark.slow
def test_200_nodes_with_10_links_each_in_one_process() -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    async def main() -> None:
        fds, memory = descriptors(), psutil.Process().memory_info().rss
        began = time.monotonic()
        nodes = [speaker(f"n{number}") for number in range(NODES)]
        async with running(*nodes):
            for number, node in enumerate(nodes):
                neighbours = [nodes[(number + step) % NODES] for step in range(1, LINKS + 1)]
                node.knows(*neighbours)
                for neighbour in neighbours:
                    node.say(neighbour.name, number)

            def all_heard() -> bool:
                return all(len(node.numbers) == LINKS for node in nodes)

            await until(all_heard, "2,000 messages over 2,000 links")
            took = time.monotonic() - began
            fds = descriptors() - fds
            memory = psutil.Process().memory_info().rss - memory
            print(
                f"\n{NODES} nodes, {LINKS} links each, in {took:.1f} s:"
                f" {fds / NODES:.1f} descriptors and {memory / NODES / 1024:.0f} KiB a node"
            )
            assert fds < resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            assert fds / NODES < 70
            assert memory / NODES < 2 << 20

    trio.run(main)
