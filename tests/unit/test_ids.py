"""Names, hashes and the worked examples on small rings."""

from __future__ import annotations

from hashlib import sha256

import msgspec
import pytest

from overlay.errors import LocalProtocolError
from overlay.ids import (
    KeySpace,
    Ring,
    WireName,
    WireVid,
    check_name,
    key_of,
    vid_from_wire,
    vid_of,
    vid_to_wire,
)


def ten_bit_ring(*places: int) -> Ring:
    """A ring whose names are their own places, as in the paper's figures."""
    return Ring([str(place) for place in places], space=KeySpace(10), place=int)


@pytest.mark.parametrize("name", ["a", "peer-1", "zone:B.7", "köln", "節点", "x" * 64, "ö" * 32])
def test_a_good_name_comes_back(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"),
        ("x" * 65, "65 bytes of UTF-8: at most 64"),
        ("ö" * 33, "66 bytes of UTF-8: at most 64"),
        ("a b", r"whitespace (' ') at position 1"),
        ("a\n", r"whitespace ('\n') at position 1"),
        ("\u00a0a", r"whitespace ('\xa0') at position 0"),
        ("a\x00", r"an unprintable character ('\x00') at position 1"),
        ("a\u200b", r"an unprintable character ('\u200b') at position 1"),
        ("a\u202eb", r"an unprintable character ('\u202e') at position 1"),
        ("\ud800", r"an unprintable character ('\ud800') at position 0"),
        ("a/b", "has a '/'"),
        ("..", "means a folder"),
    ],
)
def test_a_bad_name_is_refused_with_its_reason_in_one_printable_line(
    name: str, reason: str
) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        check_name(name)
    line = str(caught.value)
    assert reason in line
    assert line.isprintable()
    assert len(line) < 300


def test_a_vid_is_the_first_half_of_sha256() -> None:
    assert vid_of("peer-1") == int(sha256(b"peer-1").hexdigest()[:32], 16)
    assert key_of("peer-1") == key_of(b"peer-1") == vid_of("peer-1")
    assert vid_of.cache_info().maxsize is not None


def test_a_key_that_is_no_unicode_is_the_callers_fault() -> None:
    with pytest.raises(LocalProtocolError, match="not valid Unicode"):
        key_of("\ud800")


def test_wire_types_bound_what_a_peer_may_send() -> None:
    vid = vid_of("peer-1")
    packed = msgspec.msgpack.encode(vid_to_wire(vid))
    assert vid_from_wire(msgspec.msgpack.decode(packed, type=WireVid)) == vid
    for size in (0, 15, 17):
        with pytest.raises(msgspec.ValidationError):
            msgspec.msgpack.decode(msgspec.msgpack.encode(bytes(size)), type=WireVid)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode("a" * 64), type=WireName) == "a" * 64
    for name in ("", "a" * 65):
        with pytest.raises(msgspec.ValidationError):
            msgspec.msgpack.decode(msgspec.msgpack.encode(name), type=WireName)


def test_the_papers_example_key_200_is_stored_at_node_250() -> None:
    ring = ten_bit_ring(100, 250, 700, 1000)
    assert ring.responsible_for(200) == "250"
    assert ring.responsible_for(250) == "250"
    assert ring.responsible_for(251) == "700"
    assert ring.responsible_for(1001) == "100"  # past the last node it begins anew
    assert ring.responsible_for(0) == "100"
    assert ring.vid("250") == 250


def test_neighbours_are_listed_nearest_first_and_without_the_node_itself() -> None:
    ring = ten_bit_ring(100, 250, 700, 1000)
    assert ring.successors("250", 2) == ["700", "1000"]
    assert ring.successors("1000", 9) == ["100", "250", "700"]
    assert ring.predecessors("250", 2) == ["100", "1000"]
    assert ring.predecessors("100", 9) == ["1000", "700", "250"]
    assert ring.successors("300", 1) == ["700"]  # a node that is about to join
    assert ring.predecessors("300", 1) == ["250"]
    assert ring.successors("250", 0) == []


def test_fingers_are_the_distinct_nodes_at_powers_of_two() -> None:
    ring = ten_bit_ring(0, 3, 10, 200, 513)
    assert ring.fingers("0") == ["3", "10", "200", "513"]
    assert ring.fingers("513") == ["0", "3"]  # 513 + 512 wraps to 1
    assert ten_bit_ring(5).fingers("5") == []
    assert ten_bit_ring().fingers("5") == []


def test_an_empty_ring_says_that_nobody_is_responsible() -> None:
    ring = Ring()
    with pytest.raises(LocalProtocolError, match="empty ring"):
        ring.responsible_for(0)
    assert ring.successors("a", 3) == ring.predecessors("a", 3) == []


def test_adding_and_removing_twice_changes_nothing() -> None:
    ring = Ring()
    assert ring.add("a")
    assert not ring.add("a")
    assert "a" in ring
    assert 7 not in ring
    assert list(ring) == ["a"]
    assert ring.remove("a")
    assert not ring.remove("a")
    assert len(ring) == 0


def test_two_names_cannot_share_a_place_nor_lie_outside() -> None:
    ring = ten_bit_ring(7)
    with pytest.raises(LocalProtocolError, match="same place"):
        ring.add("07")
    with pytest.raises(LocalProtocolError, match="same place"):
        Ring(["7", "07"], space=KeySpace(10), place=int)
    with pytest.raises(LocalProtocolError, match="outside of 10 bits"):
        ring.add("1024")
    with pytest.raises(LocalProtocolError, match="outside of 10 bits"):
        ten_bit_ring(1024)
    assert list(ring) == ["7"]


def test_a_space_needs_a_bit() -> None:
    with pytest.raises(LocalProtocolError, match="0 bits"):
        KeySpace(0)
