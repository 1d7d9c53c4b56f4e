"""Others who carry topics: those missing are skipped, servers start and end, and all can be run."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from bench.peers import carrier as carrier_module
from bench.peers.carrier import Carrier, Load, ServerError
from bench.peers.carrier_end import Taken
from bench.peers.carriers import CARRIERS
from bench.peers.topics_mosquitto import MosquittoTopics
from bench.report import Options, Report
from bench.topics_peers import beside_others
from nodes.spawning import ROOT


class PythonServed(Carrier):
    """A server that is always there: this Python, with a file as its program."""

    name: ClassVar[str] = "python"
    program: ClassVar[str] = sys.executable
    text: ClassVar[str] = ""

    def arguments(self, folder: Path, port: int) -> Sequence[str]:
        return ["-c", self.text, str(port)]

    def receive(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        raise AssertionError

    def send(self, port: int, load: Load) -> None:
        raise AssertionError


class Listening(PythonServed):
    text: ClassVar[str] = (
        "import socket, sys, time\n"
        "held = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
        "time.sleep(60)"
    )


class Failing(PythonServed):
    text: ClassVar[str] = "raise SystemExit('no such setting')"


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", "topics", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
    )


def test_who_is_missing_is_skipped_and_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # where nothing is
    monkeypatch.setattr(carrier_module, "SERVERS_TOO", str(tmp_path))
    monkeypatch.setattr(MosquittoTopics, "packages", {"no_such_module": "paho-mqtt"})
    report = Report("topics", {})
    beside_others(report, Options(peers=("mosquitto",)))
    assert report.notes == [
        "mosquitto is skipped, since it is not installed: "
        "pip install paho-mqtt, apt-get install mosquitto"
    ]
    assert report.results == {}


def test_nobody_else_runs_unless_asked_for() -> None:
    report = Report("topics", {})
    beside_others(report, Options())
    assert report.notes == []
    assert report.results == {}


def test_wrong_peers_say_which_there_are() -> None:
    done = bench("--peers", "kafka")
    assert done.returncode == 2
    there = "zenoh, nats, redis, redis-streams, mosquitto"
    assert f"--peers kafka: topics has {there}" in done.stderr


def test_a_server_listens_until_the_run_is_over(tmp_path: Path) -> None:
    with Listening().serving(tmp_path) as port:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="does not listen: no such setting"):
        with Failing().serving(tmp_path):
            raise AssertionError


def test_a_load_at_a_rate_says_when_each_was_published() -> None:
    taken = Taken(3)
    more = [taken.stamped(message) for message in Load(100, 3, rate=1000.0).messages()]
    assert more == [True, True, False]
    assert len(taken.delays) == 3
    assert all(0 <= delay < 1e9 for delay in taken.delays)
    assert 0.001 <= taken.seconds() < 10


def test_a_load_without_a_rate_is_counted() -> None:
    taken = Taken(3)
    messages = list(Load(100, 3).messages())
    assert messages == [bytes(100)] * 3
    take = taken.counted()
    assert [take(message) for message in messages] == [True, True, False]


def test_everybody_who_is_there_is_measured_and_the_others_are_skipped() -> None:
    done = bench("--json", "--quick", "--repeats", "1", "--only", "peers", "--peers")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    there = [name for name, carrier in CARRIERS.items() if not carrier().missing()]
    skipped = [note.partition(" ")[0] for note in report["notes"]]
    assert skipped == [name for name in CARRIERS if name not in there]
    sides = ["ack by batches", "ack by publish", *there] if there else []
    for side in sides:
        assert report["results"][f"peers: 100 B, {side} to raw PUSH/PULL"]["median"] > 0
    for side in there:
        for tail in ("p50", "p99"):
            case = f"peers: one-way latency {tail}, {side} to raw PUSH/PULL"
            assert report["results"][case]["median"] > 0


def test_the_extra_names_every_package() -> None:
    extra = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("peers = [")[2]
    extra = extra.partition("]")[0]
    for carrier in CARRIERS.values():
        for package in carrier.packages.values():
            assert f'"{package}>=' in extra
