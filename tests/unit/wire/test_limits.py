"""Every limit at its edge, where it holds nothing back, and one past it."""

from __future__ import annotations

import msgspec
import pytest

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.limits import Limits
from overlay.protocol import Message
from overlay.security.certificate import MAX_CERTIFICATE
from overlay.wire.datagrams import read_datagram, write_datagram
from overlay.wire.frames import (
    FRAMEWORK_SCOPE,
    SCOPE_CHARACTERS,
    IAm,
    PieceStart,
    WhoIs,
)
from overlay.wire.pieces import Reassembly
from tests.unit.wire.messages import (
    KINDS,
    Anything,
    Labelled,
    Note,
    Short,
    Tree,
    Word,
    frame_of,
    head,
    make_lane,
    make_reader,
    make_sizes,
    make_writer,
    messages_of,
    put_together,
    take_frames,
    take_turns,
)

SMALL = Limits(
    frame_bytes=8192,
    batch_messages=10,
    nesting=6,
    string_bytes=1000,
    payload_inline=2000,
    message_bytes=40_000,
    datagram_bytes=600,
)


def refusal_of(parts: list[bytes], kinds: tuple[type[Message], ...] = KINDS) -> str:
    """The reason for which a reader refuses all of a frame, or its only message."""
    try:
        frame = make_reader(SMALL, kinds).read(parts)
    except RemoteProtocolError as error:
        return error.reason
    return frame.refused[0].reason if frame.refused else "nothing"


def arrives(*messages: Message) -> bool:
    writer = make_writer(SMALL)
    for msg in messages:
        writer.put("scope", msg)
    reader = make_reader(SMALL)
    frames = [reader.read(parts) for parts in take_frames(writer)]
    arrived = [msg for frame in frames for _, msg in messages_of(frame)]
    return arrived == list(messages) and not any(frame.refused for frame in frames)


# -- frame_bytes ------------------------------------------------------------------------------


def test_a_head_at_the_frame_limit_is_read_and_one_past_it_is_not() -> None:
    start = len(head([[10_000, 1, bytes(256)]])) - 256  # 256: the length takes two bytes
    at_edge = head([[10_000, 1, bytes(SMALL.frame_bytes - start)]])
    assert len(at_edge) == SMALL.frame_bytes
    assert refusal_of([at_edge]) == "nothing"
    assert refusal_of([head([[10_000, 1, bytes(SMALL.frame_bytes - start + 1)]])]) == (
        "frame-too-large"
    )


def test_a_part_past_the_frame_limit_is_refused() -> None:
    first = head([[10_000, 1, b""]], attached=[0])
    assert refusal_of([first, bytes(SMALL.frame_bytes)]) == "nothing"
    assert refusal_of([first, bytes(SMALL.frame_bytes + 1)]) == "frame-too-large"


def test_the_writer_never_writes_a_frame_that_its_own_limit_refuses() -> None:
    assert arrives(*(Note(n, bytes(900)) for n in range(100)))
    assert arrives(*(Tree(("x" * 900,)) for _ in range(100)))


