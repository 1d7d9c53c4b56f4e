"""Foreign, false and far too many beacons: counted, bounded, and never in the way of others."""

from __future__ import annotations

from typing import Any

import pytest

from overlay.protocol import ContactLearned, PeerMet
from protocols.beacon import Answer, BeaconSettings, PeerFound, Query
from tests.unit.beacon.node import BeaconNode, announcement, presence


@pytest.mark.parametrize(
    "other", [{"overlay": "office"}, {"authority": b"another"}, {"authority": b""}]
)
def test_another_overlay_is_counted_and_nothing_else(other: dict[str, Any]) -> None:
    node = BeaconNode()
    node.start()
    (opened,) = node.beacon._open
    for number, message in enumerate(
        (
            Query(presence(**other), 1, 3),
            Answer(presence(**other), opened),
            announcement(presence(**other)),
        )
    ):
        node.hear(message, 0.1)
        assert node.drain() == []
        assert node.beacon.counts.foreign == number + 1
    assert node.beacon.counts.heard == 0


def test_a_copy_by_the_other_version_of_ip_is_heard_once() -> None:
    node = BeaconNode()
    node.start()
    for at in ("10.0.0.98", "fe80::62%2"):
        node.hear(Query(presence(), 1, 0), 0.1, "bob", at)
    assert (node.beacon.counts.heard, node.beacon.counts.answered) == (1, 1)


def test_its_own_name_is_nobody() -> None:
    node = BeaconNode()
    node.start()
    node.hear(announcement(presence("ada")), 0.1, "ada")
    assert node.drain() == []


def test_a_flood_of_one_name_is_limited() -> None:
    node = BeaconNode()
    node.start()
    for _ in range(100):
        node.hear(announcement(presence()), 0.5)
    assert node.beacon.counts.limited == 90
    node.hear(announcement(presence()), 1.5)  # a second later it is heard again
    assert node.beacon.counts.limited == 90


def test_made_up_names_of_one_host_leave_room_for_others() -> None:
    node = BeaconNode()
    node.start()
    for number in range(1000):
        node.hear(
            announcement(presence(endpoints=("tcp://192.0.2.1:9",))), 0.5, f"x{number}", "10.6.6.6"
        )
    assert len(node.emitted(PeerFound)) == 4  # half of `parallel`
    assert node.beacon.counts.limited == 800  # host_rate
    assert node.beacon.counts.crowded_out == 200 - 4 - 32  # half of `waiting`
    node.hear(announcement(presence()), 0.6)
    assert [found.peer for found in node.emitted(PeerFound)] == ["bob"]


def test_those_who_wait_get_their_turn_when_others_did_not_become_members() -> None:
    node = BeaconNode(BeaconSettings(parallel=4, patience=2.0))
    node.start()
    for name in ("bob", "cid", "dan", "eva", "fay", "gus"):
        node.hear(announcement(presence(name)), 0.05, name)
    assert [found.peer for found in node.emitted(PeerFound)] == ["bob", "cid", "dan", "eva"]
    found: list[str] = []
    while not found:
        now = node.ring("query")
        found = [one.peer for one in node.emitted(PeerFound)]
    assert found == ["fay", "gus"]
    assert now >= 2.05


def test_no_address_that_can_be_used() -> None:
    node = BeaconNode()
    node.start()
    for endpoints in ((), ("ipc:///run/x",), ("tcp://127.0.0.1:7",), ("tcp://[::1]:7",)):
        node.hear(announcement(presence(endpoints=endpoints)), 0.5)
    assert node.drain() == []
    assert node.beacon.counts.unreachable == 4


def test_the_address_that_it_speaks_from_comes_first() -> None:
    node = BeaconNode()
    node.start()
    told = ("tcp://10.1.1.1:7", "tcp://10.0.0.98:7", "tcp://10.2.2.2:7")
    node.hear(announcement(presence(endpoints=told)), 0.5)
    first = ("tcp://10.0.0.98:7", "tcp://10.1.1.1:7", "tcp://10.2.2.2:7")
    assert node.emitted(ContactLearned) == [ContactLearned("bob", first)]


def test_loopback_is_an_address_for_the_same_machine() -> None:
    node = BeaconNode(here=("tcp://127.0.0.1:7001",))
    node.start()
    node.hear(announcement(presence(endpoints=("tcp://127.0.0.1:7",))), 0.5, "bob", "127.0.0.1")
    assert [found.peer for found in node.emitted(PeerFound)] == ["bob"]


def test_a_member_is_not_given_another_address() -> None:
    node = BeaconNode(BeaconSettings(), "bob")
    node.start()
    node.drain()
    node.hear(announcement(presence(endpoints=("tcp://192.0.2.1:9",))), 0.5)
    node.beacon.suggest("bob", presence(endpoints=("tcp://192.0.2.1:9",)), "mdns", 0.6)
    assert node.emitted(ContactLearned) == []


def test_what_others_suggest_is_a_candidate_of_the_same_overlay_only() -> None:
    node = BeaconNode()
    node.beacon.suggest("bob", presence(), "mdns", 0.0)
    node.start()
    node.beacon.suggest("bob", presence(overlay="office"), "mdns", 0.1)
    assert node.drain() == []
    assert node.beacon.counts.foreign == 1
    node.beacon.suggest("bob", presence(), "mdns", 0.1)
    assert [(one.peer, one.how) for one in node.emitted(PeerFound)] == [("bob", "mdns")]


def test_a_stranger_is_told_once_a_minute() -> None:
    node = BeaconNode(BeaconSettings(), "cid")
    node.start()
    for now in (1.0, 2.0, 60.0, 61.5):
        node.hear(announcement(presence(zone="west")), now)
    assert len(node.emitted(PeerMet)) == 2


def test_what_is_remembered_of_strangers_is_bounded() -> None:
    node = BeaconNode(BeaconSettings(), "cid")
    node.start()
    for number in range(3000):
        name = f"x{number}"
        zone = "hall" if number % 2 else "west"
        node.hear(announcement(presence(zone=zone)), number / 100, name, f"10.{number}")
    beacon = node.beacon
    assert (len(beacon._told), len(beacon._names), len(beacon._hosts)) == (256, 256, 256)
    assert len(beacon._heard) <= 1024
