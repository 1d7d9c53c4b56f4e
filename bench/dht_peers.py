"""The same keys and values in what others offer: Redis, etcd and PyPI's kademlia, beside ours.

They promise less, or something else: each says how many copies it has and when it acknowledges.
"""

from __future__ import annotations

from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any

from bench.dht_ends import Load
from bench.peers.carrier import ServerError
from bench.peers.keeper import Keeper
from bench.peers.keeper_etcd import EtcdKeeper
from bench.peers.keeper_kademlia import KademliaKeeper
from bench.peers.keeper_redis import RedisKeeper
from bench.progress import Progress
from bench.report import Options, Report

KEEPERS: dict[str, type[Keeper]] = {
    keeper.name: keeper for keeper in (RedisKeeper, EtcdKeeper, KademliaKeeper)
}


def beside_others(report: Report, options: Options, load: dict[str, Any]) -> None:
    """Only those that were asked for, as far as they are there; each other one is a note."""
    progress = Progress("dht", len(options.peers))
    for name in options.peers:
        keeper = KEEPERS[name]()
        if how := keeper.missing():
            report.notes.append(f"{name} is skipped, since it is not installed: {how}")
            continue
        progress.step(name)
        fewer = load | {"sequential": max(int(load["sequential"] * keeper.share), 100)}
        try:
            with TemporaryDirectory(prefix="overlay-bench-") as folder:
                with keeper.serving(Path(folder)) as port:
                    _enter(report, keeper, keeper.measure(port, Load(fewer)), load)
        except ServerError as error:
            report.notes.append(f"{name} is skipped: {error}")


def _enter(report: Report, keeper: Keeper, found: dict[str, Any], load: dict[str, Any]) -> None:
    report.notes.append(f"{keeper.name}: {keeper.how}")
    for what in ("get", "put"):
        delays = quantiles(found[what], n=100)
        report.add(f"sequential {what}, {keeper.name}, p50", "µs", [delays[49] / 1e3])
        report.add(f"sequential {what}, {keeper.name}, p99", "µs", [delays[98] / 1e3])
    for what in ("gets", "puts"):
        if what in found:
            case = f"{what[:-1]} in pipelines of {load['under_way']}, {keeper.name}"
            report.add(case, "operations/s", [load["many"] / found[what]])
