"""First contact on a LAN: from the start of one that knows nobody to the first answer, and on.

One process answers and runs all the time. Another, whose interpreter and imports are warm, starts a
node for each round: the clock runs from the moment at which that node is started. Nodes have keys,
and in each round another name, so that no certificate is known. `python-zeroconf` does the same
with a service that is registered and a browser that is started; under `--peers`, zenoh scouts and
pyre beacons. All of it in networks of its own: loopback alone, and two namespaces with a cable.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Self

from bench.own_network import enter
from bench.processes import measure_alone
from bench.progress import Progress
from bench.report import Options, Report
from nodes.spawning import ROOT, peer_environment

OURS = "ours"
ZEROCONF = "python-zeroconf"
CONTENDERS = {"zenoh": "eclipse-zenoh", "pyre": "zeromq-pyre"}  # and what to install
ROUNDS = {OURS: 40, ZEROCONF: 4, "zenoh": 4, "pyre": 2}  # in each repeat
WITHIN = 30.0  # s for any one answer of a process
PLACES = ("loopback", "namespaces")
ADDRESSES = {"loopback": ("127.0.0.1", "127.0.0.1"), "namespaces": ("10.78.0.1", "10.78.0.2")}


def report_contact(report: Report, options: Options) -> None:
    """Measure in both places."""
    for place in PLACES:
        report.take(measure_alone(_measure, place, options))
    report.notes.append(
        "contact: from the start of a node (its config is read, its sockets are not open) in a warm"
        " process; the interpreter and imports are not in it"
    )


def _measure(place: str, options: Options) -> Report:
    """In a process of its own, which moves into a network of its own."""
    report = Report("discovery", {})
    if obstacle := enter():
        report.notes.append(f"contact, {place}: skipped, {obstacle}")
        return report
    kinds = [OURS, ZEROCONF]
    for name in options.peers:
        if name in CONTENDERS and find_spec(name) is None:
            report.notes.append(f"{name} is skipped: pip install {CONTENDERS[name]}")
        elif name in CONTENDERS:
            kinds.append(name)
    batches = 1 if options.quick else options.repeats
    progress = Progress(f"discovery, {place}", len(kinds))
    for kind in kinds:
        progress.step(kind)
        rounds = 3 if options.quick else ROUNDS[kind]
        with tempfile.TemporaryDirectory(prefix="overlay-bench-") as folder:
            found = _run(kind, place, Path(folder), batches, rounds)
        _enter(report, kind, place, found)
    _judge(report, place)
    return report


def _enter(
    report: Report, kind: str, place: str, found: Sequence[Sequence[dict[str, float]]]
) -> None:
    for what in found[0][0]:
        times = [[one[what] * 1000 for one in batch] for batch in found]
        name = f"{kind}, {place}: {what}"
        report.add(f"{name}, p50", "ms", [median(batch) for batch in times])
        every = sorted(one for batch in times for one in batch)
        report.add(f"{name}, p99 of {len(every)}", "ms", [_p99(every)])


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[98] if len(values) > 1 else values[0]


def _judge(report: Report, place: str) -> None:
    for name, case in list(report.results.items()):
        if not name.startswith(f"{OURS}, {place}: "):
            continue
        if name.endswith("first answer, p50"):
            report.require(name, case.median, "ms", "at most", 5)
            other = report.results[f"{ZEROCONF}, {place}: first answer, p50"].median
            report.add(f"{place}: python-zeroconf / ours, first answer", "×", [other / case.median])
        elif "joined on both sides" in name:
            bar = 50 if name.endswith("p50") else 500
            report.require(name, case.median, "ms", "at most", bar)


# -- processes ------------------------------------------------------------------------------------


class End:
    """One of the two processes of a measurement: it takes and tells lines of JSON."""

    def __init__(self, role: str, kind: str, host: str, folder: Path, *, elsewhere: bool) -> None:
        told = json.dumps({"kind": kind, "host": host, "folder": str(folder)})
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "bench.discovery_ends",
                role,
                told,
                "apart" if elsewhere else "",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=peer_environment(OVERLAY_SET=""),
        )
        self._rest = b""
        self._role = f"the process of {kind} that should {role}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def say(self, **words: Any) -> None:
        """Tell it one thing."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words).encode() + b"\n")
        self._process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """What it says next."""
        assert self._process.stdout is not None
        until = time.monotonic() + WITHIN
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise TimeoutError(f"{self._role}: no word within {WITHIN:g} s")
            part = os.read(self._process.stdout.fileno(), 65_536)
            if not part:
                raise ChildProcessError(f"{self._role} ended")
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        told: dict[str, Any] = json.loads(line)
        return told


def _run(
    kind: str, place: str, folder: Path, batches: int, rounds: int
) -> list[list[dict[str, float]]]:
    """All rounds, in batches: what happened after how many seconds."""
    names = [f"browser-{index}" for index in range(batches * rounds)]
    if kind == OURS:
        _make_keys(folder, ["answerer", *names])
    here, there = ADDRESSES[place]
    apart = place == "namespaces"
    with ExitStack() as ends:
        answerer = ends.enter_context(End("answer", kind, here, folder, elsewhere=False))
        browser = ends.enter_context(End("browse", kind, there, folder, elsewhere=apart))
        if apart:
            browser.hear()  # it is in its own namespace
            _connect(browser.pid, here, there)
        answerer.say(go=True)
        answerer.hear()
        browser.say(go=True)
        browser.hear()
        results = [_round(kind, name, browser, answerer) for name in names]
    return [results[start : start + rounds] for start in range(0, len(results), rounds)]


def _round(kind: str, name: str, browser: End, answerer: End) -> dict[str, float]:
    browser.say(name=name)
    told = browser.hear()
    found = {"first answer": told["answered"] - told["began"]}
    if kind == OURS:
        heard = answerer.hear()
        while (heard["event"], heard["member"]) != ("joined", name):
            heard = answerer.hear()
        both = max(told["joined"], heard["monotonic"])
        found["joined on both sides"] = both - told["began"]
        browser.say(leave=True)
        browser.hear()
        while (heard["event"], heard["member"]) != ("left", name):
            heard = answerer.hear()
    return found


def _make_keys(folder: Path, names: Sequence[str]) -> None:
    from overlay.security.authority import Authority
    from overlay.security.rights import Rights

    authority = Authority.create(folder, "bench")
    for name in names:
        authority.issue(name, Rights(zones=("*",)), 1).save(folder)


def _connect(pid: int, here: str, there: str) -> None:
    """A cable between this network namespace and that of a process."""
    for words in (
        f"ip link add near type veth peer name far netns {pid}",
        f"ip address add {here}/24 dev near",
        "ip link set near up",
        f"nsenter -t {pid} -n ip address add {there}/24 dev far",
        f"nsenter -t {pid} -n ip link set far up",
        f"nsenter -t {pid} -n ip link set lo up",
    ):
        subprocess.run(words.split(), check=True, capture_output=True)
