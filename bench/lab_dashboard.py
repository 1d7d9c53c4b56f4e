"""What a dashboard costs: a watched zone of real peers, the page in a browser, and `/metrics`.

`dashboard`: peers in processes of their own on loopback, an `overlay dashboard` beside them, and a
reader of its stream. CPU time is that of the dashboard and what the peers took more than in the
turns in which nobody looked. `page`: headless Chromium, from the address to all members on the
screen. `metrics`: of a peer with the role, and of a dashboard that watches the whole zone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

import psutil
import trio

from bench.browser import CHROMIUM, MISSING, Page, browser
from bench.lab_world import World, WorldSource
from bench.overlay_peers import OverlayPeers
from bench.peer_processes import Processes
from bench.progress import Progress
from bench.report import Options, Report
from nodes.dashboard.server import serving
from nodes.folders import private_folder
from nodes.spawning import peer_environment

SIZE = 100
QUICK_SIZE = 5
SEEDS = 3
SETTLING = 10.0  # s: the news of the start die down
TURN = 20.0  # s of one turn, watched or not
SCRAPES = 50
MANY = 1000  # members that nobody runs
WITHIN = 60.0  # s for anything to happen
PAINTED = """
window.painted = new Promise((done) => {
  const look = () => {
    const tile = document.querySelector("[data-tile=members]");
    if (tile?.textContent.replace(",", "") === "%d") {
      requestAnimationFrame(() => done(performance.now()));
    } else requestAnimationFrame(look);
  };
  look();
});
"""
"""Milliseconds from the navigation to the frame after that in which all members are counted."""


class Reader:
    """A page without a browser: reads a view's stream, and counts."""

    def __init__(self, address: str, view: str) -> None:
        host, _, port = address.rpartition(":")
        self.bytes = 0
        self._link = HTTPConnection(host, int(port), timeout=WITHIN)
        self._link.request("GET", f"/stream/{view}")
        self._answer = self._link.getresponse()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            while part := self._answer.readline():
                self.bytes += len(part)
        except (OSError, ValueError, AttributeError):
            pass  # it was closed

    def close(self) -> None:
        """Look no more."""
        sock = self._link.sock
        if sock is not None:
            sock.shutdown(2)
        self._thread.join()
        self._link.close()


