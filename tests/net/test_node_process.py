"""`overlay peer`, `status`, `stop`, `echo` and `demo` as people run them: real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from overlay.traces.spool import recover
from tests.net.processes import DEADLINE, OVERLAY, environment, overlay, peer
from tests.unit.traces.rows import read_folder


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("r")


def test_a_peer_tells_its_address_first_and_says_that_it_is_insecure(runtime: Path) -> None:
    with peer(runtime, "--name", "ada", "--insecure", "--zone", "west") as ada:
        assert ada.told["name"] == "ada"
        assert ada.told["insecure"] is True
        assert ada.address == ada.told["endpoints"][0]
        assert ada.address.startswith("tcp://127.0.0.1:")
        status = json.loads(overlay(runtime, "status", "--json").stdout)["nodes"]
        assert [(node["name"], node["zone"], node["insecure"]) for node in status] == [
            ("ada", "west", True)
        ]
        assert "INSECURE" in overlay(runtime, "status").stdout
        ada.signal(signal.SIGTERM)
        code, errors = ada.ended()
    assert code == 0
    assert "ada runs INSECURE" in errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_soon_and_further_ones_are_harmless(runtime: Path, number: int) -> None:
    with peer(runtime, "--name", "ada", "--insecure") as ada:
        began = time.monotonic()
        while ada.process.poll() is None and time.monotonic() - began < DEADLINE:
            ada.signal(number)  # as fast as we can
        code, errors = ada.ended()
    assert code == 0
    assert "Traceback" not in errors
    assert list((runtime / "zmq-overlay").iterdir()) == []


def test_what_a_killed_peer_left_is_cleaned_up(runtime: Path) -> None:
    with peer(runtime, "--name", "ada", "--insecure") as ada:
        ada.signal(signal.SIGKILL)
        ada.ended()
    assert len(list((runtime / "zmq-overlay").iterdir())) == 1
    assert "no node runs" in overlay(runtime, "status").stdout
    assert list((runtime / "zmq-overlay").iterdir()) == []


def test_stop_by_name_and_all(runtime: Path) -> None:
    with (
        peer(runtime, "--name", "ada", "--insecure") as ada,
        peer(runtime, "--name", "bob", "--insecure") as bob,
    ):
        done = overlay(runtime, "stop", "ada")
        assert (done.returncode, done.stdout) == (0, "ada stopped\n")
        assert ada.ended()[0] == 0
        wrong = overlay(runtime, "stop", "ada")
        assert wrong.returncode == 1
        assert wrong.stderr == ("overlay: no node 'ada' runs on this machine (running: bob)\n")
        done = overlay(runtime, "stop", "--all", "--json")
        assert json.loads(done.stdout) == {"stopped": ["bob"], "running": []}
        assert bob.ended()[0] == 0


def test_keys_then_peers_then_echo(runtime: Path) -> None:
    refused = overlay(runtime, "peer", "--name", "ada")
    assert refused.returncode == 1
    assert "run `overlay keys init` (once), then `overlay keys issue ada" in refused.stderr
    assert overlay(runtime, "keys", "init").returncode == 0
    for name in ("ada", "bob", "cyn"):
        assert overlay(runtime, "keys", "issue", name, "--zone", "west").returncode == 0
    with peer(runtime, "--name", "ada", "--zone", "west") as ada:
        assert ada.told["insecure"] is False
        with peer(runtime, "--name", "bob", "--seed", ada.address, "--events") as bob:
            assert bob.process.stdout is not None
            line = json.loads(bob.process.stdout.readline())
            assert (line["event"], line["peer"]) == ("link-up", "ada")
        echo = ("echo", ada.address, "--name", "cyn", "--bind", "127.0.0.1:0", "--pause", "0")
        patience = ("--within", "50", "--set", "echo.timeout=30")
        asked = overlay(runtime, *echo, *patience, "--count", "3", "--json")
        assert asked.returncode == 0, asked.stderr
        assert json.loads(asked.stdout)["answered"] == 3
        outsider = overlay(runtime, *echo, "--insecure", "--within", "1")
        assert outsider.returncode == 1
        assert outsider.stderr.startswith("overlay: nobody let us in at tcp://127.0.0.1:")


def test_a_peer_outlives_its_reader(runtime: Path) -> None:
    with peer(runtime, "--name", "ada", "--insecure", "--events") as ada:
        assert ada.process.stdout is not None
        ada.process.stdout.close()
        echo = ("echo", ada.address, "--insecure", "--bind", "127.0.0.1:0", "--count", "1")
        patience = ("--within", "50", "--set", "echo.timeout=30")
        assert overlay(runtime, *echo, *patience).returncode == 0
        assert overlay(runtime, "stop", "ada").returncode == 0
        assert ada.process.wait(DEADLINE) == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--insecure", "--bind", "nowhere"], "--bind: net.bind = 'nowhere': write HOST:PORT"),
        (["--insecure", "--set", "echo.timeuot=1"], "did you mean echo.timeout?"),
        (["--insecure", "--profile", "lna"], "did you mean lan?"),
        (["--insecure", "--config", "/nonexistent.toml"], "/nonexistent.toml: no such file"),
        (["--insecure", "--name", "a/b"], "node name 'a/b' has a '/'"),
        (["--name", "a/b"], "node name 'a/b' has a '/'"),
        (["--insecure", "--zone", "a b"], "zone 'a b'"),
        (["--insecure", "--bind", "192.0.2.77:0"], "Cannot assign requested address: listen at"),
    ],
)
def test_what_cannot_start_says_why_in_one_line(
    runtime: Path, words: list[str], complaint: str
) -> None:
    done = overlay(runtime, "peer", *words)
    assert done.returncode == 1
    assert done.stdout == ""
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_second_peer_of_one_name_is_refused(runtime: Path) -> None:
    with peer(runtime, "--name", "ada", "--insecure") as ada:
        again = overlay(runtime, "peer", "--name", "ada", "--insecure")
        assert again.returncode == 1
        assert f"ada runs on this machine already (pid {ada.process.pid})" in again.stderr
        with peer(runtime, "--name", "ada", "--insecure", "--overlay", "other") as other:
            assert other.told["overlay"] == "other"


def test_a_port_in_use_is_told(runtime: Path) -> None:
    with peer(runtime, "--name", "ada", "--insecure") as ada:
        again = overlay(runtime, "peer", "--insecure", "--bind", ada.address)
    assert again.returncode == 1
    assert again.stderr == (
        f"overlay: net.bind = '{ada.address}': Address already in use:"
        " choose another port, or 0 for any free one\n"
    )


@pytest.mark.parametrize("closed", ["0<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_harm_nobody(runtime: Path, closed: str) -> None:
    with peer(runtime, "--name", "ada", "--insecure"):
        for words in ("--version", "status", "status ada --json", "stop ada"):
            done = subprocess.run(
                ["bash", "-c", f'"$@" {closed}', "-", *OVERLAY, *words.split()],
                env=environment(runtime),
                stderr=subprocess.PIPE,
                text=True,
                timeout=DEADLINE,
            )
            assert (done.returncode, done.stderr) == (0, ""), words


def test_through_typer_it_is_the_same_peer(runtime: Path) -> None:
    """An option that the lean parser leaves to typer still ends in the lean process."""
    command = [*OVERLAY, "peer", "--name", "ada", "--insecure", "--bind=127.0.0.1:0", "--"]
    process = subprocess.Popen(
        command, env=environment(runtime), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("tcp://127.0.0.1:")
        command_line = Path(f"/proc/{process.pid}/cmdline").read_text().split("\0")
        assert "nodes.cli" in command_line
        assert "--" not in command_line
        process.terminate()
        assert process.wait(DEADLINE) == 0
    finally:
        process.kill()
        process.communicate(timeout=DEADLINE)


def test_the_demo_shows_what_it_promises(runtime: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [*OVERLAY, "demo", "--json", "--dir", str(tmp_path)],
        env=environment(runtime),
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["failures"] == []
    for zones in (report["zones_before"], report["zones_after"]):
        assert [zone["name"] for zone in zones] == ["east", "north", "west"]
        assert all(len(zone["delegates"]) == 2 for zone in zones)
    victim, heir = report["victim"], report["replacement"]
    assert victim in report["zones_before"][0]["delegates"]
    assert heir not in report["zones_before"][0]["delegates"]
    assert victim not in report["zones_after"][0]["delegates"]
    assert heir in report["zones_after"][0]["delegates"]
    assert len(report["witnesses"]) == 3
    for one in report["witnesses"]:
        assert one["failed"] > 0
        assert 0 < one["replaced"] <= report["replaced"]
        assert one["returned"] > 0
    assert len(report["machines"]["machines"]) == 12
    assert report["machines"]["zones"] == 3
    assert report["table"]["read"] == report["table"]["keys"] == 10_000
    assert report["dashboard"].startswith("http://127.0.0.1:")
    recover(Path(report["traces"]))  # two peers were killed, and a zone
    rows = read_folder(Path(report["traces"]))
    told = [row for row in rows if row["topic"] == report["stream"]["topic"]]
    kinds = ("published", "delivered")
    published, delivered = (
        sum(row["count"] for row in told if row["kind"] == kind) for kind in kinds
    )
    assert published >= report["stream"]["published"]
    assert delivered >= report["stream"]["delivered"]
    assert {row["node"] for row in rows} >= set(report["stream"]["subscribers"])


def test_an_interrupted_demo_leaves_nothing_behind(runtime: Path) -> None:
    (runtime / "tmp").mkdir()
    process = subprocess.Popen(
        [*OVERLAY, "demo"],
        cwd=runtime / "tmp",
        env=environment(runtime) | {"TMPDIR": str(runtime / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert "12 peers run" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=DEADLINE)
        assert process.returncode == 1
        assert errors == "overlay: interrupted; all peers are stopped, nothing is left behind\n"
        assert list((runtime / "tmp").iterdir()) == []
    finally:
        process.kill()
        process.communicate(timeout=DEADLINE)


@pytest.mark.parametrize(
    ("words", "sign"),
    [
        (["nodes.cli", "echo", "127.0.0.1:1", "--insecure", "--within", "600"], "maps"),
        (["nodes.cli", "sim", "echo-churn", "--nodes", "2000"], "maps"),
        (["nodes.scenarios.campaign", "--seeds", "100000"], "children"),
    ],
    ids=["echo", "sim", "campaign"],
)
def test_ctrl_c_ends_long_work_in_one_line(runtime: Path, words: list[str], sign: str) -> None:
    """As a terminal does it: to the whole group, at a moment when nobody is prepared."""
    process = subprocess.Popen(
        [sys.executable, "-m", *words],
        env=environment(runtime),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        began = time.monotonic()
        told = Path(f"/proc/{process.pid}/task/{process.pid}/{sign}")
        while time.monotonic() - began < DEADLINE:
            text = told.read_text()
            if text if sign == "children" else "msgspec" in text:
                break  # our own code runs, and has just begun
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=DEADLINE)
    finally:
        process.kill()
        process.communicate(timeout=DEADLINE)
    assert process.returncode == 1
    assert errors in ("overlay: interrupted\n", "campaign: interrupted\n")
