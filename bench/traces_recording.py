"""What recording costs a node, and what a row takes on disk.

The same two peers publish and receive the same messages without traces, at level *delivery*, and at
level *messages*, in turns; both ends record. Every row is read back: all messages must be told as
published and as delivered, and no row may be missing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from bench.progress import Progress
from bench.report import Options, Report
from bench.topics_pairs import Ends, Side, ends_with_keys, ours

OFF, DELIVERY, MESSAGES = "off", "delivery", "messages"
MOST_COST = {DELIVERY: 5.0, MESSAGES: 15.0}  # % of the throughput without traces
MOST_BYTES = 40.0  # of one row on disk
LEAST_ROWS = 2_000  # of a file that says something about the size of rows


class Load(NamedTuple):
    """Messages of one size, published in one way."""

    label: str
    side: Side
    size: int  # bytes
    messages: int


LOADS = (
    Load("100 B by batches", ours("batches", "ack", "publish_many", "batches"), 100, 20_000_000),
    Load("100 B by publish", ours("publish", "ack", "publish", "one by one"), 100, 10_000_000),
    Load("1 KiB by batches", ours("batches", "ack", "publish_many", "batches"), 1024, 5_000_000),
)


def cost(report: Report, options: Options) -> None:
    """Throughput of two peers that record, against the same two that do not."""
    loads = LOADS[:1] if options.quick else LOADS
    progress = Progress("traces", 3 * options.repeats * len(loads))
    with ends_with_keys() as ends:
        for load in loads:
            _measure(report, ends, progress, load, options)


def _measure(report: Report, ends: Ends, progress: Progress, load: Load, options: Options) -> None:
    rates: dict[str, list[float]] = {level: [] for level in (OFF, *MOST_COST)}
    dropped: dict[str, int] = dict.fromkeys(MOST_COST, 0)
    count = load.messages // (500 if options.quick else 1)
    for _ in range(options.repeats):
        for level in rates:
            progress.step(f"{load.label}: {level}")
            with tempfile.TemporaryDirectory(prefix="overlay-bench-") as folder:
                sets = [f"traces.level={level}", f"traces.folder={folder}"]
                (taken,) = ends.run(load.side, size=load.size, count=count, sets=sets)
                rates[level].append(count / taken["seconds"])
                if level != OFF:
                    dropped[level] += check_rows(Path(folder), count)
    for level, values in rates.items():
        report.add(f"{load.label}, traces {level}", "messages/s", values)
    for level, bar in MOST_COST.items():
        pairs = zip(rates[OFF], rates[level], strict=True)
        found = report.add(
            f"{load.label}, cost of {level}", "%", [100 * (1 - with_ / off) for off, with_ in pairs]
        )
        report.require(f"{load.label}: cost of {level}", found.median, "%", "at most", bar)
        report.require(f"{load.label}: dropped at {level}", dropped[level], "rows", "at most", 0)


def check_rows(folder: Path, messages: int) -> int:
    """RuntimeError unless all messages are told, once, at both ends; the rows that were dropped."""
    told = {"published": 0, "delivered": 0}
    dropped = 0
    for path in files(folder):
        table, facts = read(path)
        dropped += facts.dropped
        for kind, topic, count in zip(table["kind"], table["topic"], table["count"], strict=True):
            if kind in told and topic == "bench/load":
                told[kind] += count
    if not dropped and set(told.values()) != {messages}:
        raise RuntimeError(f"{messages} messages, but the traces tell {told}")
    return dropped


def bytes_per_row(report: Report, options: Options) -> None:
    """Files of peers under load, one message at a time and by batches, and of a simulated run."""
    with tempfile.TemporaryDirectory(prefix="overlay-bench-") as folder, ends_with_keys() as ends:
        rate, count = (1_000, 500) if options.quick else (5_000, 50_000)
        side = ours("by rate", "ack", "rate", "async for")
        for level in MOST_COST:
            into = Path(folder, level)
            sets = [f"traces.level={level}", f"traces.folder={into}"]
            ends.run(side, size=100, count=count, rate=rate, sets=sets)
            _size(report, f"peers, {rate:,} messages/s one by one, {level}", files(into))
        into = Path(folder, "sim")
        _simulate(into, 12 if options.quick else 60)
        _size(report, "simulated zones with crashes, all", files(into))


def _simulate(folder: Path, nodes: int) -> None:
    from nodes.scenarios.recording import Recording
    from nodes.scenarios.running import run_scenario

    result = run_scenario("topics-gateway-crash", 1, nodes, check_every=0, traces=Recording(folder))
    if not result.passed:
        raise RuntimeError(result.failure)


def _size(report: Report, what: str, paths: Iterable[Path]) -> None:
    found = [(path.stat().st_size, read(path)[1].rows) for path in paths]
    large = [(size, rows) for size, rows in found if rows >= LEAST_ROWS] or found
    each = sum(size for size, _ in large) / sum(rows for _, rows in large)
    report.add(f"{what}: rows", "rows", [sum(rows for _, rows in large)])
    report.add(f"{what}: a row on disk", "bytes", [each])
    report.require(f"{what}: a row on disk", each, "bytes", "at most", MOST_BYTES)


def files(folder: Path) -> list[Path]:
    """All files of a folder of traces."""
    return sorted(folder.glob("run=*/hour=*/*.parquet"))


def read(path: Path) -> tuple[dict[str, list[Any]], Any]:
    """Some columns of a file, and what it says about itself."""
    import pyarrow.parquet as parquet

    from overlay.traces.schema import file_facts

    file = parquet.ParquetFile(path)
    table: dict[str, list[Any]] = file.read(columns=["kind", "topic", "count"]).to_pydict()
    facts = file_facts(file.schema_arrow)
    if facts is None:
        raise RuntimeError(f"{path} is no file of traces")
    return table, facts
