"""Last known peers: kept of the same overlay, authority and zone, tried when nobody answers."""

from __future__ import annotations

import pytest

from overlay.protocol import ContactLearned
from protocols.beacon import BeaconSettings, PeerFound
from protocols.beacon.last_known import STORED, LastKnown, pack, unpack
from tests.recording import Store
from tests.unit.beacon.node import AUTHORITY, ZONE, BeaconNode

REALM = f"lab#{AUTHORITY.hex()}"
KNOWN = [LastKnown("bob", ("tcp://10.0.0.98:7000",)), LastKnown("cid", ("tcp://10.0.0.99:7000",))]


def test_members_are_written_down_the_latest_first() -> None:
    node = BeaconNode()
    node.start()
    for number, name in enumerate(("bob", "cid")):
        node.join(name, 0.1 * number)
    node.drain()
    assert node.ring("remember") == pytest.approx(1.0)
    (stored,) = node.drain()
    packed = pack(
        REALM, ZONE, [LastKnown("cid", ("tcp://cid:1",)), LastKnown("bob", ("tcp://bob:1",))]
    )
    assert stored == Store(STORED, packed, STORED)
    node.join("dan", 5.0)
    assert node.effects.timers["remember"] == 35.0


def test_they_are_tried_once_nobody_answered() -> None:
    node = BeaconNode()
    node.start(0.0, {STORED: pack(REALM, ZONE, KNOWN)})
    found: list[PeerFound] = []
    while not found:
        now = node.ring("query")
        found = node.emitted(PeerFound)
    assert now >= 0.5
    assert [(one.peer, one.how) for one in found] == [("bob", "last known"), ("cid", "last known")]


def test_they_are_not_tried_when_somebody_is_found() -> None:
    node = BeaconNode()
    node.start(0.0, {STORED: pack(REALM, ZONE, KNOWN)})
    node.join("eva", 0.01)
    assert node.emitted(ContactLearned) == []


@pytest.mark.parametrize("realm", [f"office#{AUTHORITY.hex()}", "lab#00", "lab#"])
def test_those_of_another_overlay_authority_or_zone_are_not(realm: str) -> None:
    assert unpack(pack(realm, ZONE, KNOWN), REALM, ZONE, 16) == []
    assert unpack(pack(REALM, "west", KNOWN), REALM, ZONE, 16) == []


def test_their_number_is_bounded() -> None:
    node = BeaconNode(BeaconSettings(remembered=2))
    node.start()
    for number in range(5):
        node.join(f"n{number}", 0.1)
    node.drain()
    node.ring("remember")
    (stored,) = node.drain()
    assert isinstance(stored, Store)
    assert [one.name for one in unpack(stored.value or b"", REALM, ZONE, 16)] == ["n4", "n3"]


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\xff\xfe",
        REALM.encode(),
        f"{REALM} {ZONE}\n\n \nbob\nb/b tcp://x:1\ncid {'x' * 300}".encode(),
        bytes(70_000),
    ],
)
def test_a_damaged_file_is_no_peers(damaged: bytes) -> None:
    assert unpack(damaged, REALM, ZONE, 16) == []


def test_none_are_kept_when_none_are_wanted() -> None:
    node = BeaconNode(BeaconSettings(remembered=0))
    node.start(0.0, {STORED: pack(REALM, ZONE, KNOWN)})
    node.join("bob", 0.1)
    node.ring("remember")
    assert node.beacon._last_known == {}
