"""Publisher mobility (§4): its city in the simulator, with all algorithms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench.mobility_paper import BACK_AND_FORTH, base, mean_latency, play, probe_every
from bench.mobility_workload import ALGORITHMS, Algorithm, Outcome
from bench.papers.published import Finding, Paper
from bench.progress import Progress

FEW, MANY = 50, 250  # publishers
PAPERS = ALGORITHMS[:4]  # the combination of two is ours
SLOW, FAST = 25.0, 100.0  # km/h
LOCAL = 0.9
FAR = 10  # brokers past the proxies
SMALL = 300  # bytes: no link is ever busy

Runs = dict[Algorithm, Outcome]


class Player:
    """Plays what a claim needs, and tells how far it is."""

    def __init__(self, *, quick: bool) -> None:
        self._quick = quick
        self._progress = Progress("papers", 45)

    def run(self, algorithm: Algorithm, **varied: Any) -> Outcome:
        """One run."""
        told = ", ".join(f"{name} {value}" for name, value in varied.items())
        self._progress.step(f"{algorithm} {told}")
        return play(base(quick=self._quick, algorithm=algorithm, **varied), quick=self._quick)

    def runs(self, algorithms: Iterable[Algorithm] = PAPERS, **varied: Any) -> Runs:
        """One run of each algorithm."""
        return {algorithm: self.run(algorithm, **varied) for algorithm in algorithms}


def evaluate(paper: Paper, folder: Path, *, quick: bool) -> list[Finding]:
    """Play the ends of each sweep; nothing of it needs the traces."""
    player = Player(quick=quick)
    few, many = player.runs(publishers=FEW), player.runs(publishers=MANY)
    return [
        *_cost(paper, few, many),
        *_state(paper, few, many),
        *_delivery(paper, many),
        *_latency(paper, many),
        *_subscribers(paper, player),
        *_speed(paper, player),
        *_overshoot(paper, player),
        *_locality(paper, player),
        *_lossless(paper, player),
    ]


def _by(of: Callable[[Outcome], float], one: Outcome, other: Outcome) -> float:
    return of(one) / (of(other) or 1)


def _per_move(found: Outcome) -> float:
    return found.per_move


def _everything(found: Outcome) -> float:
    return found.all_but_publications / (found.moves or 1)


def _total(found: Outcome) -> float:
    return found.cost


def _cost(paper: Paper, few: Runs, many: Runs) -> list[Finding]:
    """Figure 4."""

    def dearer(of: Callable[[Outcome], float]) -> float:
        return min(
            _by(of, runs[dear], runs[cheap])
            for runs in (few, many)
            for dear in ("standard", "prefetching")
            for cheap in ("proxy", "delayed")
        )

    told = ", ".join(f"{name} {runs.per_move:.1f}" for name, runs in many.items())
    growth = {name: _by(_total, many[name], few[name]) for name in many}
    farthest = max(growth.values(), key=lambda times: abs(times - MANY / FEW))
    return [
        paper.found("cost-ten-times", dearer(_per_move), f"hops of a move at {MANY}: {told}"),
        paper.found("cost-with-greetings", dearer(_everything)),
        paper.found("cost-linear", farthest),
        paper.found("prefetching-dearer", _by(_per_move, many["prefetching"], many["standard"])),
        paper.found("delayed-cheaper", _by(_per_move, many["delayed"], many["proxy"])),
    ]


def _state(paper: Paper, few: Runs, many: Runs) -> list[Finding]:
    """Only in the text."""

    def entries(found: Outcome) -> float:
        return found.advertisements + found.subscriptions

    sizes = {name: entries(found) for name, found in many.items()}
    told = ", ".join(f"{name} {size:.0f}" for name, size in sizes.items())
    proxy = sizes.pop("proxy")
    levels = many["standard"].by_level
    return [
        paper.found("state-same", max(sizes.values()) / (min(sizes.values()) or 1), told),
        paper.found("state-proxy", proxy / (max(sizes.values()) or 1)),
        paper.found("state-linear", _by(entries, many["standard"], few["standard"])),
        paper.found("state-root", levels[0] / (levels[-1] or 1)),
    ]


def _delivery(paper: Paper, many: Runs) -> list[Finding]:
    """Figure 5."""
    after = {name: found.rebuilding(probe_every()) for name, found in many.items()}
    return [
        paper.found("standard-rebuilds", after["standard"]),
        paper.found("prefetching-rebuilds", after["prefetching"]),
        paper.found("delayed-rebuilds", after["delayed"] / after["standard"]),
    ]


def _latency(paper: Paper, many: Runs) -> list[Finding]:
    """Figure 6."""
    medians = {name: found.latency(0.5) for name, found in many.items()}
    means = {name: mean_latency(found) for name, found in many.items()}
    told = ", ".join(f"{name} {1000 * value:.0f} ms" for name, value in medians.items())
    farthest = max(medians.values(), key=lambda value: abs(value - 0.3))
    others = [value for name, value in means.items() if name != "standard"]
    rest = [value for name, value in means.items() if name != "prefetching"]
    return [
        paper.found("median", farthest, told),
        paper.found("latency-alike", max(medians.values()) / (min(medians.values()) or 1)),
        paper.found("latency-standard", means["standard"] / (max(others) or 1)),
        paper.found("latency-prefetching", means["prefetching"] / (min(rest) or 1)),
    ]


def _subscribers(paper: Paper, player: Player) -> list[Finding]:
    """Only in the text."""
    some = player.runs(("standard", "delayed"), subscribers=500)
    all_of_them = player.runs(("standard", "delayed"), subscribers=5000)
    change = max((100 * (all_of_them[name].ratio - some[name].ratio) for name in some), key=abs)
    cost = max(_by(_per_move, all_of_them[name], some[name]) for name in some)
    return [paper.found("subscribers-ratio", change), paper.found("subscribers-cost", cost)]


def _speed(paper: Paper, player: Player) -> list[Finding]:
    """Figures 7 and 8; and again with links that take time to wake up."""
    slow, fast = player.runs(speeds=(SLOW,)), player.runs(speeds=(FAST,))
    grown = {name: fast[name].cost - slow[name].cost for name in fast}
    gentle = max(grown["proxy"], grown["delayed"]) or 1
    steep = min(grown["standard"], grown["prefetching"]) / gentle
    waking = paper.settings["waking"]
    tried: tuple[Algorithm, ...] = ("standard", "delayed")
    asleep = {
        speed: player.runs(tried, speeds=(speed,), size=SMALL, idle=waking)
        for speed in (SLOW, FAST)
    }
    latency = max(_by(mean_latency, fast[name], slow[name]) for name in slow)
    awake = {speed: player.run("standard", speeds=(speed,), size=SMALL) for speed in (SLOW, FAST)}
    return [
        paper.found("speed-cost", steep),
        paper.found("speed-delivery", _gain(slow["standard"], fast["standard"])),
        paper.found("speed-latency", latency),
        paper.found("speed-awake", _gain(awake[SLOW], awake[FAST])),
        paper.found("waking-delivery", _gain(asleep[SLOW]["standard"], asleep[FAST]["standard"])),
        paper.found(
            "waking-latency",
            max(_by(mean_latency, asleep[FAST][name], asleep[SLOW][name]) for name in tried),
        ),
    ]


def _gain(slow: Outcome, fast: Outcome) -> float:
    return 100 * (fast.ratio - slow.ratio)


def _overshoot(paper: Paper, player: Player) -> list[Finding]:
    """Only in the text."""
    none, five, far = (
        player.run("proxy", overshoot=past, **BACK_AND_FORTH) for past in (0, 5, FAR)
    )
    return [
        paper.found("overshoot-grows", _by(_per_move, five, none)),
        paper.found("overshoot-flat", _by(_per_move, far, five)),
        paper.found("overshoot-latency", _by(mean_latency, far, none)),
    ]


def _locality(paper: Paper, player: Player) -> list[Finding]:
    """Figures 9 and 10."""
    duration = paper.settings["duration_locality"]
    tried: tuple[Algorithm, ...] = ("standard", "delayed", "proxy")
    alike = player.runs(tried, locality=LOCAL, duration=duration)
    unlike = player.runs(tried, duration=duration)

    def over(runs: Runs, of: Callable[[Outcome], float]) -> float:
        return max(_by(of, runs["standard"], runs[name]) for name in ("delayed", "proxy"))

    return [
        paper.found("locality-cost", over(alike, _per_move) / (over(unlike, _per_move) or 1)),
        paper.found("locality-near", over(alike, _per_move)),
        paper.found("locality-latency", over(alike, mean_latency)),
    ]


def _lossless(paper: Paper, player: Player) -> list[Finding]:
    """Not in the paper: held until the tree stands, with the same load."""
    runs = player.runs(ALGORITHMS, publishers=MANY, handover="lossless", duration=60.0)
    least = min(100 * found.ratio for found in runs.values())
    doubled = sum(found.doubled for found in runs.values())
    return [paper.found("lossless", least), paper.found("lossless-doubled", float(doubled))]