@contextmanager
def dashboard_of(runtime: Path) -> Iterator[tuple[str, psutil.Process]]:
    """`overlay dashboard` for the peers of that folder: its address and its process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "nodes.cli", "dashboard", "--bind", "127.0.0.1:0", "--json"],
        env=peer_environment(XDG_RUNTIME_DIR=str(runtime)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["address"], psutil.Process(process.pid)
    finally:
        process.terminate()
        process.communicate(timeout=WITHIN)


@contextmanager
def zone_of(size: int) -> Iterator[tuple[Processes, Path]]:
    """A complete zone of that size, and its runtime folder."""
    with tempfile.TemporaryDirectory(prefix="overlay-bench-") as folder:
        place = Path(folder) / "zone"
        with Processes(OverlayPeers(), place, size, SEEDS) as zone:
            zone.start()
            zone.wait(
                lambda: all(len(peer.view) == size - 1 for peer in zone.alive()), "complete views"
            )
            yield zone, place / "run"


def measure_dashboard(report: Report, options: Options) -> None:
    """CPU of a watched zone, and bytes to an open page."""
    size = QUICK_SIZE if options.quick else SIZE
    turn = 2.0 if options.quick else TURN
    rounds = 1 if options.quick else options.repeats
    progress = Progress("lab, dashboard", 2 * rounds)
    costs: dict[str, list[float]] = {"dashboard": [], "peers": [], "in all": []}
    rates = []
    with zone_of(size) as (zone, runtime), dashboard_of(runtime) as (address, process):
        zone.watch(1.0 if options.quick else SETTLING)

        def used() -> tuple[float, float]:
            times = process.cpu_times()
            return sum(peer.usage().cpu for peer in zone.alive()), times.user + times.system

        def take() -> tuple[float, float]:
            before, began = used(), time.monotonic()
            zone.watch(turn)
            after, passed = used(), time.monotonic() - began
            return (after[0] - before[0]) / passed, (after[1] - before[1]) / passed

        for number in range(rounds):
            progress.step(f"{size} peers, nobody looks, round {number + 1}")
            alone, _ = take()
            progress.step(f"{size} peers, a page is open, round {number + 1}")
            reader = Reader(address, "overview")
            zone.watch(2.0)  # the whole view comes once
            begun, at = reader.bytes, time.monotonic()
            watched, own = take()
            rates.append((reader.bytes - begun) / (time.monotonic() - at) / 1000)
            reader.close()
            costs["dashboard"].append(100 * own)
            costs["peers"].append(100 * (watched - alone))
            costs["in all"].append(100 * (own + watched - alone))
    for who, values in costs.items():
        report.add(f"CPU of a watched zone, n = {size}, {who}", "% of a core", values)
    total = report.results[f"CPU of a watched zone, n = {size}, in all"].median
    report.require(f"CPU of a watched zone, n = {size}", total, "% of a core", "at most", 2)
    rate = report.add(f"bytes to an open page, n = {size}", "kB/s", rates)
    report.require(f"bytes to an open page, n = {size}", rate.median, "kB/s", "at most", 20)


def measure_page(report: Report, options: Options) -> None:
    """From the address to all members on the screen: real ones, and many that nobody runs."""
    if CHROMIUM is None:
        report.notes.append(f"page: {MISSING}")
        return
    size = QUICK_SIZE if options.quick else SIZE
    with zone_of(size) as (_, runtime), dashboard_of(runtime) as (address, _):
        paints = _paints(f"http://{address}/", size, options)
    found = report.add(f"first useful paint, n = {size}", "s", paints)
    report.require(f"first useful paint, n = {size}", found.median, "s", "at most", 1)
    many = 20 * QUICK_SIZE if options.quick else MANY
    paints = trio.run(_paint_many, many, options)
    report.add(f"first useful paint, n = {many}, facts made up", "s", paints)


def _paints(url: str, size: int, options: Options) -> list[float]:
    with browser() as page:
        page.look(1280, 900)
        page.do("Page.addScriptToEvaluateOnNewDocument", source=PAINTED % size)
        return [_paint(page, url) for _ in range(1 if options.quick else options.repeats)]


def _paint(page: Page, url: str) -> float:
    page.go("about:blank")
    page.go(url)
    return float(page.tell("window.painted")) / 1000


async def _paint_many(size: int, options: Options) -> list[float]:
    world = World({"lab": size})
    with tempfile.TemporaryDirectory(prefix="overlay-bench-") as folder:
        nobody = private_folder(Path(folder) / "run")
        sources = [WorldSource(world, name) for name in world.members]
        async with serving("127.0.0.1:0", folder=nobody, sources=sources) as dashboard:
            return await trio.to_thread.run_sync(_paints, dashboard.url, size, options)


def measure_metrics(report: Report, options: Options) -> None:
    """Seconds for one answer of `/metrics`."""
    size = QUICK_SIZE if options.quick else SIZE
    with tempfile.TemporaryDirectory(prefix="overlay-bench-") as folder:
        one = _scrapes_of_a_peer(private_folder(Path(folder) / "r"))
    report.add("/metrics of a peer", "ms", one)
    report.require("/metrics of a peer, median", median(one), "ms", "at most", 20)
    with zone_of(size) as (_, runtime), dashboard_of(runtime) as (address, _):
        time.sleep(1.0)
        report.add(f"/metrics of a dashboard, {size} nodes", "ms", _scrapes(address, 5))


def _scrapes_of_a_peer(runtime: Path) -> list[float]:
    words = ["--insecure", "--name=ada", "--zone=lab", "--bind=127.0.0.1:0", "--profile=local"]
    process = subprocess.Popen(
        [*(sys.executable, "-m", "nodes.cli", "peer"), *words, "--dashboard=127.0.0.1:0", "--json"],
        env=peer_environment(XDG_RUNTIME_DIR=os.fspath(runtime)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["dashboard"]
        return _scrapes(url.split("/")[2], SCRAPES)
    finally:
        process.terminate()
        process.communicate(timeout=WITHIN)


def _scrapes(address: str, times: int) -> list[float]:
    """Milliseconds of each, on one connection, as Prometheus does."""
    host, _, port = address.rpartition(":")
    link = HTTPConnection(host, int(port), timeout=WITHIN)
    found = []
    for number in range(times + 1):
        began = time.perf_counter()
        link.request("GET", "/metrics")
        answer = link.getresponse()
        assert answer.status == 200
        answer.read()
        if number:  # the first one finds an idle process
            found.append(1000 * (time.perf_counter() - began))
    link.close()
    return found
