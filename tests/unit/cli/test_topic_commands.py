"""`overlay pub`, `sub` and `topics`: what they read, show and refuse."""

import io
import json
import os
from base64 import b64decode
from typing import Any

import msgspec
import pytest
import typer

from nodes.cli import pub, sub
from nodes.cli.main import run
from nodes.topic_rows import rows_of
from protocols.topics.subscription import Replay

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _nobody_runs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("r")))


@pytest.mark.parametrize("command", ["pub", "sub", "topics"])
def test_every_command_has_help_and_json(command: str, capsys: Output) -> None:
    assert run([command, "--help"]) == 0
    assert "--json" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("topic", "problem"),
    [
        ("", "empty level"),
        ("a//b", "empty level"),
        ("x" * 257, "257 bytes: at most 256"),
        ("caf\udce9", "unprintable"),
        ("a/b*", "a level is '*', '**' or a word"),
    ],
)
def test_bad_names_are_one_line(topic: str, problem: str, capsys: Output) -> None:
    for command in (["pub", topic, "-m", "x"], ["sub", topic]):
        assert run(command) == 2, "wrong usage"
        told = capsys.readouterr().err
        assert problem in " ".join(told.replace("│", " ").split())
        assert "Traceback" not in told


@pytest.mark.parametrize(
    "words",
    [
        ["pub", "t", "--name", "ada", "-m", "x"],
        ["pub", "t", "--seed", "127.0.0.1:1", "--node", "ada", "-m", "x"],
        ["pub", "t", "--rate", "0", "-m", "x"],
        ["pub", "t", "--reliability", "sure"],
        ["pub", "t", "--file", "/nonexistent"],
        ["pub", "t", "x", "--file", "/etc/hostname"],
        ["sub", "t", "--raw", "--json"],
        ["sub", "t", "--replay", "yesterday"],
        ["sub", "t", "--count", "0"],
        ["pub"],
    ],
)
def test_wrong_usage_is_2(words: list[str], capsys: Output) -> None:
    assert run(words) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_without_a_node_it_says_what_to_do(capsys: Output) -> None:
    assert run(["pub", "t", "-m", "x"]) == 1
    assert "say --seed HOST:PORT" in capsys.readouterr().err
    assert run(["topics"]) == 1
    assert "no node runs on this machine" in capsys.readouterr().err


def test_replay_is_read() -> None:
    assert sub.parse_replay("") == Replay()
    assert sub.parse_replay("all") == Replay.all()
    assert sub.parse_replay("10") == Replay.last(10)
    ago = sub.parse_replay("1.5m")
    assert isinstance(ago, sub.Ago)
    assert ago.before(1000.0) == Replay.since(910.0)
    for wrong in ("-1", "10x", "s", "٣", "9" * 12):
        with pytest.raises(typer.BadParameter):
            sub.parse_replay(wrong)


def test_lines_are_text_where_they_can_be() -> None:
    stream = io.BytesIO(b"one\n\xff\n\nlast")
    assert [item for batch in pub.lines(stream) for item in batch] == ["one", b"\xff", "", "last"]


def test_made_up_messages_have_their_size_and_count() -> None:
    made = [item for batch in pub.source(None, None, 5000, 8) for item in batch]
    assert len(made) == 5000
    assert made[0] == b"1 ......"
    assert {len(item) for item in made} == {8}
    assert [*pub.source(["a", "b"], None, 2, 8)] == [["a", "b", "a", "b"]]


def test_a_text_that_is_no_utf_8_is_published_as_its_bytes() -> None:
    typed = os.fsdecode(b"\xff\xfe")
    assert [*pub.source([typed, "ü"], None, None, 8)] == [[b"\xff\xfe", "ü"]]


def test_a_rate_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.sleep", lambda pause: now.__setitem__(0, now[0] + pause))
    sent = [item for batch in pub.paced([["x"] * 1000], 500.0) for item in batch]
    assert len(sent) == 1000
    assert now[0] == pytest.approx(2.0, abs=0.02)


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        ("plain", "plain"),
        (b"bytes", "bytes"),
        ("\x1b[2J", '"\\u001b[2J"'),
        (b"\xff\x00", "ff 00"),
        ({"celsius": 21.5}, '{"celsius":21.5}'),
        (2**63, str(2**63)),
    ],
)
def test_people_see_one_harmless_line(item: Any, shown: str, capsys: Output) -> None:
    sub.print_line(sub.Batch("t", "ada", 1, 0.0, [item]))
    assert capsys.readouterr().out == f"t {shown}\n"


def test_programs_see_numbers_and_bytes(capsys: Output) -> None:
    sub.print_as_json(sub.Batch("t", "ada", 7, 1.5, [b"x", [1]]))
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["sequence"], first["base64"]) == (7, "eA==")
    assert (second["sequence"], second["data"], second["sent_at"]) == (8, [1], 1.5)


def test_programs_see_what_json_cannot_say_in_messagepack(capsys: Output) -> None:
    sub.print_as_json(sub.Batch("t", "ada", 1, 1.5, [{None: 1}, msgspec.msgpack.Ext(5, b"x"), 2]))
    *odd, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert [b64decode(one["msgpack"]) for one in odd] == [b"\x81\xc0\x01", b"\xd4\x05x"]
    assert (last["sequence"], last["data"]) == (3, 2)


def test_raw_is_the_payload_alone(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    sub.print_raw(sub.Batch("t", "ada", 1, 0.0, [b"\xff", "ü", 5]))
    assert capsysbinary.readouterr().out == b"\xff\xc3\xbc\x05"


def rate(messages: int, per_second: float, behind: int | None) -> dict[str, Any]:
    return {
        "messages": messages,
        "per_second": per_second,
        "bytes_per_second": per_second * 100,
        "behind": behind,
    }


def test_rows_put_together_what_nodes_tell() -> None:
    def view(node: str, published: int | None, arrived: int | None) -> dict[str, Any]:
        stream = {"topic": "t", "publisher": "ada", "stream": 5, "mode": "ack"}
        other = {"name": "cyn", "zone": "", "state": "operational", "behind": 4}
        gateway = {"name": "gus", "zone": "*", "state": "operational", "behind": 9}
        out: dict[str, Any] = {**stream, "messages": published, "bytes": 100 * (published or 0)}
        out["subscribers"] = [other, gateway]
        into: dict[str, Any] = {**stream, "messages": arrived, "bytes": 100 * (arrived or 0)}
        into |= {"behind": 1, "subscriptions": 1, "subscribers": []}
        return {
            "node": node,
            "overlay": "o",
            "zone": "west",
            "published": [] if published is None else [out],
            "arriving": [] if arrived is None else [into],
            "gateways": {"t": {"gateway": "gus", "zones": {"east": "eli"}}},
        }

    before = [view("ada", 100, None), view("bob", None, 90)]
    after = [view("ada", 300, None), view("bob", None, 280)]
    (row,) = rows_of(before, after, 2.0)
    unknown = {"messages": None, "per_second": None, "bytes_per_second": None}
    assert msgspec.to_builtins(row) == {
        "overlay": "o",
        "topic": "t",
        "modes": {"ack": None},
        "publishers": {"ada": rate(300, 100.0, None)},
        "subscribers": {
            "cyn": unknown | {"behind": 4},
            "gus for other zones": unknown | {"behind": 9},
            "bob": rate(280, 95.0, 1),
        },
        "messages": 300,
        "per_second": 100.0,
        "bytes_per_second": 10_000.0,
        "behind": 9,
        "gateways": {"west": "gus", "east": "eli"},
    }
