"""`overlay lab up` from nothing to complete zone tables, on hosts that are network namespaces.

The wheelhouse is there, as for every `up` but the first. The second `up` has nothing to do: what it
takes is the price of looking.
"""

from __future__ import annotations

import re
import time

from bench.report import Options, Report

HOSTS, PEERS = 5, 4
WITHIN = 60.0  # s
ZONES = "ab"


def measure_up(report: Report, options: Options) -> None:
    """Enter the seconds of the first and the second `up`, and of each step of the first."""
    from tests.netns.lab import Lab
    from tests.netns.lab_fixture import make_wheels
    from tests.netns.rights import obstacle as no_lab
    from tests.netns.ssh_hosts import SshHosts
    from tests.netns.ssh_hosts import obstacle as no_ssh

    problem = no_lab() or no_ssh() or make_wheels()
    if problem:
        report.notes.append(f"lab up was not measured: {problem}")
        return
    hosts, peers = (2, 1) if options.quick else (HOSTS, PEERS)
    names = [f"h{number}" for number in range(1, hosts + 1)]
    took: dict[str, list[float]] = {}
    for _ in range(1 if options.quick else options.repeats):
        with Lab() as lab:
            there = SshHosts(lab, names)
            zones = {name: ZONES[place % 2] for place, name in enumerate(names)}
            there.write(peers=peers, zones=zones, sets=())
            began = time.monotonic()
            done = there.overlay("lab", "up", within=600)
            ended = time.monotonic()
            there.overlay("lab", "up", within=600)
            took.setdefault("up", []).append(ended - began)
            took.setdefault("up again", []).append(time.monotonic() - ended)
            for step, seconds in _steps(done.stderr, ended - began):
                took.setdefault(f"up: {step}", []).append(seconds)
    for case, times in took.items():
        report.add(f"{case}, {hosts} × {peers}", "s", times)
    if not options.quick:
        report.require(
            f"from nothing to complete zone tables, {hosts} hosts × {peers} peers",
            report.results[f"up, {hosts} × {peers}"].median,
            "s",
            "at most",
            WITHIN,
        )


def _steps(said: str, whole: float) -> list[tuple[str, float]]:
    """What the plain progress tells: when each step began."""
    found = re.findall(r"^\[ *([0-9.]+) s\] (.+)$", said, re.MULTILINE)
    begins = [float(seconds) for seconds, _ in found]
    ends = [*begins[1:], whole]
    return [(name, end - begin) for (_, name), begin, end in zip(found, begins, ends, strict=True)]
