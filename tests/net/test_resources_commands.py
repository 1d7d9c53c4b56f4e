"""`overlay resource` and `overlay find` as processes, through running nodes."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.net.processes import OVERLAY, environment, overlay, peer
from tests.net.zone import FEDERATE

DEADLINE = 60.0
ADA = ("--node", "ada")


@pytest.fixture(scope="module")
def west(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two members of a zone; the second one shares its machine."""
    runtime = tmp_path_factory.mktemp("r")
    with ExitStack() as stack:
        words = ("--insecure", "--zone", "west", "--set", FEDERATE)
        ada = stack.enter_context(peer(runtime, "--name", "ada", *words))
        more = ("--seed", ada.address, "--share-machine", *words)
        stack.enter_context(peer(runtime, "--name", "bob", *more))
        yield runtime


def run(runtime: Path, *words: str) -> tuple[int, str, str]:
    done = overlay(runtime, *words)
    return done.returncode, done.stdout, done.stderr


def found(runtime: Path, query: str, *words: str) -> list[str]:
    """Ids, once there are any: what was just registered is on its way."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        code, told, said = run(runtime, "find", query, "--fresh", "--json", *ADA, *words)
        if code == 0:
            answer = json.loads(told)
            assert answer["complete"]
            assert answer["found"] == len(answer["resources"])
            return [one["id"] for one in answer["resources"]]
        assert code == 1, said
    raise AssertionError(f"nothing is found: {query}")


def test_a_resource_comes_changes_and_goes(west: Path) -> None:
    bob = ("--node", "bob")
    what = ("box", "system = 'Linux', ram <= 64", "--values", "ram = 48")
    assert run(west, "resource", "register", *what, *bob) == (0, "bob/box registered\n", "")
    assert found(west, "ram > 32") == ["bob/box"]
    assert run(west, "resource", "update", "box", "ram = 16", *bob) == (0, "bob/box updated\n", "")
    assert found(west, "ram = 16") == ["bob/box"]
    code, told, _ = run(west, "resource", "list", "--json", *bob)
    (node,) = json.loads(told)["nodes"]
    (box,) = [one for one in node["resources"] if one["name"] == "box"]
    assert (code, box["values"], box["model"]) == (0, {"ram": 16}, "dynamic")
    code, told, _ = run(west, "resource", "list", *bob)
    assert "ram <= 64" in told
    code, told, _ = run(west, "resource", "unregister", "box", "--json", *bob)
    assert json.loads(told) == {"id": "bob/box", "done": "unregistered", "node": "bob"}
    code, told, said = run(west, "find", "ram >= 0", "--timeout", "10", "--fresh")
    assert (code, told, said) == (1, "0 resources\n", "")


def test_the_machine_that_a_peer_shares(west: Path) -> None:
    assert found(west, "memory >= 0.1", "--nearest") == ["bob/machine"]
    code, told, _ = run(west, "find", "memory >= 0.1", "--node", "bob")
    assert code == 0
    assert "machine" in told
    assert "1 resource\n" in told


def test_a_find_that_goes_on(west: Path) -> None:
    watch = subprocess.Popen(
        [*OVERLAY, "find", "lamp present", "--watch", "--json", "--count", "3", "--node", "ada"],
        env=environment(west),
        stdout=subprocess.PIPE,
        text=True,
    )
    bob = ("--node", "bob")
    try:
        run(west, "resource", "register", "lamp", "lamp = 1", *bob)
        assert found(west, "lamp present") == ["bob/lamp"]
        assert watch.stdout is not None
        first = json.loads(watch.stdout.readline())
        assert (first["id"], first["gone"], first["values"]) == ("bob/lamp", False, {"lamp": 1})
        run(west, "resource", "unregister", "lamp", *bob)
        assert json.loads(watch.stdout.readline())["gone"] is True
        run(west, "resource", "register", "lamp", "lamp = 2", *bob)
        assert json.loads(watch.stdout.readline())["values"] == {"lamp": 2}
        assert watch.wait(DEADLINE) == 0
    finally:
        watch.kill()
        watch.communicate()


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("find", "memory >"), 2, "memory"),
        (("find", "a > 10, a < 5"), 2, "contradicts"),
        (("find", "a = nan"), 2, "nan"),
        (("find", "x" * 70 + " = 1"), 2, "at most 64"),
        (("find", "a = 1", "--model", "all"), 2, "any, static, dynamic"),
        (("resource", "register", "x"), 2, "say what it is"),
        (("resource", "update", "box", "ram > 3"), 2, "give one value"),
        (("resource", "update", "bax", "ram = 3", "--node", "ada"), 1, "no resource 'bax'"),
        (("resource", "unregister", "bax", "--node", "ada"), 1, "no resource 'bax'"),
        (("resource", "register", "a/b", "x = 1", "--node", "ada"), 1, "cannot be called"),
        (("find", "a = 1", "--node", "nobody"), 1, "no node 'nobody' runs"),
    ],
)
def test_mistakes(west: Path, words: tuple[str, ...], code: int, says: str) -> None:
    ended, told, said = run(west, *words)
    assert ended == code, said
    assert says in " ".join(said.replace("│", " ").split())
    assert "Traceback" not in said
    assert told == ""
