"""`overlay colony` as processes, through running nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.net.processes import overlay, peer

CPU, WANTED = 'kind = "cpu", cores <= 8', 'kind = "cpu", cores > 4'


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A broker and two computers, none of which knows the other's zone."""
    runtime = tmp_path_factory.mktemp("r")
    told = ("--insecure", "--set", "colony.placement=tree")
    with ExitStack() as stack:
        broker = stack.enter_context(
            peer(runtime, "--name", "ada", "--zone", "a", *told, "--set", "colony.leads=true")
        )
        leader = broker.address.removeprefix("tcp://")
        for name in ("bob", "eve"):
            words = ("--name", name, "--zone", name, *told, "--set", f"colony.leader={leader}")
            stack.enter_context(peer(runtime, *words))
        yield runtime


def colony(runtime: Path, *words: str) -> tuple[int, str, str]:
    done = overlay(runtime, "colony", *words)
    return done.returncode, done.stdout, done.stderr


def test_an_offer_is_found_and_withdrawn(tree: Path) -> None:
    assert colony(tree, "offer", CPU, "--node", "bob") == (0, "bob offers 1 service\n", "")
    code, told, _ = colony(tree, "ask", WANTED, "--json", "--node", "eve")
    found = json.loads(told)
    assert (code, found["name"], found["service"]) == (0, "bob", WANTED)
    assert found["endpoints"][0].startswith("tcp://127.0.0.1:")
    code, told, said = colony(tree, "ask", WANTED, 'kind = "gpu"', "--node", "eve")
    assert code == 1
    assert told.startswith(f"{WANTED}: bob at tcp://")
    assert said == 'overlay: kind = "gpu": rejected\n'
    assert colony(tree, "offer", CPU, "--withdraw", "--node", "bob")[0] == 0
    assert colony(tree, "ask", WANTED, "--node", "eve")[0] == 1


def test_who_refuses_is_not_found(tree: Path) -> None:
    assert colony(tree, "offer", 'kind = "tape"', "--refuse", "--node", "bob")[0] == 0
    assert colony(tree, "ask", 'kind = "tape"', "--all", "--reliable", "--node", "ada")[0] == 1


def test_the_tree(tree: Path) -> None:
    code, told, _ = colony(tree, "tree", "--json")
    nodes = {one["node"]: one for one in json.loads(told)["nodes"]}
    assert code == 0
    assert nodes["ada"]["leads"]
    assert sorted(one["name"] for one in nodes["ada"]["individuals"]) == ["bob", "eve"]
    assert nodes["bob"]["path"] == ["ada"]
    assert "computer" in colony(tree, "tree")[1]


def test_errors_are_one_line(tree: Path) -> None:
    code, _, said = colony(tree, "join", "bob", "--node", "ada")
    assert (code, said.count("\n")) == (1, 1)
    assert "bob does not take ada: not a leader" in said
    code, _, said = colony(tree, "offer", "kind =", "--node", "bob")
    assert (code, said.count("\n")) == (1, 1)
    code, _, said = colony(tree, "ask", "kind = 1", "--mode", "quickly", "--node", "bob")
    assert (code, said.count("\n")) == (1, 1)
    assert "no mode 'quickly'" in said
