"""Announcements: rare in a stable zone, frequent after a change."""

from __future__ import annotations

import itertools

from protocols.beacon import Announcement, BeaconSettings, PeerFound
from tests.recording import Cast
from tests.unit.beacon.node import GROUP, HERE, BeaconNode, announcement, presence

QUIET = BeaconSettings(announce_first=1.0, announce_longest=64.0, redundancy=1)


def member(settings: BeaconSettings = QUIET) -> BeaconNode:
    node = BeaconNode(settings, "bob", "cid")
    node.start()
    return node


def test_an_announcement_in_the_second_half_of_the_interval() -> None:
    node = member()
    assert node.effects.timers["interval"] == 1.0
    assert 0.5 <= node.ring("speak") <= 1.0
    (cast,) = node.casts()
    assert isinstance(cast.msg, Announcement)
    who = presence("ada", endpoints=HERE, size=3)
    assert cast == Cast(GROUP, Announcement(who, cast.msg.id))


def test_nothing_is_said_that_was_heard_of_another_member() -> None:
    node = member()
    node.hear(announcement(presence()), 0.1)
    node.ring("speak")
    assert node.drain() == []
    assert node.beacon.counts.held_back == 1
    node.ring("interval")  # what was heard counts in its interval only
    node.drain()
    node.ring("speak")
    assert len(node.casts()) == 1


def test_the_interval_doubles_up_to_its_bound() -> None:
    node = member()
    ends = [0.0]
    for _ in range(9):
        node.ring("speak")
        ends.append(node.ring("interval"))
    assert [b - a for a, b in itertools.pairwise(ends)] == [
        1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 64.0, 64.0,
    ]  # fmt: skip


def test_an_unknown_member_is_tried_and_makes_the_interval_short() -> None:
    node = member()
    for _ in range(5):
        node.ring("speak")
        now = node.ring("interval")
    node.drain()
    node.hear(announcement(presence("dan")), now + 1, "dan")
    assert node.effects.timers["interval"] == now + 2
    assert [found.peer for found in node.emitted(PeerFound)] == ["dan"]
    node.hear(announcement(presence("dan")), now + 1.5, "dan")  # in the shortest: nothing changes
    assert node.effects.timers["interval"] == now + 2


def test_a_failure_makes_it_short_and_a_farewell_does_not() -> None:
    node = member()
    for _ in range(5):
        node.ring("speak")
        now = node.ring("interval")
    due = node.effects.timers["interval"]
    node.fail("bob", now + 1, left=True)
    assert node.effects.timers["interval"] == due
    node.join("bob", now + 2)
    node.fail("bob", now + 3)
    assert node.effects.timers["interval"] == now + 3 + 8  # not while the failure itself is news


def test_a_stopped_node_is_silent() -> None:
    node = member()
    node.beacon.on_stop(0.5)
    node.drain()
    node.hear(announcement(presence("dan")), 0.6, "dan")
    assert node.drain() == []
    assert node.effects.timers == {}
