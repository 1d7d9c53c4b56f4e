"""The lean parser of `overlay peer` reads plain words as typer would, and leaves it the rest."""

from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis.strategies import lists, sampled_from

from nodes.cli.peer import peer
from nodes.peer_options import PeerOptions, parse, plain_words

WORDS = sampled_from(
    [
        "--name",
        "--name=ada",
        "--name=",
        "--zone",
        "--seed",
        "--seed=127.0.0.1:5",
        "--set",
        "--set=net.heartbeat=5",
        "--insecure",
        "--insecure=yes",
        "--json",
        "--events",
        "--trace=all",
        "--trace-dir=x",
        "--trace_dir=x",
        "--help",
        "--nmae",
        "--na",
        "-n",
        "-",
        "--",
        "ada",
        "127.0.0.1:5",
        "net.heartbeat=5",
    ]
)


def typed(words: list[str], monkeypatch: pytest.MonkeyPatch) -> PeerOptions | int:
    """What typer makes of it: the options it hands over, or its exit code."""
    handed: list[PeerOptions] = []

    def command(options: PeerOptions) -> list[str]:
        handed.append(options)
        return []

    monkeypatch.setattr("nodes.cli.peer.peer_command", command)
    monkeypatch.setattr("nodes.cli.peer.os.execve", lambda *_: None)
    app = typer.Typer(add_completion=False)
    app.command()(peer)
    with pytest.raises(SystemExit) as done:
        app(args=words, prog_name="overlay peer")
    return handed[0] if handed else int(str(done.value.code))


@given(lists(WORDS, max_size=6))
def test_whatever_the_lean_parser_takes_typer_reads_alike(words: list[str]) -> None:
    lean = parse(words)
    if lean is not None:
        with pytest.MonkeyPatch.context() as patch:
            assert typed(words, patch) == lean


def test_every_kind_of_option(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--name", "ada", "--seed=h:1", "--seed", "h:2", "--insecure"]
    words += ["--set", "echo.every=2", "--profile", "wan"]
    expected = PeerOptions(
        name="ada", seed=("h:1", "h:2"), set=("echo.every=2",), insecure=True, profile="wan"
    )
    assert parse(words) == expected
    assert typed(words, monkeypatch) == expected


def test_options_survive_being_written_as_words() -> None:
    odd = PeerOptions(name="--x", seed=("h:1", "a=b"), insecure=True, state="a b", json=True)
    assert parse(plain_words(odd)) == odd
    assert plain_words(PeerOptions()) == []


@pytest.mark.parametrize(
    "words",
    [["--help"], ["--nmae", "x"], ["ada"], ["--name"], ["--insecure=yes"], ["--name", "--x"]],
)
def test_what_is_not_plain_is_left_to_typer(words: list[str]) -> None:
    assert parse(words) is None


def test_both_know_the_same_options() -> None:
    told: dict[str, Any] = peer.__annotations__
    assert {*told} - {"return"} == {*PeerOptions.__struct_fields__}
