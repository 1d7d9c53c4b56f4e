"""How fast the index of constraints answers, beside a plain loop over them in the same run.

Subscriptions have predicates on two to five of 50 attributes, ten of them texts (one of six
values), the others numbers (at least, at most, or between). Publications have 20 of the 50. The
share that a range lets through is chosen such that about ten subscriptions match a publication,
whatever their number; what it came to is reported.
"""

from __future__ import annotations

import gc
from random import Random
from time import perf_counter

import psutil

from bench.report import Options, Report
from overlay.host import Host
from overlay.predicates import Constraint, ConstraintIndex, Predicate, Value, intersects, matches
from overlay.sim import Simulator
from protocols.content import Content, ContentSettings
from protocols.resources import ModelType, Resources, ResourcesSettings

NAMES = [f"a{n:02}" for n in range(50)]
TEXT_NAMES = set(NAMES[:10])
TEXTS = [f"t{n}" for n in range(6)]
ATTRIBUTES = 20  # of a publication
SHARES = {1_000: 0.524, 10_000: 0.15, 100_000: 0.02}  # that a range lets through, for ten matches
CHANGES = 1_000  # subscription changes a second
QUERIES = {
    "few": 'system = "s3", memory >= 30, disk > 460, load < 0.3',
    "many": 'system = "s3", memory >= 8',
}


def subscription(rng: Random, share: float) -> Constraint:
    """Two to five predicates, each on another attribute; a range counts for one."""
    parts: list[Predicate] = []
    for name in rng.sample(NAMES, rng.randint(2, 5)):
        if name in TEXT_NAMES:
            parts.append(Predicate(name, "=", rng.choice(TEXTS)))
            continue
        width = 100 * share * rng.uniform(0.5, 1.5)
        low = rng.uniform(0, 100 - width)
        form = rng.random()
        if form < 0.4:
            parts.append(Predicate(name, ">=", 100 - width))
        elif form < 0.8:
            parts.append(Predicate(name, "<=", width))
        else:
            parts += [Predicate(name, ">", low), Predicate(name, "<", low + width)]
    return Constraint.of(*parts)


def publication(rng: Random) -> dict[str, Value]:
    """Some of the attributes, with any values."""
    return {
        name: rng.choice(TEXTS) if name in TEXT_NAMES else rng.uniform(0, 100)
        for name in rng.sample(NAMES, ATTRIBUTES)
    }


