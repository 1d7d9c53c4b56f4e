"""Batches: what goes in comes out, in order, and any MessagePack library can read it."""

from __future__ import annotations

import msgpack
import msgspec

from overlay.limits import Limits
from overlay.protocol import Message
from overlay.wire.frames import FRAMEWORK_SCOPE
from tests.unit.wire.messages import (
    SENT_AT,
    Labelled,
    Note,
    OlderWord,
    Pile,
    Tree,
    Word,
    frame_of,
    head,
    make_lane,
    make_reader,
    make_sizes,
    make_writer,
    messages_of,
    take_frames,
    take_turns,
)

LARGE = b"x" * 40_000


def test_a_batch_holds_several_scopes_in_the_order_of_sending() -> None:
    writer = make_writer()
    sent = [
        ("", Note(1, b"a")),
        ("zone", Word("b")),
        ("zone", Tree(("c",), {"d": 1})),
        ("", Note(2, b"")),
    ]
    for scope, msg in sent:
        writer.put(scope, msg)
    (parts,) = take_frames(writer)
    frame = make_reader().read(parts)
    assert messages_of(frame) == sent
    assert frame.sent_at == SENT_AT
    assert frame.refused == []


def test_a_large_payload_is_a_part_of_its_own_that_nobody_copied() -> None:
    writer = make_writer()
    writer.put("", Note(1, b"small"))
    writer.put("", Note(2, LARGE))
    writer.put("zone", Note(3, b"small"))
    writer.pack()
    parts, _ = writer.frames[0]
    assert len(parts) == 2
    assert parts[1] is LARGE
    frame = make_reader().read([bytes(part) for part in parts])
    assert messages_of(frame) == [
        ("", Note(1, b"small")),
        ("", Note(2, LARGE)),
        ("zone", Note(3, b"small")),
    ]


def test_a_large_payload_beside_other_fields_is_a_part_as_well() -> None:
    parts = frame_of(Labelled("topic", LARGE))
    assert len(parts) == 2
    assert messages_of(make_reader().read(parts)) == [("", Labelled("topic", LARGE))]


def test_the_msgpack_package_reads_the_same_bytes() -> None:
    writer = make_writer()
    writer.put("", Note(7, b"\x00\xff"))
    writer.put("zone", Word("grüße", True))
    writer.put("zone", Tree(("leaf",), {"n": -1}))
    writer.put("", Note(8, LARGE))
    ((first, payload),) = take_frames(writer)
    assert msgpack.unpackb(first) == [
        1,
        SENT_AT,
        [
            ["", [[10_000, 7, b"\x00\xff"]]],
            ["zone", [[10_001, "grüße", True], [10_002, ["leaf"], {"n": -1}]]],
            ["", [[10_000, 8, b""]]],
        ],
        [3],
    ]
    assert payload == LARGE


def test_we_read_what_the_msgpack_package_writes() -> None:
    first = msgpack.packb([1, SENT_AT, [["zone", [[10_000, 7, b"x"], [10_001, "y", False]]]], []])
    assert messages_of(make_reader().read([first])) == [
        ("zone", Note(7, b"x")),
        ("zone", Word("y")),
    ]


def test_an_older_node_skips_fields_that_were_added_since() -> None:
    older: tuple[type[Message], ...] = (OlderWord,)
    frame = make_reader(kinds=older).read(frame_of(Word("text", True)))
    assert messages_of(frame) == [("", OlderWord("text"))]
    assert frame.refused == []


def test_a_newer_node_fills_in_fields_that_an_older_one_does_not_send() -> None:
    assert messages_of(make_reader().read([head([[10_001, "text"]])])) == [("", Word("text"))]


def test_a_message_past_the_frame_limit_leaves_in_pieces() -> None:
    limits = Limits(frame_bytes=65_536, string_bytes=65_536, message_bytes=1 << 20)
    lane = make_lane(limits)
    lane.put("zone", Note(1, bytes(200_000)))
    frames = take_turns(lane)
    assert len(frames) == 5
    assert all(len(part) <= limits.frame_bytes for parts in frames for part in parts)
    kinds = [
        (scope, type(msg).__name__)
        for parts in frames
        for scope, msg in messages_of(make_reader(limits).read(parts))
    ]
    assert kinds == [
        (FRAMEWORK_SCOPE, "PieceStart"),
        *[(FRAMEWORK_SCOPE, "Piece")] * 4,
    ]


def test_a_message_with_lists_is_measured_by_encoding_it() -> None:
    tree = Tree(tuple("leaf" for _ in range(500)))
    writer = make_writer()
    before = writer.room
    writer.put("", tree)
    assert before - writer.room == len(msgspec.msgpack.encode(tree))


def test_a_message_encoded_once_for_several_peers_reads_the_same() -> None:
    msg = Tree(("a", "b"))
    encoded = make_sizes().encoded(msg)
    writer = make_writer()
    writer.put_encoded("zone", encoded)
    (parts,) = take_frames(writer)
    assert messages_of(make_reader().read(parts)) == [("zone", msg)]


def test_a_payload_is_encoded_once_for_several_peers_or_not_at_all() -> None:
    for msg, parts in (
        (Note(1, b"short"), 1),
        (Labelled("label", b"short"), 1),
        (Note(2, LARGE), 2),
        (Labelled("label", LARGE), 2),
        (Pile(3, LARGE), 2),
    ):
        encoded = make_sizes().encoded(msg)
        for _ in range(2):
            writer = make_writer()
            writer.put_encoded("zone", encoded)
            writer.pack()
            frame, _ = writer.frames[0]
            assert len(frame) == parts
            assert parts == 1 or frame[1] is LARGE
            arrived = make_reader().read([bytes(part) for part in frame])
            assert messages_of(arrived) == [("zone", msg)]


def test_what_messagepack_cannot_say_is_dropped_and_the_rest_arrives() -> None:
    writer = make_writer()
    sent = [("", Note(1, b"a")), ("", Note(1 << 80, LARGE)), ("", Note(2, LARGE))]
    sent += [("zone", Note(-(1 << 80), b"b")), ("", Note(3, b"c"))]
    for scope, msg in sent:
        writer.put(scope, msg)
    (parts,) = take_frames(writer)
    arrived = messages_of(make_reader().read(parts))
    assert arrived == [("", Note(1, b"a")), ("", Note(2, LARGE)), ("", Note(3, b"c"))]
    assert writer.dropped == 2
    assert not writer
