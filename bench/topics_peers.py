"""Messages of 100 B from one to one through what others offer, beside ours and raw PUSH/PULL.

Each is taken as it comes, but for limits behind which it would lose messages, and may use what it
has for many messages at once. All take turns; nothing is encrypted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from bench.peers.carrier import Carrier, ServerError
from bench.peers.carriers import CARRIERS
from bench.progress import Progress
from bench.report import Options, Report
from bench.topics_latency import BYTES, RATE, SECONDS, percentiles, sides
from bench.topics_pairs import PUSH_PULL, Ends, Side, ends_with_keys, ours

RAW_MESSAGES = 1_000_000  # about a second
QUICKER = 100  # times fewer messages


class Turn(NamedTuple):
    """What one side does in each turn."""

    side: Side
    messages: int


def beside_others(report: Report, options: Options) -> None:
    """Only when it is asked for: those with these names, or all, as far as they are there."""
    names = options.peers or (tuple(CARRIERS) if "peers" in options.only else ())
    carriers = installed(report, names)
    if not carriers:
        return
    with ends_with_keys() as ends, TemporaryDirectory(prefix="overlay-bench-") as folder:
        contest = Contest(report, options, ends, carriers, Path(folder))
        contest.throughput()
        contest.latency()


def installed(report: Report, names: Sequence[str]) -> dict[str, Carrier]:
    """Those who can be measured; each of the others is a note that says how to get it."""
    there = {}
    for name in names:
        carrier = CARRIERS[name]()
        if how := carrier.missing():
            report.notes.append(f"{name} is skipped, since it is not installed: {how}")
        else:
            there[name] = carrier
    return there


class Contest:
    """Measures everybody in turn; one who fails is a note, and out of what follows."""

    def __init__(
        self,
        report: Report,
        options: Options,
        ends: Ends,
        carriers: Mapping[str, Carrier],
        folder: Path,
    ) -> None:
        self._report = report
        self._options = options
        self._ends = ends
        self._carriers = dict(carriers)
        self._folder = folder

    def throughput(self) -> None:
        """Messages in a second, and the ratio to raw in the same turn."""
        slower = QUICKER if self._options.quick else 1
        turns = [
            Turn(PUSH_PULL, RAW_MESSAGES),
            Turn(ours("ack by batches", "ack", "publish_many", "batches"), 5 * RAW_MESSAGES),
            Turn(ours("ack by publish", "ack", "publish", "one by one"), RAW_MESSAGES),
        ]
        turns += [Turn(self._side(name), one.messages) for name, one in self._carriers.items()]
        turns = [Turn(side, count // slower) for side, count in turns]
        found = self._take("100 B", turns, rate=0)
        counts = {side.name: count for side, count in turns}
        rates = {
            name: [counts[name] / one["seconds"] for one in taken] for name, taken in found.items()
        }
        for name, values in rates.items():
            self._report.add(f"peers: {BYTES} B, {name}", "messages/s", values)
        raw = rates.pop(PUSH_PULL.name)
        for name, values in rates.items():
            ratios = [a / b for a, b in zip(values, raw, strict=False)]  # one may have failed
            self._report.add(f"peers: {BYTES} B, {name} to {PUSH_PULL.name}", "×", ratios)

    def latency(self) -> None:
        """From the call to the reader, at a steady rate; ratios of medians."""
        count = RATE * (1 if self._options.quick else SECONDS)
        turns = [Turn(side, count) for side in [*sides(), *map(self._side, self._carriers)]]
        found = self._take("latency", turns, rate=RATE)
        for tail in ("p50", "p99"):
            delays = {
                name: [percentiles(one)[tail] for one in taken] for name, taken in found.items()
            }
            for name, values in delays.items():
                self._report.add(f"peers: one-way latency {tail}, {name}", "µs", values)
            raw = median(delays.pop(PUSH_PULL.name))
            for name, values in delays.items():
                what = f"peers: one-way latency {tail}, {name} to {PUSH_PULL.name}"
                self._report.add(what, "×", [median(values) / raw])

    @staticmethod
    def _side(name: str) -> Side:
        return Side(name, {"side": "peer", "carrier": name})

    def _take(self, what: str, turns: Sequence[Turn], rate: int) -> dict[str, list[dict[str, Any]]]:
        """What the receivers of each side found, turn by turn."""
        progress = Progress("topics peers", self._options.repeats * len(turns))
        found: dict[str, list[dict[str, Any]]] = {}
        for _ in range(self._options.repeats):
            for side, count in turns:
                progress.step(f"{what}: {side.name}")
                carrier = self._carriers.get(side.name)
                if carrier is None and "carrier" in side.options:
                    continue  # it failed before
                load = {"size": BYTES, "count": count, "rate": rate}
                try:
                    found.setdefault(side.name, []).append(self._run(side, carrier, load))
                except (RuntimeError, ServerError) as error:
                    if carrier is None:
                        raise
                    del self._carriers[side.name]
                    self._report.notes.append(f"{side.name}, {what}: {error}")
        return {name: taken for name, taken in found.items() if taken}

    def _run(self, side: Side, carrier: Carrier | None, load: Mapping[str, Any]) -> dict[str, Any]:
        if carrier is None:
            return self._ends.run(side, **load)[0]
        with TemporaryDirectory(dir=self._folder) as folder:
            with carrier.serving(Path(folder)) as port:
                return self._ends.run(side, server=port, **load)[0]