def matching(report: Report, options: Options) -> None:
    """Publications against 1,000, 10,000 and 100,000 subscriptions."""
    rates: dict[int, float] = {}
    sizes = (1_000,) if options.quick else tuple(SHARES)
    for size in sizes:
        rng = Random(size)
        before = _memory()
        index: ConstraintIndex[int] = ConstraintIndex()
        held = [subscription(rng, SHARES[size]) for _ in range(size)]
        started = perf_counter()
        for key, constraint in enumerate(held):
            index.add(key, constraint)
        adding = perf_counter() - started
        grown = _memory() - before
        items = [publication(rng) for _ in range(500 if options.quick else 4_000)]
        found = [len(index.matching(item)) for item in items]
        label = f"{size:,} subscriptions"
        plain = [_plain_rate(held, items[: max(2, 200_000 // size)]) for _ in range(3)]
        rate = report.add(
            f"{label}: publications",
            "/s",
            [_rate(index, items) for _ in range(options.repeats)],
        )
        loop = report.add(f"{label}: publications, a loop over them", "/s", plain)
        rates[size] = rate.median
        ratio = report.add(f"{label}: times as fast as the loop", "×", [rate.median / loop.median])
        report.require(f"{label}: times as fast as the loop", ratio.median, "×", "at least", 10)
        report.add(f"{label}: matches of a publication", "", [sum(found) / len(found)])
        report.add(f"{label}: adding one", "µs", [adding / size * 1e6])
        if size >= 10_000:  # the growth of the process shows less of fewer
            report.add(f"{label}: memory of each", "bytes", [grown / size])
        if size == 10_000:
            _changes(report, options, index, held, items)
        if sum(found[:20]) != sum(matches(item, it) for item in items[:20] for it in held):
            raise AssertionError("the index and the loop disagree")
    if 10_000 in rates:
        report.require("publications against 10,000", rates[10_000], "/s", "at least", 20_000)
        report.require("publications against 100,000", rates[100_000], "/s", "at least", 4_000)


def _changes(
    report: Report,
    options: Options,
    index: ConstraintIndex[int],
    held: list[Constraint],
    items: list[dict[str, Value]],
) -> None:
    """The same publications while a subscription leaves or comes every millisecond."""
    pairs = []
    for _ in range(options.repeats):
        alone = _rate(index, items)
        pairs.append((alone, _rate_with_changes(index, held, items)))
    report.add("10,000 subscriptions, 1,000 changes a second", "/s", [busy for _, busy in pairs])
    cost = report.add("cost of those changes", "%", [100 * (1 - b / a) for a, b in pairs])
    report.require("cost of 1,000 changes a second", cost.median, "%", "at most", 20)


def _rate(index: ConstraintIndex[int], items: list[dict[str, Value]]) -> float:
    started = perf_counter()
    for item in items:
        index.matching(item)
    return len(items) / (perf_counter() - started)


def _rate_with_changes(
    index: ConstraintIndex[int], held: list[Constraint], items: list[dict[str, Value]]
) -> float:
    started = perf_counter()
    changes = 0
    for item in items * 3:
        index.matching(item)
        while changes < (perf_counter() - started) * CHANGES:
            key = changes // 2 % len(held)
            if changes % 2:
                index.add(key, held[key])
            else:
                index.remove(key)
            changes += 1
    rate = 3 * len(items) / (perf_counter() - started)
    if changes % 2:
        key = changes // 2 % len(held)
        index.add(key, held[key])
    return rate


def _plain_rate(held: list[Constraint], items: list[dict[str, Value]]) -> float:
    started = perf_counter()
    for item in items:
        [key for key, it in enumerate(held) if matches(item, it)]
    return len(items) / (perf_counter() - started)


def finding(report: Report, options: Options) -> None:
    """A static find at a broker, beside a loop over its table; all that is found, or ten of it."""
    size = 1_000 if options.quick else 10_000
    rng = Random(3)
    held = [
        Constraint.of(
            Predicate("system", "=", f"s{rng.randrange(6)}"),
            Predicate("memory", "<=", rng.choice((1, 2, 4, 8, 16, 32, 64))),
            Predicate("disk", "<=", rng.randint(40, 500)),
            Predicate("load", ">=", round(rng.random(), 2)),
        )
        for _ in range(size)
    ]
    broker = _broker(held)
    for name, text in QUERIES.items():
        query = Constraint.parse(text)
        started = perf_counter()
        wanted = [f"broker/r{key}" for key, it in enumerate(held) if intersects(it, query)]
        loop = (perf_counter() - started) * 1e3
        found = broker.find_static(query, 0, False, 0.0)
        if [one.id for one in found] != wanted:
            raise AssertionError("the broker and the loop disagree")
        label = f"static find among {size:,}, {name} ({len(found)}) there"
        for limit in (10, 0):
            times = []
            for _ in range(options.repeats):
                started = perf_counter()
                for _ in range(20):
                    broker.find_static(query, limit, False, 0.0)
                times.append((perf_counter() - started) / 20 * 1e3)
            asked = f"{label}, {limit or 'all'} wanted"
            case = report.add(asked, "ms", times)
            report.add(f"{asked}: times as fast as a loop", "×", [loop / case.median])
            report.require(asked, case.median, "ms", "at most", 2.0)


def _broker(held: list[Constraint]) -> Resources:
    """The machine of a broker with these static resources."""

    def add(host: Host) -> None:
        routing = ContentSettings(role="broker", client_advertisements=len(held))
        content = host.add(Content, routing)
        host.add(Resources, ResourcesSettings(max_resources=len(held)), content=content)

    sim = Simulator(1, check_every=0)
    sim.add_node("broker", add)
    machine = sim.protocol("broker", Resources)
    for key, constraint in enumerate(held):
        sim.call("broker", machine.register, f"r{key}", constraint, ModelType.STATIC, None, 0.0)
    return machine


def _memory() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)
