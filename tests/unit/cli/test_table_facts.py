"""What `overlay dht stats` says of what a deployment survives, and how keys are shown."""

from __future__ import annotations

import pytest

from nodes.dht_errors import OperationRefused, OutcomeUnknown, failure, shown
from nodes.dht_facts import survival
from protocols.dht.groups import Group, Member
from protocols.dht.interface import Kind, Operation, Outcome, Status


def group(*zones: str) -> Group:
    return Group(1, tuple(Member(f"n{at}", 1, zone) for at, zone in enumerate(zones)))


@pytest.mark.parametrize(
    ("groups", "nodes", "data", "serving", "says"),
    [
        ([group("a")], 0, False, False, "no replica may fail: a key has 1"),
        ([group("a", "a", "a")], 1, False, False, "is lost with it"),
        ([group("a", "a", "a", "b", "b")], 2, True, False, "refused until it is back"),
        ([group("a", "a", "b", "b", "c")], 2, True, True, "so may any one zone"),
        ([group("a", "a", "a"), group("a", "a", "b", "b", "c")], 1, False, False, "on the way"),
    ],
)
def test_a_deployment_is_judged_by_its_groups(
    groups: list[Group], nodes: int, data: bool, serving: bool, says: str
) -> None:
    found = survival(groups, "memory")
    assert (found.nodes, found.zone_keeps_data, found.zone_keeps_serving) == (nodes, data, serving)
    assert says in found.says
    assert "a power cut of all loses everything" in found.says


def test_a_higher_quorum_survives_fewer_failures() -> None:
    assert survival([group("a", "a", "a")], "sqlite", quorum=3).nodes == 0
    assert survival([group("a", "a", "a")], "sqlite").power_cut


def test_who_keeps_nothing_cannot_tell() -> None:
    assert survival([], "memory").says == "this node keeps no keys: ask one that does"


def test_errors_say_what_was_done_and_what_to_do() -> None:
    put = Operation(Kind.PUT, b"colour", b"\x01")
    refused = failure(put, Outcome(Status.REFUSED, reason="no majority"))
    assert isinstance(refused, OperationRefused)
    assert str(refused) == "put('colour'): no majority; nothing was done"
    unknown = failure(put, Outcome(Status.UNKNOWN, reason="the leader changed"))
    assert isinstance(unknown, OutcomeUnknown)
    assert "read the key before you try again" in str(unknown)
    get = Operation(Kind.GET, b"colour")
    assert isinstance(failure(get, Outcome(Status.UNKNOWN, reason="x")), OperationRefused)


@pytest.mark.parametrize(
    ("key", "text"),
    [(b"a b", "'a b'"), (b"\xff\x00", "0xff00"), (b"", "0x"), (b"x" * 65, f"'{'x' * 61}…'")],
)
def test_keys_are_text_where_they_are_some(key: bytes, text: str) -> None:
    assert shown(key) == text
