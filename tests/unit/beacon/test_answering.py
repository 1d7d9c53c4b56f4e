"""Who answers a query: about as many as are wanted, however many hear it."""

from __future__ import annotations

from overlay.protocol import PeerMet, UdpAddress
from protocols.beacon import Answer, BeaconSettings, PeerFound, Query
from tests.recording import Cast
from tests.unit.beacon.node import HERE, ZONE, BeaconNode, host, presence


def answers(members: int, attempt: int, zone: str = ZONE, zones: int = 1) -> int:
    """How many of the members of a zone answer one query."""
    found = 0
    names = [f"m{index}" for index in range(members - 1)]
    for seed in range(members):
        node = BeaconNode(BeaconSettings(), *names, seed=seed, zones=zones)
        node.start()
        node.hear(Query(presence(zone=zone), 5, attempt), 1.0)
        found += len(node.casts())
    return found


def test_an_answer_goes_to_the_sender_at_once() -> None:
    node = BeaconNode()
    node.start()
    node.hear(Query(presence(), 5, 0), 1.0)
    assert node.drain() == [
        Cast(UdpAddress(host("bob"), 7000), Answer(presence("ada", endpoints=HERE), 5))
    ]
    assert node.beacon.counts.answered == 1


def test_a_member_leaves_it_to_the_newcomer_to_join() -> None:
    node = BeaconNode(BeaconSettings(), "cid")
    node.start()
    node.hear(Query(presence(), 5, 0), 1.0)
    assert node.emitted(PeerFound) == []


def test_a_newcomer_of_another_zone_is_told_to_the_federation() -> None:
    node = BeaconNode(BeaconSettings(), "cid")
    node.start()
    node.hear(Query(presence(zone="west"), 5, 0), 1.0)
    assert node.emitted(PeerMet) == [PeerMet("bob", ("tcp://10.0.0.98:7000",), "west")]


def test_a_small_zone_answers_as_a_whole() -> None:
    assert answers(members=8, attempt=0) == 8


def test_a_large_zone_answers_by_a_few() -> None:
    assert 2 <= answers(members=400, attempt=0) <= 20
    assert 16 <= answers(members=400, attempt=1) <= 56


def test_other_zones_answer_by_fewer_and_many_zones_by_fewer_still() -> None:
    assert 0 <= answers(members=100, attempt=0, zone="west") <= 8
    assert answers(members=100, attempt=2, zone="west") > answers(
        members=100, attempt=2, zone="west", zones=64
    )


def test_when_all_start_at_once_each_counts_whom_it_heard() -> None:
    node = BeaconNode()
    node.start()
    for number in range(300):
        node.hear(
            Query(presence(f"n{number}"), number, 0), 1.0 + number / 300, f"n{number}", f"h{number}"
        )
    # 8 surely, then 8/9, 8/10, …: a logarithm instead of all.
    assert 20 <= node.beacon.counts.answered <= 60
    assert node.beacon.counts.answered + node.beacon.counts.spared == 300
    # Whom it did not answer it tries, as it is alone itself: a few at once.
    assert node.beacon.counts.found == 8


def test_answers_are_limited_whoever_asks() -> None:
    node = BeaconNode(BeaconSettings(answer_rate=5.0))
    node.start()
    for number in range(20):
        node.hear(Query(presence(zone="west"), number, 3), 1.0, f"n{number}", f"h{number}")
    assert node.beacon.counts.answered == 5
    assert node.beacon.counts.limited == 15
