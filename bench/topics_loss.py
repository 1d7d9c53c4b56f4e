"""Messages over a hop that loses one in twenty, beside the same hop when it loses none."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from bench.connections import free_ports
from bench.progress import Progress
from bench.report import Options, Report
from bench.topics_pairs import Ends, Side, ends_with_keys, ours

LOSS = 0.05
BYTES = 100
COUNT = 2_000_000
GOODPUT_BAR = 0.5


def loss(report: Report, options: Options) -> None:
    """Both modes deliver everything, or an end fails: a receiver counts, a Gap is an error."""
    count = COUNT // (100 if options.quick else 1)
    progress = Progress("topics loss", options.repeats * 4)
    with ends_with_keys() as ends:
        for mode in ("ack", "nack"):
            side = ours(f"{mode} by batches", mode, "publish_many", "batches")
            rates: dict[float, list[float]] = {0.0: [], LOSS: []}
            for seed in range(options.repeats):
                for share, found in rates.items():
                    progress.step(f"{mode}, {share:.0%} lost")
                    found.append(_over_hop(ends, side, share, seed, count))
            for share, found in rates.items():
                report.add(f"over a hop that loses {share:.0%}, {side.name}", "messages/s", found)
            goodput = median(rates[LOSS]) / median(rates[0.0])
            what = f"goodput with {LOSS:.0%} lost, {side.name}: against none lost"
            report.require(what, goodput, "×", "at least", GOODPUT_BAR)


def _over_hop(ends: Ends, side: Side, share: float, seed: int, count: int) -> float:
    bound = free_ports(2)
    with _hop(share, seed, bound) as ports:
        receiver, sender = (
            {"bind": own, "hop": told} for own, told in zip(bound, ports, strict=True)
        )
        found = ends.run(side, size=BYTES, count=count, of_receiver=receiver, of_sender=sender)
    return count / float(found[0]["seconds"])


@contextmanager
def _hop(share: float, seed: int, to: list[int]) -> Iterator[list[int]]:
    """Run a hop to nodes at these ports; yields where it listens for each."""
    words = [sys.executable, "-m", "bench.topics_hop"]
    options = json.dumps({"loss": share, "seed": seed, "to": to})
    hop = subprocess.Popen([*words, options], stdout=subprocess.PIPE, text=True)
    try:
        assert hop.stdout is not None
        yield json.loads(hop.stdout.readline())["ports"]
    finally:
        hop.kill()
        hop.communicate()
