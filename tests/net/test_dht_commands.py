"""`overlay dht` as processes, through running nodes."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.net.processes import overlay, peer
from tests.net.zone import FEDERATE

SERVE = ("dht.serve=true", "dht.found_after=0.2", "dht.shard_bits=4", FEDERATE)


@pytest.fixture(scope="module")
def west(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two servers of a zone."""
    runtime = tmp_path_factory.mktemp("r")
    start = [word for one in SERVE for word in ("--set", one)]
    with ExitStack() as stack:
        words = ("--insecure", "--zone", "west", *start)
        ada = stack.enter_context(peer(runtime, "--name", "ada", *words))
        stack.enter_context(peer(runtime, "--name", "bob", "--seed", ada.address, *words))
        yield runtime


def dht(runtime: Path, *words: str) -> tuple[int, str, str]:
    done = overlay(runtime, "dht", *words)
    return done.returncode, done.stdout, done.stderr


def test_keys_come_and_go(west: Path, tmp_path: Path) -> None:
    ada, bob = ("--node", "ada"), ("--node", "bob")
    assert dht(west, "get", "colour", *ada) == (1, "", "overlay: colour: no value\n")
    assert dht(west, "put", "colour", "blue", *ada) == (0, "", "")
    assert dht(west, "get", "colour", *bob) == (0, "blue\n", "")
    assert dht(west, "cas", "colour", "blue", "red", *bob) == (0, "", "")
    code, _, said = dht(west, "cas", "colour", "blue", "green", *ada)
    assert (code, said) == (1, "overlay: colour: it has another value, or none; nothing was done\n")
    code, told, _ = dht(west, "get", "colour", "--json", *ada)
    assert json.loads(told) == {"key": "colour", "found": True, "value": "red", "node": "ada"}
    assert dht(west, "put", "colour", "x", "--if-absent", *ada)[0] == 1
    assert dht(west, "rm", "colour", "--value", "blue", *ada)[0] == 1
    assert dht(west, "rm", "colour", *ada) == (0, "", "")
    assert dht(west, "rm", "colour", "--json", *ada)[:2] == (
        1,
        '{"key":"colour","done":false,"node":"ada"}\n',
    )
    assert dht(west, "put", "list", "[1, 2.5]", "--typed", *ada)[0] == 0
    assert dht(west, "get", "list", *bob) == (0, "[1,2.5]\n", "")
    (tmp_path / "file").write_bytes(b"\x00\xff\n" * 10)
    assert dht(west, "put", "00ff", "--hex", "--file", str(tmp_path / "file"), *ada)[0] == 0
    code, told, _ = dht(west, "get", "00ff", "--hex", "--json", *bob)
    assert json.loads(told)["value"] == "AP8K" * 10


def test_a_watch_prints_each_value(west: Path) -> None:
    dht(west, "put", "watched", "1", "--node", "ada")
    words = ("watch", "watched", "--count", "1", "--json", "--node", "bob")
    code, told, _ = dht(west, *words)
    assert (code, json.loads(told)) == (0, {"key": "watched", "found": True, "value": "1"})


def test_where_and_what_it_survives(west: Path) -> None:
    dht(west, "put", "placed", "1", "--node", "bob")
    code, told, _ = dht(west, "where", "placed", "--json", "--node", "bob")
    found = json.loads(told)
    assert code == 0
    assert sorted(found["members"]) == ["ada", "bob"]
    assert found["leader"] in ("ada", "bob")
    code, told, _ = dht(west, "stats", "--json")
    one = {node["node"]: node for node in json.loads(told)["nodes"]}["ada"]
    assert (one["serves"], one["shards"], one["storage"]) == (True, 16, "memory")
    assert one["survives"]["nodes"] == 0  # two replicas, of which both are the majority
    assert not one["survives"]["power_cut"]
    code, told, _ = dht(west, "stats")
    assert "no replica may fail: a key has 2" in told
    assert "a power cut of all loses everything" in told


def test_a_loss_is_accepted_only_if_one_says_so(west: Path) -> None:
    code, _, said = dht(west, "accept-loss")
    assert code == 2
    assert "--lose-data" in said
    code, told, _ = dht(west, "accept-loss", "--lose-data", "--json")
    given_up = {one["node"]: one["shards"] for one in json.loads(told)["nodes"]}
    assert (code, given_up) == (0, {"ada": 0, "bob": 0})  # nothing is lost here


def test_what_is_wrong_is_said_in_one_line(west: Path) -> None:
    assert dht(west, "put", "x" * 1025, "1", "--node", "ada")[::2] == (
        1,
        "overlay: a key of 1025 bytes: dht.key_bytes is 1024\n",
    )
    assert dht(west, "put", "k", "--node", "ada")[0] == 2
    assert dht(west, "put", "zz", "1", "--hex", "--node", "ada")[0] == 2
    assert dht(west, "put", "k", "[", "--typed", "--node", "ada")[0] == 2
    assert "say --node (ada, bob)" in dht(west, "get", "k")[2]
