"""What is wrong with a host, judged from its facts before anything is changed on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nodes.lab.failures import HostFailure
from nodes.lab.inventory_sections import CheckSettings

MEGABYTE = 1_000_000
PROBE_SECONDS = 3.0  # of calling and listening, unless everybody is heard before


def clock_offset(told: float, before: float, after: float) -> tuple[float, float]:
    """How far a host's clock is from ours, and how wrong that may be: half of the round trip."""
    return told - (before + after) / 2, (after - before) / 2


def problems(
    facts: Mapping[str, Any], asked_at: tuple[float, float], checks: CheckSettings
) -> Iterator[HostFailure]:
    """All that keeps a host from taking part, the gravest first."""
    if not facts["venv"]:
        yield HostFailure("its Python has no venv", "apt-get install python3-venv there")
    offset, error = clock_offset(facts["time"], *asked_at)
    if abs(offset) - error > checks.clock:
        way = "ahead of" if offset > 0 else "behind"
        yield HostFailure(
            f"its clock is {_seconds(abs(offset))} {way} this machine's",
            "run `sudo timedatectl set-ntp true` there, or allow more by clock = in [checks]",
        )
    if facts["free"] < checks.free * MEGABYTE:
        yield HostFailure(
            f"its disk has {facts['free'] / MEGABYTE:.0f} MB free, {checks.free} are wanted",
            "free some, or choose another folder = in its [[host]]",
        )
    for name, who in facts["taken"].items():
        yield HostFailure(
            f"the port of {name} is taken by {who}",
            "stop that, or set another port = in its [[host]]",
        )


def deaf_hosts(heard: Mapping[str, Sequence[str]], place: str) -> dict[str, HostFailure]:
    """Who is not reached by multicast, or does not reach: all but the largest group of hosts
    that hear each other; of equal groups the one with the first host counts.
    """
    groups: list[list[str]] = []
    left = list(heard)
    while left:
        group, edge = [], [left[0]]
        while edge:
            one = edge.pop()
            if one in group:
                continue
            group.append(one)
            left.remove(one)
            edge += [other for other in left if other in heard[one] and one in heard[other]]
        groups.append(group)
    well = max(groups, key=len, default=[])
    found = {}
    for name in heard:
        if name in well:
            continue
        others = [other for other in well if other != name]
        hears = any(other in heard[name] for other in others)
        is_heard = any(name in heard[other] for other in others)
        whom = others[0] if len(others) == 1 else f"{len(others)} others"
        how = {
            (False, False): f"no multicast between it and {whom}",
            (True, False): f"its multicast does not reach {whom}",
            (False, True): f"multicast of {whom} does not reach it",
        }.get((hears, is_heard), f"multicast between it and {whom} is one-sided")
        found[name] = HostFailure(
            how,
            f'allow UDP to {place} in its firewall and switch, or set multicast = "optional"',
        )
    return found


def _seconds(value: float) -> str:
    for size, unit in ((86_400, "days"), (3600, "h"), (60, "min")):
        if value >= 2 * size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"
