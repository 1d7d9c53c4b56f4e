"""The bulk lane: large messages in pieces take turns with each other and with ordinary frames."""

from __future__ import annotations

from typing import Any

import pytest

from overlay.limits import Limits
from overlay.wire.frames import Piece, PieceStart
from overlay.wire.pieces import UNFINISHED
from tests.unit.wire.messages import (
    Note,
    Pile,
    make_lane,
    make_reader,
    make_sizes,
    messages_of,
    put_together,
    take_turns,
)

SMALL = Limits(frame_bytes=8192, string_bytes=1000, payload_inline=2000, message_bytes=200_000)
STEP = SMALL.frame_bytes


def turns(frames: list[list[bytes]]) -> list[str]:
    """Who had each turn: s3 a start, p3 a piece of message 3, and the ids of ordinary ones."""
    found = []
    for parts in frames:
        for _, msg in messages_of(make_reader(SMALL).read(parts)):
            if isinstance(msg, PieceStart):
                found.append(f"s{msg.number}")
            elif isinstance(msg, Piece):
                found.append(f"p{msg.number}")
            else:
                found.append(str(msg.id))
    return found


def test_ordinary_frames_keep_their_order() -> None:
    lane = make_lane(SMALL)
    sent = [("zone", Pile(n, bytes(n * 300))) for n in range(25)]
    for scope, msg in sent:
        lane.put(scope, msg)
    assert put_together(take_turns(lane), SMALL) == sent
    assert not lane
    assert lane.queued == 0


def test_a_large_message_takes_turns_with_frames_that_came_after_it() -> None:
    lane = make_lane(SMALL)
    lane.put("", Pile(100, bytes(3 * STEP)))
    for n in (1, 2, 3):
        lane.put("", Pile(n, bytes(5000)))
    assert turns(take_turns(lane)) == ["1", "s0", "2", "p0", "3", "p0", "p0"]


def test_several_large_messages_are_under_way_at_once() -> None:
    lane = make_lane(SMALL)
    sent = [("", Pile(n, bytes([n]) * size)) for n, size in enumerate((30_000, 9000, 20_000))]
    for scope, msg in sent:
        lane.put(scope, msg)
    frames = take_turns(lane)
    assert " ".join(turns(frames)) == "s0 s1 s2 p0 p1 p2 p0 p1 p2 p0 p2 p0"
    assert sorted(put_together(frames, SMALL), key=lambda one: one[1].id) == sent


def test_what_comes_while_a_large_message_leaves_overtakes_it() -> None:
    lane = make_lane(SMALL)
    lane.put("", Note(1, bytes(150_000)))
    frames = []
    for n in range(2, 6):
        for _ in range(2):
            frame = lane.frame()
            assert frame is not None
            frames.append([bytes(part) for part in frame[0]])
            lane.sent()
        lane.put("", Pile(n, b"soon"))
        lane.pack()
    arrived = put_together(frames + take_turns(lane), SMALL)
    assert [msg.id for _, msg in arrived] == [2, 3, 4, 5, 1]


@pytest.mark.parametrize("size", [8193, 60_000, 200_000])
def test_no_more_are_under_way_than_a_receiver_takes(size: int) -> None:
    lane = make_lane(SMALL)
    sent = [("", Pile(n, bytes(size))) for n in range(2 * UNFINISHED)]
    for scope, msg in sent:
        assert not lane.put(scope, msg)
    arrived = put_together(take_turns(lane), SMALL)  # a receiver with the same limits
    assert sorted(arrived, key=lambda one: one[1].id) == sent
    assert not lane
    assert lane.queued == 0


def test_the_frame_whose_turn_it_is_stays_until_it_left() -> None:
    lane = make_lane(SMALL)
    lane.put("", Pile(1, bytes(20_000)))
    lane.put("", Pile(2, b""))
    lane.pack()
    for _ in range(5):
        frame = lane.frame()
        lane.put("", Pile(3, bytes(20_000)))
        lane.pack()
        assert lane.frame() is frame
        lane.sent()


def test_pieces_are_not_copied() -> None:
    payload = bytes(20_000)
    lane = make_lane(SMALL)
    lane.put("", Pile(1, payload))
    lane.frame()
    lane.sent()
    frame = lane.frame()
    assert frame is not None
    part = frame[0][1]
    assert isinstance(part, memoryview)
    assert part.obj is payload


def test_one_encoding_serves_several_lanes_in_pieces_too() -> None:
    msg = Pile(1, bytes(20_000))
    encoded = make_sizes(SMALL).encoded(msg)
    for _ in range(2):
        lane = make_lane(SMALL)
        lane.put_encoded("zone", encoded)
        assert put_together(take_turns(lane), SMALL) == [("zone", msg)]


def test_a_full_lane_drops_and_counts_and_has_room_when_all_of_a_message_left() -> None:
    lane = make_lane(SMALL, capacity=50_000)
    lane.put("", Pile(1, bytes(40_000)))
    assert lane.put("", Pile(2, bytes(20_000)))
    assert lane.put("", Pile(3, bytes(9_990)))
    assert lane.dropped == 2
    assert 40_000 <= lane.queued <= 50_000
    lane.put("", Pile(4, bytes(5_000)))
    assert lane.dropped == 2
    arrived = put_together(take_turns(lane), SMALL)
    assert [msg.id for _, msg in arrived] == [4, 1]
    assert lane.room == 50_000
    lane.put("", Pile(5, bytes(40_000)))
    assert lane.dropped == 2


def test_after_a_broken_link_all_of_an_unfinished_message_goes_again() -> None:
    lane = make_lane(SMALL)
    sent: list[tuple[str, Any]] = [("", Pile(n, bytes([n]) * 30_000)) for n in (1, 2)]
    for scope, msg in sent:
        lane.put(scope, msg)
    for _ in range(5):
        lane.frame()
        lane.sent()
    lane.frame()  # chosen, and never sent
    lane.begin_again()
    assert put_together(take_turns(lane), SMALL) == sent
    assert lane.queued == 0


def test_discarding_counts_frames_and_large_messages_and_frees_their_room() -> None:
    lane = make_lane(SMALL)
    room = lane.room
    for n in range(3 + UNFINISHED):
        lane.put("", Pile(n, bytes(10_000)))
    lane.put("", Pile(99, b""))
    for _ in range(3):
        lane.frame()
        lane.sent()  # the one ordinary frame, were it packed, would be among them
    assert lane.discard() == 3 + UNFINISHED + 1
    assert not lane
    assert lane.room == room
    assert lane.frame() is None
    lane.put("", Pile(1, bytes(10_000)))
    assert [msg.id for _, msg in put_together(take_turns(lane), SMALL)] == [1]
