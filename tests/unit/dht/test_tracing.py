"""The rows that the table leaves in the traces, and none while nobody records."""

from __future__ import annotations

import pytest

from overlay.tracing import Level
from protocols.dht import Kind, Operation, Outcome, Status
from protocols.dht.messages import Accept, Accepted
from protocols.dht.tracing import ended_as
from tests.recording import Send, Traced
from tests.unit.dht.node import ORDER, TABLE, Node

FIRST, _, LAST = ORDER


def rows_of_a_put(level: Level) -> list[tuple[str, str]]:
    node = Node(FIRST)
    node.lead()
    node.effects.tracing = level
    node.ask(Operation(Kind.PUT, b"k", b"v"))
    node.end_tick()
    message = next(one.msg for one in node.sent if isinstance(one, Send))
    assert isinstance(message, Accept)
    node.take(LAST, Accepted(TABLE, message.batch))
    node.end_tick()
    rows = [one.record for one in node.sent if isinstance(one, Traced)]
    return [(row.kind.name, row.detail) for row in rows]


def test_a_put_leaves_its_rows() -> None:
    assert rows_of_a_put(Level.MESSAGES) == [
        ("dht-began", "put"),
        ("dht-stored", "owner"),
        ("dht-done", "put stored"),
    ]
    assert rows_of_a_put(Level.DELIVERY) == [("dht-done", "put stored")]
    assert rows_of_a_put(Level.OFF) == []


def test_owner_and_replica_name_a_version_alike() -> None:
    rows = []
    owner, replica = Node(FIRST), Node(LAST)
    for node in (owner, replica):
        node.effects.tracing = Level.MESSAGES
    owner.lead()
    owner.ask(Operation(Kind.PUT, b"k", b"v"))
    owner.end_tick()
    message = next(one.msg for one in owner.sent if isinstance(one, Send))
    assert isinstance(message, Accept)
    replica.take(FIRST, message)
    replica.end_tick()
    for node in (owner, replica):
        rows += [one.record for one in node.sent if isinstance(one, Traced)]
    versions = [(row.detail, row.key, row.stream, row.value) for row in rows if row.value]
    (of_owner, of_replica) = versions
    assert (of_owner[0], of_replica[0]) == ("owner", "replica")
    assert of_owner[1:] == of_replica[1:]
    assert of_owner[2] == message.entries[0].ballot


def test_what_a_node_holds_is_told_with_its_beat() -> None:
    node = Node(LAST)
    node.effects.tracing = Level.DELIVERY
    node.dht._core.tracer.load(node.dht._core.shards)
    rows = [one.record for one in node.effects.drain() if isinstance(one, Traced)]
    assert [(row.detail, row.count) for row in rows] == [
        ("owner", 0),
        ("replica", 0),
        ("lateral", 0),
    ]


@pytest.mark.parametrize(
    ("kind", "outcome", "words"),
    [
        (Kind.GET, Outcome(Status.DONE, True, b"v"), "get found"),
        (Kind.GET, Outcome(Status.DONE), "get absent"),
        (Kind.PUT, Outcome(Status.UNKNOWN), "put unknown"),
        (Kind.REPLACE_VALUE, Outcome(Status.DONE), "replace_value unchanged"),
        (Kind.REMOVE, Outcome(Status.REFUSED), "remove refused"),
    ],
)
def test_outcomes_in_words(kind: Kind, outcome: Outcome, words: str) -> None:
    assert ended_as(kind, outcome) == words
