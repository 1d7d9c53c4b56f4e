"""What a peer must not send: each under its reason, and the good beside the bad arrives."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.limits import Limits
from overlay.protocol import Message
from overlay.wire.datagrams import read_datagram
from overlay.wire.frames import Piece, PieceStart, negotiate
from overlay.wire.pieces import UNFINISHED, Reassembly
from tests.unit.wire.messages import (
    KINDS,
    SENT_AT,
    Anything,
    Note,
    Word,
    frame_of,
    head,
    make_reader,
    messages_of,
)

LEVELS = 100_000
BOTTOMLESS = b"\x91" * LEVELS + b"\xc0"  # arrays in arrays
BOTH_KINDS: tuple[tuple[type[Message], ...], ...] = (KINDS, (*KINDS, Anything))


def reason_of(*parts: bytes) -> str:
    with pytest.raises(RemoteProtocolError) as caught:
        make_reader().read(parts)
    assert len(str(caught.value)) < 300  # it may end in a log
    return caught.value.reason


@pytest.mark.parametrize("junk", [b"", b"\xc1", b"hello", b"\xff" * 50, b"\x94\x01"], ids=repr)
def test_bytes_that_are_no_frame(junk: bytes) -> None:
    assert reason_of(junk) == "malformed-frame"


def test_a_frame_cut_off_anywhere() -> None:
    (whole,) = frame_of(Note(1, b"payload"), Word("text"))
    reasons = {reason_of(whole[:end]) for end in range(len(whole))}
    assert reasons == {"malformed-frame"}


@pytest.mark.parametrize(
    "value",
    [
        7,
        {},
        [],
        [1],
        [1, 2.0],
        [1, "then", [], []],
        [1, 2.0, {}, []],
        [1, 2.0, [["", 5]], []],
        [1, 2.0, [[5, []]], []],
        [1, 2.0, [["", [], 1]], []],
        [1, 2.0, [], ["0"]],
        ["1", 2.0, [], []],
    ],
    ids=repr,
)
def test_valid_messagepack_of_the_wrong_shape(value: Any) -> None:
    assert reason_of(msgspec.msgpack.encode(value)) in ("malformed-frame", "wrong-shape")


@pytest.mark.parametrize("version", [-1, 0, 2, 65_536, 2**63])
def test_another_version(version: int) -> None:
    assert reason_of(head([[10_000, 1, b""]], version=version)) == "wrong-version"
    newer = [version, SENT_AT, "whatever a newer version holds here"]
    assert reason_of(msgspec.msgpack.encode(newer)) == "wrong-version"


def test_the_good_messages_beside_bad_ones_arrive() -> None:
    bad: dict[str, Any] = {
        "unknown-tag": [9999, "from the future"],
        "wrong-shape": [10_000, "no number", b""],
        "string-too-long": [10_001, "x" * 140_000],
    }
    good = [10_000, 1, b"good"]
    for reason, message in bad.items():
        frame = make_reader().read([head([good, message, good])])
        assert messages_of(frame) == [("", Note(1, b"good"))] * 2
        assert [error.reason for error in frame.refused] == [reason]


@pytest.mark.parametrize(
    "message", [7, "text", None, [], {}, ["10000", 1, b""], [None], [True]], ids=repr
)
def test_messages_that_are_none(message: Any) -> None:
    frame = make_reader().read([head([message, [10_001, "good"]])])
    assert messages_of(frame) == [("", Word("good"))]
    assert [error.reason for error in frame.refused] in (["wrong-shape"], ["unknown-tag"])


def test_a_bottomless_nest_is_refused_and_the_process_lives() -> None:
    assert reason_of(BOTTOMLESS) == "malformed-frame"
    start = msgspec.msgpack.encode(1), msgspec.msgpack.encode(SENT_AT)
    section = b"\x91\x92\xa0\x91" + b"\x92\xcd\x27\x14" + BOTTOMLESS  # tag 10004
    whole = b"\x94" + start[0] + start[1] + section + b"\x90"
    for kinds in BOTH_KINDS:
        with pytest.raises(RemoteProtocolError):
            make_reader(kinds=kinds).read([whole])


def test_a_bottomless_trailing_field_is_refused() -> None:
    for kinds in BOTH_KINDS:
        with pytest.raises(RemoteProtocolError):
            make_reader(kinds=kinds).message(b"\x93\xcd\x27\x11\xa1x" + BOTTOMLESS)


def test_a_bottomless_datagram_is_refused() -> None:
    for body in (BOTTOMLESS, b"\x93\x01\xa0" + BOTTOMLESS, b"\x94\x01\xa0\x90" + BOTTOMLESS):
        with pytest.raises(RemoteProtocolError) as caught:
            read_datagram(body, make_reader())
        assert caught.value.reason in ("malformed-datagram", "nested-too-deep")


class Maps(Message, frozen=True, tag=10_030):
    value: frozenset[Any]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"\x92\xcd\x27\x11\xa2\xff\xfe", "malformed-message"),  # a Word that is no UTF-8
        (b"\x92\xcd\x27\x2e\x91\x81\x01\x02", "wrong-shape"),  # a set of maps
        (b"\xc1", "malformed-message"),
    ],
    ids=repr,
)
def test_bytes_that_no_type_accepts(message: bytes, reason: str) -> None:
    reader = make_reader(kinds=(Word, Maps))
    with pytest.raises(RemoteProtocolError) as caught:
        reader.message(message)
    assert caught.value.reason == reason
    with pytest.raises(RemoteProtocolError):
        read_datagram(b"\x93\x01\xa0" + message, reader)


def test_a_string_that_is_no_utf8_spoils_only_its_frame() -> None:
    whole = head([[10_001, "text"], [10_001, "good"]]).replace(b"text", b"\xff\xfe\xfd\xfc")
    frame = make_reader().read([whole])
    assert messages_of(frame) == [("", Word("good"))]
    assert [error.reason for error in frame.refused] == ["malformed-message"]
    scope = msgspec.msgpack.encode([1, SENT_AT, [["text", []]], []])
    assert reason_of(scope.replace(b"text", b"\xff\xfe\xfd\xfc")) == "malformed-frame"


def test_a_frame_of_no_parts() -> None:
    assert reason_of() == "malformed-frame"


# -- parts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attached", "parts"),
    [
        ([], 1),
        ([0], 0),
        ([0], 2),
        ([0, 1], 1),
        ([2], 1),
        ([-1], 1),
        ([0, 0], 2),
        ([1, 0], 2),
        ([0, 7], 2),
        ([2**62], 1),
    ],
    ids=str,
)
def test_indices_that_do_not_fit_the_parts(attached: list[int], parts: int) -> None:
    first = head([[10_000, 1, b""], [10_000, 2, b""]], attached=attached)
    assert reason_of(first, *[b"payload"] * parts) == "wrong-parts"


def test_a_part_for_a_message_that_has_a_payload_already() -> None:
    assert reason_of(head([[10_000, 1, b"mine"]], attached=[0]), b"other") == "wrong-parts"


def test_a_part_for_a_message_that_takes_none() -> None:
    assert reason_of(head([[10_001, "text"]], attached=[0]), b"payload") == "wrong-parts"


def test_a_part_of_a_refused_message_does_not_slip_into_its_neighbour() -> None:
    first = head([[9999, b""], [10_000, 1, b""]], attached=[0, 1])
    frame = make_reader().read([first, b"for the refused", b"for the note"])
    assert messages_of(frame) == [("", Note(1, b"for the note"))]
    assert [error.reason for error in frame.refused] == ["unknown-tag"]


# -- pieces -----------------------------------------------------------------------------------


def reassembly() -> Reassembly:
    return Reassembly(make_reader(), Limits())


def start_of(size: int, message: Any = (10_000, 1, b""), number: int = 0) -> PieceStart:
    return PieceStart("zone", size, msgspec.msgpack.encode(message), number)


def refused_piece(held: Reassembly, piece: bytes) -> str:
    with pytest.raises(RemoteProtocolError) as caught:
        held.add(Piece(piece))
    assert held.held == 0
    return caught.value.reason


def test_pieces_make_a_message() -> None:
    held = reassembly()
    held.begin(start_of(5))
    assert held.add(Piece(b"abc")) is None
    assert held.held == 3
    assert held.add(Piece(b"de")) == ("zone", Note(1, b"abcde"))
    assert held.held == 0


def test_a_new_start_gives_the_unfinished_one_up() -> None:
    held = reassembly()
    held.begin(start_of(5))
    held.add(Piece(b"abc"))
    held.begin(start_of(2))
    assert held.add(Piece(b"xy")) == ("zone", Note(1, b"xy"))


def test_pieces_of_several_messages_may_come_in_turn() -> None:
    held = reassembly()
    held.begin(start_of(4, (10_000, 1, b""), 1))
    held.begin(start_of(4, (10_000, 2, b""), 2))
    assert held.add(Piece(b"ab", 1)) is None
    assert held.add(Piece(b"xy", 2)) is None
    assert held.held == 4
    assert held.add(Piece(b"z.", 2)) == ("zone", Note(2, b"xyz."))
    assert held.add(Piece(b"cd", 1)) == ("zone", Note(1, b"abcd"))
    assert held.held == 0


def test_a_piece_of_a_number_that_was_not_announced_is_stray_and_the_others_go_on() -> None:
    held = reassembly()
    held.begin(start_of(4, number=1))
    held.add(Piece(b"ab", 1))
    with pytest.raises(RemoteProtocolError) as caught:
        held.add(Piece(b"cd", 7))
    assert caught.value.reason == "stray-piece"
    assert held.add(Piece(b"cd", 1)) == ("zone", Note(1, b"abcd"))


def refused_start(held: Reassembly, start: PieceStart) -> str:
    with pytest.raises(RemoteProtocolError) as caught:
        held.begin(start)
    return caught.value.reason


def test_unfinished_messages_are_bounded_in_number() -> None:
    held = reassembly()
    for number in range(UNFINISHED):
        held.begin(start_of(2, number=number))
    assert refused_start(held, start_of(2, number=99)) == "too-many-unfinished"
    held.begin(start_of(2, number=3))  # given up and begun again: as many as before
    assert held.add(Piece(b"ab", 0)) == ("zone", Note(1, b"ab"))
    held.begin(start_of(2, number=99))
    assert held.add(Piece(b"cd", 99)) == ("zone", Note(1, b"cd"))


def test_unfinished_messages_are_bounded_in_bytes_by_what_they_announce() -> None:
    held = reassembly()
    most = Limits().message_bytes
    held.begin(start_of(most - 3, number=1))
    held.begin(start_of(3, number=2))
    assert refused_start(held, start_of(1, number=3)) == "too-many-unfinished"
    assert held.add(Piece(b"abc", 2)) == ("zone", Note(1, b"abc"))
    held.begin(start_of(3, number=3))
    held.begin(start_of(5, number=1))  # the long one was given up
    held.begin(start_of(most - 8, number=4))
    assert refused_start(held, start_of(1, number=5)) == "too-many-unfinished"


def test_pieces_that_do_not_fit() -> None:
    held = reassembly()
    assert refused_piece(held, b"stray") == "stray-piece"
    held.begin(start_of(3))
    assert refused_piece(held, b"more") == "wrong-pieces"
    held.begin(start_of(3))
    assert refused_piece(held, b"") == "wrong-pieces"
    held.begin(start_of(3, (10_000, 1, b"has one")))
    assert refused_piece(held, b"abc") == "wrong-pieces"
    held.begin(start_of(3, (10_001, "takes none")))
    assert refused_piece(held, b"abc") == "wrong-pieces"
    held.begin(start_of(3, (9999,)))
    assert refused_piece(held, b"abc") == "unknown-tag"


def test_pieces_too_short_to_be_worth_their_memory() -> None:
    held = reassembly()
    held.begin(start_of(100_000))
    taken = 0
    with pytest.raises(RemoteProtocolError) as caught:
        while held.add(Piece(b"x")) is None:
            taken += 1
    assert caught.value.reason == "wrong-pieces"
    assert taken == 16 + 100_000 // 4096
    assert held.held == 0


def test_the_shortest_pieces_that_a_sender_makes_are_taken() -> None:
    held = reassembly()
    size = 1_000_000
    held.begin(start_of(size))
    whole = [held.add(Piece(bytes(min(4096, size - at)))) for at in range(0, size, 4096)][-1]
    assert whole == ("zone", Note(1, bytes(size)))


def test_a_payload_with_a_least_length_is_the_programmers_error() -> None:
    class Never(Message, frozen=True, tag=10_031):
        payload: Annotated[bytes, msgspec.Meta(min_length=1)]

    with pytest.raises(LocalProtocolError, match=r"Never\.payload has a min_length"):
        make_reader(kinds=(Never,))


def test_a_refused_payload_leaves_its_neighbours() -> None:
    first = head([[10_005, b""], [10_000, 1, b""]], attached=[0, 1])
    frame = make_reader().read([first, bytes(50_001), b"for the note"])
    assert messages_of(frame) == [("", Note(1, b"for the note"))]
    assert [error.reason for error in frame.refused] == ["wrong-shape"]


def test_the_bound_of_a_type_holds_for_pieces_too() -> None:
    held = reassembly()
    held.begin(start_of(50_001, (10_005, b"")))
    assert refused_piece(held, bytes(50_001)) == "wrong-shape"


# -- versions ---------------------------------------------------------------------------------


def test_versions_meet_at_the_newest_that_both_speak() -> None:
    assert negotiate(1, 1) == 1
    assert negotiate(0, 99) == 1
    for oldest, newest in ((2, 3), (0, 0), (5, 1)):
        with pytest.raises(RemoteProtocolError, match="we 1 to 1") as caught:
            negotiate(oldest, newest)
        assert caught.value.reason == "incompatible-version"