def test_the_longest_message_that_the_writer_takes_arrives() -> None:
    refused_from = next(
        size for size in range(SMALL.frame_bytes - 200, SMALL.frame_bytes + 200) if not _fits(size)
    )
    leaves = ("x" * 1000,) * (refused_from // 1003)
    rest = refused_from - 1 - 1003 * len(leaves)
    assert arrives(Tree((*leaves, "x" * (rest - 3))))


def _fits(size: int) -> bool:
    """Does the writer take a message of lists of about that size?"""
    leaves = ("x" * 1000,) * (size // 1003)
    try:
        make_writer(SMALL).put("scope", Tree((*leaves, "x" * (size - 1003 * len(leaves) - 3))))
    except LocalProtocolError:
        return False
    return True


def test_what_is_encoded_for_several_peers_must_fit_as_well() -> None:
    encoded = make_sizes(SMALL).encoded(Tree(("x" * 900,) * 20))
    with pytest.raises(LocalProtocolError, match=r"Tree takes 18\d+ bytes; .*limits\.frame_bytes"):
        make_writer(SMALL).put_encoded("", encoded)


def test_payloads_of_one_frame_share_the_frame_limit() -> None:
    first = head([[10_000, 1, b""], [10_000, 2, b""]], attached=[0, 1])
    half = SMALL.frame_bytes // 2
    assert refusal_of([first, bytes(half), bytes(half)]) == "nothing"
    assert refusal_of([first, bytes(half), bytes(half + 1)]) == "frame-too-large"
    assert arrives(*(Note(n, bytes(3000)) for n in range(20)))
    assert arrives(*(Labelled("label", bytes(3000)) for n in range(20)))


def test_many_scopes_in_one_batch_fit_as_well() -> None:
    writer = make_writer(SMALL)
    for n in range(200):
        writer.put("語" * 200 + str(n), Note(n, bytes(1)))
    reader = make_reader(SMALL)
    frames = [reader.read(parts) for parts in take_frames(writer)]
    assert [msg.id for frame in frames for _, msg in messages_of(frame)] == list(range(200))


def test_a_scope_at_its_limit_arrives_and_one_past_it_is_nobodys() -> None:
    longest = "語" * SCOPE_CHARACTERS
    lane = make_lane(SMALL)
    for length in (0, 10_000):  # the longer one in pieces, which name the scope again
        msg = Note(1, bytes(length))
        lane.put(longest, msg)
        assert put_together(take_turns(lane), SMALL) == [(longest, msg)]
        with pytest.raises(LocalProtocolError, match="256 characters"):
            lane.put(longest + "x", msg)
    assert not lane
    wrong = msgspec.msgpack.encode([1, 0.0, [[longest + "x", [[10_000, 1, b""]]]], []])
    assert refusal_of([wrong]) == "wrong-shape"


# -- batch_messages ---------------------------------------------------------------------------


def test_a_batch_at_its_limit_is_read_and_one_past_it_is_not() -> None:
    assert refusal_of([head([[10_000, n, b""] for n in range(10)])]) == "nothing"
    assert refusal_of([head([[10_000, n, b""] for n in range(11)])]) == "batch-too-long"
    assert refusal_of([head([[10_000, n, 5] for n in range(11)])]) == "batch-too-long"


def test_empty_sections_count_as_well() -> None:
    empty = msgspec.msgpack.encode([1, 0.0, [["", []]] * 10, []])
    assert refusal_of([empty]) == "nothing"
    assert refusal_of([msgspec.msgpack.encode([1, 0.0, [["", []]] * 11, []])]) == "batch-too-long"


@pytest.mark.parametrize("most", [1, 3, 4096, 65_536])
def test_the_writer_keeps_batches_within_the_limit(most: int) -> None:
    limits = Limits(batch_messages=most)
    writer = make_writer(limits)
    for n in range(3 * min(most, 5000)):
        writer.put("", Note(n, b""))
        writer.put("zone", Word(""))
    reader = make_reader(limits)
    sizes = [len(messages_of(reader.read(parts))) for parts in take_frames(writer)]
    assert sum(sizes) == 6 * min(most, 5000)
    assert max(sizes) <= most


# -- string_bytes -----------------------------------------------------------------------------


@pytest.mark.parametrize("letter", ["x", "ü", "語"])
def test_a_string_is_measured_in_bytes(letter: str) -> None:
    size = len(letter.encode())
    longest = letter * (SMALL.string_bytes // size)
    assert refusal_of([head([[10_001, longest]])]) == "nothing"
    assert refusal_of([head([[10_001, longest + letter]])]) == "string-too-long"


def test_strings_inside_of_lists_and_maps_count_too() -> None:
    longest = "x" * SMALL.string_bytes
    assert refusal_of([head([[10_002, [longest], {longest: 1}]])]) == "nothing"
    assert refusal_of([head([[10_002, [longest + "x"], {}]])]) == "string-too-long"
    assert refusal_of([head([[10_002, [], {longest + "x": 1}]])]) == "string-too-long"


class Bag(Message, frozen=True, tag=10_020):
    words: frozenset[str]


def test_strings_inside_of_sets_count_too() -> None:
    longest = "x" * SMALL.string_bytes
    assert refusal_of([head([[10_020, [longest]]])], (Bag,)) == "nothing"
    assert refusal_of([head([[10_020, [longest + "x"]]])], (Bag,)) == "string-too-long"


@pytest.mark.parametrize("letter", ["x", "語"])
def test_the_writer_takes_no_string_that_peers_would_refuse(letter: str) -> None:
    longest = letter * (SMALL.string_bytes // len(letter.encode()))
    assert arrives(Word(longest), Tree((longest,), {longest: 1}), Labelled(longest, bytes(3000)))
    for msg in (
        Word(longest + letter),
        Tree((longest + letter,)),
        Labelled(longest + letter, b""),
        Labelled(longest + letter, bytes(3000)),
        Labelled(longest + letter, bytes(30_000)),
    ):
        lane = make_lane(SMALL)
        with pytest.raises(LocalProtocolError, match="string-too-long"):
            lane.put("", msg)
        assert not lane


def test_a_payload_is_no_string() -> None:
    assert refusal_of([head([[10_000, 1, bytes(5000)]])]) == "nothing"


# -- nesting ----------------------------------------------------------------------------------


def nested(levels: int) -> object:
    value: object = 0
    for _ in range(levels):
        value = [value]
    return value


def test_nesting_at_its_limit_is_read_and_one_past_it_is_not() -> None:
    kinds = (Anything,)  # the message itself is the first level
    assert refusal_of([head([[10_004, nested(SMALL.nesting - 1)]])], kinds) == "nothing"
    assert refusal_of([head([[10_004, nested(SMALL.nesting)]])], kinds) == "nested-too-deep"
    assert refusal_of([head([[10_004, {"a": nested(SMALL.nesting - 1)}]])], kinds) == (
        "nested-too-deep"
    )


def test_the_writer_takes_nothing_that_nests_deeper() -> None:
    make_writer(SMALL).put("", Anything(nested(SMALL.nesting - 1)))
    with pytest.raises(LocalProtocolError, match="nested-too-deep"):
        make_writer(SMALL).put("", Anything(nested(SMALL.nesting)))


class Deep(Message, frozen=True, tag=10_021):
    value: tuple[tuple[tuple[tuple[tuple[int, ...], ...], ...], ...], ...]


class TooDeep(Message, frozen=True, tag=10_022):
    value: tuple[Deep, ...]


def test_a_type_that_nests_deeper_than_the_limit_is_the_programmers_error() -> None:
    make_reader(SMALL, (Deep,))
    with pytest.raises(LocalProtocolError, match=r"TooDeep nests 8 deep; limits\.nesting is 6"):
        make_reader(SMALL, (TooDeep,))


# -- payload_inline and message_bytes ---------------------------------------------------------


def test_a_payload_becomes_a_part_from_payload_inline_on() -> None:
    for size, parts in ((0, 1), (1999, 1), (2000, 2)):
        assert len(frame_of(Note(1, bytes(size)), limits=SMALL)) == parts
        assert len(frame_of(Labelled("x", bytes(size)), limits=SMALL)) == parts


@pytest.mark.parametrize("kind", [Note, Labelled], ids=["bare", "labelled"])
@pytest.mark.parametrize("size", [8191, 8192, 8193, 16_384, 16_385, 40_000])
def test_payloads_up_to_message_bytes_leave_and_arrive(kind: type[Message], size: int) -> None:
    msg = Note(1, bytes(size)) if kind is Note else Labelled("label", bytes(size))
    lane = make_lane(SMALL)
    lane.put("scope", msg)
    assert put_together(take_turns(lane), SMALL) == [("scope", msg)]


@pytest.mark.parametrize("msg", [Note(1, bytes(40_001)), Labelled("", bytes(40_001))])
def test_a_payload_past_message_bytes_is_the_callers_error(msg: Message) -> None:
    lane = make_lane(SMALL)
    with pytest.raises(LocalProtocolError, match=r"limits\.message_bytes is 40000"):
        lane.put("", msg)
    assert not lane
    with pytest.raises(LocalProtocolError, match="a lane that makes pieces"):
        make_writer(SMALL).put("", msg)


def test_an_announcement_past_message_bytes_is_refused() -> None:
    reassembly = Reassembly(make_reader(SMALL), SMALL)
    bare = msgspec.msgpack.encode(Note(1, b""))
    reassembly.begin(PieceStart("", SMALL.message_bytes, bare))
    with pytest.raises(RemoteProtocolError) as caught:
        reassembly.begin(PieceStart("", SMALL.message_bytes + 1, bare))
    assert caught.value.reason == "message-too-large"


def test_a_bound_of_the_type_holds_for_a_payload_in_a_part_too() -> None:
    first = head([[10_005, b""]], attached=[0])
    limits = Limits()
    make_reader(limits).read([first, bytes(50_000)])
    frame_refusals = []
    try:
        frame_refusals = make_reader(limits).read([first, bytes(50_001)]).refused
    except RemoteProtocolError as error:
        frame_refusals = [error]
    assert [error.reason for error in frame_refusals] == ["wrong-shape"]
    assert Short(b"").payload == b""


# -- datagram_bytes ---------------------------------------------------------------------------


def test_a_datagram_at_its_limit_leaves_and_one_past_it_is_the_callers_error() -> None:
    overhead = len(write_datagram("zone", Note(1, bytes(300)), SMALL)) - 300
    longest = Note(1, bytes(SMALL.datagram_bytes - overhead))
    body = write_datagram("zone", longest, SMALL)
    assert len(body) == SMALL.datagram_bytes
    assert read_datagram(body, make_reader(SMALL)) == ("zone", longest)
    with pytest.raises(LocalProtocolError, match=r"limits\.datagram_bytes is 600"):
        write_datagram("zone", Note(1, longest.payload + b"x"), SMALL)


def test_a_datagram_past_its_limit_is_refused() -> None:
    overhead = len(write_datagram("zone", Note(1, bytes(300)), SMALL)) - 300
    longest = Note(1, bytes(SMALL.datagram_bytes - overhead))
    longer = write_datagram("zone", Note(1, longest.payload + b"x"), Limits())
    with pytest.raises(RemoteProtocolError) as caught:
        read_datagram(longer, make_reader(SMALL))
    assert caught.value.reason == "datagram-too-large"


def test_an_introduction_holds_the_longest_certificate_under_any_limit() -> None:
    longest = IAm(bytes(8), "ada", bytes(MAX_CERTIFICATE))
    question = WhoIs(bytes(8), bytes(MAX_CERTIFICATE + 64))  # as `net/introduction.py` pads it
    for msg in (longest, question):
        body = write_datagram(FRAMEWORK_SCOPE, msg, SMALL)
        limits = Limits(string_bytes=16_384, datagram_bytes=512)
        assert read_datagram(body, make_reader(limits)) == (FRAMEWORK_SCOPE, msg)


def test_a_datagram_holds_the_limits_of_strings_and_nesting_too() -> None:
    longest = "x" * SMALL.string_bytes
    wide = Limits(string_bytes=SMALL.string_bytes, nesting=SMALL.nesting)
    reader = make_reader(wide, (Word, Anything))
    assert read_datagram(write_datagram("", Word(longest), wide), reader) == ("", Word(longest))
    for msg, reason in (
        (Word(longest + "x"), "string-too-long"),
        (Anything(nested(SMALL.nesting)), "nested-too-deep"),
    ):
        with pytest.raises(RemoteProtocolError) as caught:
            read_datagram(write_datagram("", msg, wide), reader)
        assert caught.value.reason == reason
