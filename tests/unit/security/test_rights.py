"""What certificates allow."""

from __future__ import annotations

import msgspec
import pytest

from overlay.errors import LocalProtocolError
from overlay.patterns import MAX_BYTES, MAX_LEVELS, check_pattern, check_topic, covers
from overlay.security.rights import ALL_RIGHTS, MAX_ENTRIES, Rights


@pytest.mark.parametrize(
    ("grant", "request_", "covered"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a", False),
        ("a/b", "a/b/c", False),
        ("a/*", "a/b", True),
        ("a/*", "a", False),
        ("a/*", "a/b/c", False),
        ("a/**", "a", True),
        ("a/**", "a/b/c", True),
        ("a/**", "b", False),
        ("**", "a/b", True),
        ("**/c", "a/b/c", True),
        ("**/c", "c", True),
        ("**/c", "a/b", False),
        ("a/**/c", "a/c", True),
        ("a/**/c", "a/b/b/c", True),
        # A subscription's own wildcards must be covered as well.
        ("a/*", "a/*", True),
        ("a/*", "a/**", False),
        ("a/**", "a/*", True),
        ("a/**", "**", False),
        ("a/b", "a/*", False),
        ("*/**", "**/*", True),
        ("**/*", "*/**", True),
        ("*/**", "**", True),  # no topic is empty
        ("*/*/**", "**", False),
        ("*/**", "**/a", True),
        ("*/*/**", "**/a", False),
        ("**/a/**", "x/**/a", True),
    ],
)
def test_covering(grant: str, request_: str, covered: bool) -> None:
    assert covers(grant, request_) is covered


@pytest.mark.parametrize(
    "pattern", ["", "/a", "a/", "a//b", "a*", "***", "a\nb", "a\0", "x" * (MAX_BYTES + 1)]
)
def test_malformed_patterns(pattern: str) -> None:
    with pytest.raises(LocalProtocolError):
        check_pattern(pattern)
    assert not ALL_RIGHTS.may_publish(pattern)
    assert not ALL_RIGHTS.may_subscribe(pattern)
    with pytest.raises(LocalProtocolError):
        Rights(publish=(pattern,))


def test_limits_at_and_past_their_edge() -> None:
    assert check_pattern("/".join(["a"] * MAX_LEVELS))
    with pytest.raises(LocalProtocolError, match="levels"):
        check_pattern("/".join(["a"] * (MAX_LEVELS + 1)))
    assert check_pattern("x" * MAX_BYTES)
    zones = tuple(f"z{number}" for number in range(MAX_ENTRIES + 1))
    assert Rights(zones=zones[:-1]).may_join("z0")
    with pytest.raises(LocalProtocolError, match="at most 64"):
        Rights(zones=zones)


@pytest.mark.parametrize("topic", ["*", "a/**", "**"])
def test_nobody_publishes_to_a_pattern(topic: str) -> None:
    with pytest.raises(LocalProtocolError, match="wildcard"):
        check_topic(topic)
    assert not ALL_RIGHTS.may_publish(topic)
    assert ALL_RIGHTS.may_subscribe(topic)


def test_zones_and_roles() -> None:
    rights = Rights(zones=("lab",), roles=("broker",))
    assert rights.may_join("lab")
    assert not rights.may_join("lab2")
    assert not rights.may_join("*")
    assert rights.may_be("broker")
    assert not rights.may_be("bdn")
    assert Rights(zones=("*",)).may_join("anything")


@pytest.mark.parametrize("word", ["", "a b", "a\nb", "x" * 65])
def test_malformed_zones_and_roles(word: str) -> None:
    with pytest.raises(LocalProtocolError):
        Rights(zones=(word,))
    with pytest.raises(LocalProtocolError):
        Rights(roles=(word,))


def test_a_newer_authority_may_add_fields() -> None:
    encoded = msgspec.msgpack.encode([*msgspec.to_builtins(ALL_RIGHTS), "a right of tomorrow"])
    assert msgspec.msgpack.decode(encoded, type=Rights) == ALL_RIGHTS
