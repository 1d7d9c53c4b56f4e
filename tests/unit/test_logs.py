"""A log line tells its event, its protocol and the node that it is of, in one line of JSON."""

from __future__ import annotations

import contextvars
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from overlay.errors import ConfigError, RemoteProtocolError
from overlay.logs import about, configure, speak_for
from overlay.net.refusals import Refusals

log = logging.getLogger("overlay.testing")


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("overlay")
    before = (root.handlers[:], root.level, ours.level)
    yield
    root.handlers[:], level, own = before
    root.setLevel(level)
    ours.setLevel(own)


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_has_all_fields(capsys: pytest.CaptureFixture[str]) -> None:
    configure("json", "info")
    extra = about("ntp-silent", "time", server="192.0.2.1")
    log.info("server %s:\n%s", "192.0.2.1", "silent", extra=extra)
    (line,) = _lines(capsys)
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "node": "",
        "zone": "",
        "protocol": "time",
        "event": "ntp-silent",
        "message": "server 192.0.2.1:\nsilent",
        "facts": {"server": "192.0.2.1"},
    }


def test_each_node_of_a_process_has_its_own_lines(capsys: pytest.CaptureFixture[str]) -> None:
    configure("json")

    def speak(node: str) -> None:
        speak_for(node, "lab")
        log.warning("hello", extra=about("hello", "node"))

    for node in ("ada", "bob"):
        contextvars.copy_context().run(speak, node)
    assert [(line["node"], line["zone"]) for line in _lines(capsys)] == [
        ("ada", "lab"),
        ("bob", "lab"),
    ]


def test_lines_of_libraries_and_errors_are_lines_too(capsys: pytest.CaptureFixture[str]) -> None:
    configure("json", "debug")
    logging.getLogger("zeroconf").info("much to say")
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logging.getLogger("zeroconf").exception("%s", object())
    (line,) = _lines(capsys)
    assert (line["protocol"], line["event"]) == ("zeroconf", "log")
    assert "two\nlines" in line["traceback"]


def test_text_is_as_people_know_it(capsys: pytest.CaptureFixture[str]) -> None:
    configure()
    log.info("not told", extra=about("x", "y"))
    log.warning("told", extra=about("x", "y"))
    assert capsys.readouterr().err == "overlay: told\n"


def test_a_refusal_tells_whose_message_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    configure("json")
    error = RemoteProtocolError("bad-proof", "of nothing")
    error.protocol = "dht"
    Refusals().add("mallory", error, now=0.0)
    (line,) = _lines(capsys)
    assert (line["protocol"], line["event"]) == ("dht", "refused")
    assert line["facts"] == {"peer": "mallory", "reason": "bad-proof", "others": 0}


@pytest.mark.parametrize("words", [("yaml", "info"), ("json", "loud")])
def test_what_there_is_not_is_refused(words: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match="choose one of"):
        configure(*words)
