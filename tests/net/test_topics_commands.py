"""`overlay pub`, `sub` and `topics` as processes, through running nodes and as peers."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.net.processes import DEADLINE, OVERLAY, environment, overlay, peer
from tests.net.zone import NO_DELEGATES

WEST = ("--insecure", "--zone", "west")


@contextmanager
def running(runtime: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command that goes on; killed at the end if it still does."""
    process = subprocess.Popen(
        [*OVERLAY, *words],
        env=environment(runtime),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=DEADLINE)


@pytest.fixture
def west(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Two peers of a zone: where their control sockets are, and where ada is reached."""
    runtime = tmp_path_factory.mktemp("r")
    with ExitStack() as stack:
        start = ("--set", NO_DELEGATES, *WEST)
        ada = stack.enter_context(peer(runtime, "--name", "ada", *start))
        stack.enter_context(peer(runtime, "--name", "bob", "--seed", ada.address, *start))
        yield runtime, ada.address


def test_lines_go_through_running_nodes(west: tuple[Path, str]) -> None:
    runtime, _ = west
    with (
        running(runtime, "sub", "sensors/**", "--node", "bob", "--json", "--count", "3") as sub,
        running(runtime, "pub", "sensors/7", "--node", "ada", "--wait", "1", "--json") as pub,
    ):
        told, errors = pub.communicate(b"21.5\ngr\xc3\xbc\xc3\x9fe\n\xff\xfe\n", timeout=DEADLINE)
        assert (pub.returncode, errors) == (0, b"")
        result = json.loads(told)
        assert (result["published"], result["subscribers"], result["node"]) == (3, ["bob"], "ada")
        lines, errors = sub.communicate(timeout=DEADLINE)
        assert (sub.returncode, errors) == (0, b"")
        got = [json.loads(line) for line in lines.splitlines()]
        assert [one.get("data") for one in got] == ["21.5", "grüße", None]
        assert got[2]["base64"] == "//4="
        assert [(one["sequence"], one["publisher"]) for one in got] == [
            (1, "ada"),
            (2, "ada"),
            (3, "ada"),
        ]


def test_peers_of_their_own_and_a_file(west: tuple[Path, str], tmp_path: Path) -> None:
    runtime, address = west
    content = bytes(range(256)) * 3000
    (tmp_path / "file").write_bytes(content)
    own = ("--seed", address, *WEST, "--set", NO_DELEGATES)
    with running(runtime, "sub", "files", "--raw", "--count", "2", *own) as sub:
        words = ("--reliability", "nack", "--linger", "1", "--count", "2", "--wait", "1")
        done = overlay(runtime, "pub", "files", "--file", str(tmp_path / "file"), *words, *own)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("2 messages to files for ")
        assert sub.communicate(timeout=DEADLINE)[0] == content * 2


def test_topics_shows_rates_and_who_is_there(west: tuple[Path, str]) -> None:
    runtime, _ = west
    with (
        running(runtime, "sub", "t/*", "--node", "bob") as sub,
        running(
            runtime,
            *("pub", "t/1", "--node", "ada", "--wait", "1"),
            *("--count", "1000000", "--rate", "500", "--size", "20"),
        ) as pub,
    ):
        assert sub.stdout is not None
        assert sub.stdout.readline().startswith(b"t/1 1 ...")
        done = overlay(runtime, "topics", "--json", "--interval", "0.3")
        assert done.returncode == 0
        (row,) = json.loads(done.stdout)["topics"]
        assert (row["topic"], [*row["publishers"]], [*row["subscribers"]]) == (
            "t/1",
            ["ada"],
            ["bob"],
        )
        assert [*row["modes"]] == ["ack"]
        assert row["per_second"] > 50
        assert row["messages"] > 0
        assert "t/1" in overlay(runtime, "topics", "--interval", "0.1", "--node", "ada").stdout
        pub.send_signal(signal.SIGINT)
        told, errors = pub.communicate(timeout=DEADLINE)
        assert pub.returncode == 0
        assert errors.startswith(b"overlay: no more is read")
        assert b" messages to t/1 for bob" in told
        sub.send_signal(signal.SIGINT)
        _, errors = sub.communicate(timeout=DEADLINE)
        assert (sub.returncode, errors) == (0, b"")


def test_failures_are_one_line(west: tuple[Path, str]) -> None:
    runtime, _ = west
    for words, complaint in (
        (("pub", "t", "x"), "several nodes run on this machine: say --node (ada, bob)"),
        (("sub", "t", "--node", "ada", "--within", "0.1"), "nothing came for 0.1 s"),
        (("pub", "t", "--node", "eve", "-m", "x"), "no node 'eve' runs on this machine"),
    ):
        done = overlay(runtime, *words)
        assert done.returncode == 1
        assert done.stderr.startswith(f"overlay: {complaint}")
        assert done.stderr.count("\n") == 1
    with running(runtime, "sub", "t", "--node", "bob") as sub:
        done = overlay(runtime, "pub", "t", "x", "--node", "ada", "--wait", "1")
        assert done.returncode == 0
        assert overlay(runtime, "stop", "bob").returncode == 0
        _, errors = sub.communicate(timeout=DEADLINE)
        assert (sub.returncode, errors) == (1, b"overlay: bob stopped\n")


def test_a_peer_that_finds_nobody_says_so_and_goes_on_trying(tmp_path: Path) -> None:
    with running(tmp_path, "pub", "t", "-m", "x", "--seed", "127.0.0.1:1", "--insecure") as pub:
        assert pub.stderr is not None
        said = pub.stderr.readline()
        assert b"found no way into its zone over 127.0.0.1:1 so far" in said
        pub.send_signal(signal.SIGINT)
        _, errors = pub.communicate(timeout=DEADLINE)
        assert (pub.returncode, errors) == (1, b"overlay: interrupted\n")


def test_a_subscriber_of_another_zone_is_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Through the gateways of both zones, which are elected while the command waits."""
    runtime = tmp_path_factory.mktemp("r")
    with ExitStack() as stack:
        ada = stack.enter_context(peer(runtime, "--name", "ada", "--zone", "east", "--insecure"))
        words = ("--name", "bob", "--zone", "west", "--insecure", "--seed", ada.address)
        stack.enter_context(peer(runtime, *words))
        with running(runtime, "sub", "far/*", "--node", "bob", "--count", "1") as sub:
            done = overlay(runtime, "pub", "far/1", "-m", "hello", "--node", "ada", "--wait", "1")
            assert (done.returncode, done.stderr) == (0, "")
            lines, errors = sub.communicate(timeout=DEADLINE)
            assert (lines, errors) == (b"far/1 hello\n", b"")
