"""Whatever bytes arrive, what comes out is a message of a known type or a RemoteProtocolError."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from overlay.errors import RemoteProtocolError
from overlay.limits import Limits
from overlay.protocol import Message
from overlay.wire.datagrams import read_datagram, write_datagram
from overlay.wire.frames import (
    FRAMEWORK_MESSAGES,
    FRAMEWORK_SCOPE,
    Goodbye,
    Piece,
    PieceStart,
    WhoIs,
)
from overlay.wire.pieces import UNFINISHED, Reassembly
from protocols.echo.messages import EchoReply, EchoRequest
from tests.unit.net.router import Desk, hello
from tests.unit.wire.messages import (
    KINDS,
    Anything,
    Labelled,
    Note,
    Short,
    Tree,
    Word,
    frame_of,
    make_reader,
)

LIMITS = Limits(frame_bytes=4096, batch_messages=8, nesting=6, string_bytes=64, payload_inline=100)
EVERY_KIND: tuple[type[Message], ...] = (*KINDS, Anything)
READERS = [make_reader(LIMITS), make_reader(LIMITS, EVERY_KIND), make_reader(Limits(), EVERY_KIND)]

# -- what a sender may make up ----------------------------------------------------------------

values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(),
        st.text(max_size=5),
        st.binary(max_size=5),
        st.builds(msgspec.msgpack.Ext, st.integers(-128, 127).filter(lambda n: n != -1),
                  st.binary(max_size=12)),
        st.sampled_from(["x" * 65, b"x" * 65]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers(0, 9)), inner, max_size=3),
    ),
    max_leaves=12,
)  # fmt: skip

tags = st.one_of(
    st.sampled_from([kind.__struct_config__.tag for kind in (*EVERY_KIND, *FRAMEWORK_MESSAGES)]),
    st.sampled_from([16, 17]),  # echo's, which the driver's inbound path knows
    st.integers(0, 20_000),
)
messages = st.one_of(
    st.builds(lambda tag, fields: [tag, *fields], tags, st.lists(values, max_size=4)), values
)
scopes = st.one_of(st.sampled_from(["", "zone", FRAMEWORK_SCOPE, "x" * 257]), values)
heads = st.one_of(
    st.builds(
        lambda version, sent_at, sections, attached: [version, sent_at, sections, attached],
        st.one_of(st.just(1), values),
        st.one_of(st.floats(), values),
        st.one_of(st.lists(st.tuples(scopes, st.lists(messages, max_size=9)), max_size=9), values),
        st.one_of(st.lists(st.integers(-1, 9), max_size=4), values),
    ),
    values,
).map(msgspec.msgpack.encode)

GOOD_FRAMES = [
    frame_of(Note(1, b"payload"), Word("grüße"), Tree(("a", "b"), {"c": 1}), scope="zone"),
    frame_of(Note(1, bytes(200)), Labelled("x", bytes(200)), Short(bytes(300)), limits=LIMITS),
    frame_of(Anything({"a": [1, 2.0, None, b"x"]})),
    frame_of(PieceStart("", 3, msgspec.msgpack.encode(Note(1, b""))), scope=FRAMEWORK_SCOPE),
    frame_of(Piece(b"abc"), Goodbye(idle=False), WhoIs(bytes(8)), scope=FRAMEWORK_SCOPE),
]

edits = st.lists(
    st.tuples(
        st.integers(0, 5000), st.integers(1, 255), st.sampled_from(["flip", "cut", "add", "end"])
    ),
    min_size=1,
    max_size=4,
)


def mutate(data: bytes, changes: list[tuple[int, int, str]]) -> bytes:
    changed = bytearray(data)
    for at, value, kind in changes:
        at %= len(changed) + 1
        if kind == "add":
            changed.insert(at, value)
        elif kind == "end":
            del changed[at:]
        elif at < len(changed):
            if kind == "flip":
                changed[at] ^= value
            else:
                del changed[at]
    return bytes(changed)


mutated = st.builds(
    lambda parts, which, changes: [
        mutate(part, changes) if n == which % len(parts) else part for n, part in enumerate(parts)
    ],
    st.sampled_from(GOOD_FRAMES),
    st.integers(0, 3),
    edits,
)
frames = st.one_of(
    st.lists(st.binary(max_size=80), max_size=4),
    mutated,
    st.builds(
        lambda first, rest: [first, *rest], heads, st.lists(st.binary(max_size=9), max_size=3)
    ),
)

# -- the decoder ------------------------------------------------------------------------------


def check_message(msg: Any) -> None:
    assert isinstance(msg, Message)
    assert type(msg) in (*EVERY_KIND, *FRAMEWORK_MESSAGES)


@given(frames)
def test_any_frame_is_read_or_refused(parts: list[bytes]) -> None:
    for reader in READERS:
        try:
            frame = reader.read(parts)
        except RemoteProtocolError:
            continue
        count = 0
        for scope, batch in frame.sections:
            assert isinstance(scope, str)
            for msg in batch:
                check_message(msg)
                count += 1
        assert count + len(frame.refused) <= reader.limits.batch_messages


@given(st.one_of(st.binary(max_size=80), messages.map(msgspec.msgpack.encode)))
def test_any_message_is_read_or_refused(encoded: bytes) -> None:
    for reader in READERS:
        try:
            check_message(reader.message(encoded))
        except RemoteProtocolError:
            continue


GOOD_DATAGRAMS = [
    write_datagram("zone", msg, LIMITS) for msg in (Note(1, b"x"), Word("ü"), Tree(("a",)))
]


@given(
    st.one_of(
        st.binary(max_size=80),
        st.builds(mutate, st.sampled_from(GOOD_DATAGRAMS), edits),
        st.tuples(st.one_of(st.just(1), values), scopes, messages).map(msgspec.msgpack.encode),
    )
)
def test_any_datagram_is_read_or_refused(body: bytes) -> None:
    for reader in READERS:
        try:
            scope, msg = read_datagram(body, reader)
        except RemoteProtocolError:
            continue
        assert isinstance(scope, str)
        check_message(msg)


pieces = st.one_of(
    st.builds(
        PieceStart,
        st.sampled_from(["", "zone"]),
        st.integers(0, 60),
        st.one_of(st.binary(max_size=9), messages.map(msgspec.msgpack.encode),
                  st.just(msgspec.msgpack.encode(Note(1, b"")))),
        st.integers(0, 11),
    ),
    st.builds(Piece, st.binary(max_size=20), st.integers(0, 11)),
)  # fmt: skip


@given(st.lists(pieces, max_size=40))
def test_any_pieces_make_a_message_or_are_refused(sequence: list[PieceStart | Piece]) -> None:
    held = Reassembly(READERS[0], LIMITS)
    announced: dict[int, int] = {}
    for piece in sequence:
        before = held.held
        try:
            if isinstance(piece, PieceStart):
                announced[piece.number] = piece.size
                held.begin(piece)
            else:
                whole = held.add(piece)
                if whole is not None:
                    check_message(whole[1])
                    assert len(whole[1].payload) == announced[piece.number]
        except RemoteProtocolError:
            pass
        assert held.held <= min(LIMITS.message_bytes, before + 20)
        assert held.held <= UNFINISHED * max(announced.values(), default=0)


# -- the driver's inbound path ----------------------------------------------------------------

ECHO_FRAMES = [
    [msgspec.msgpack.encode([1, 0.0, [["", [EchoRequest(1, b"x"), EchoReply(2, b"y")]]], []])],
    [msgspec.msgpack.encode([1, 0.0, [["", [EchoRequest(1, b"")]]], [0]]), b"payload"],
    [msgspec.msgpack.encode([1, 0.0, [["#", [Goodbye(idle=False)]]], []])],
    [msgspec.msgpack.encode(hello("eve"))],
]
arrivals = st.lists(
    st.tuples(
        st.sampled_from([b"friend", b"member", b"stranger", b""]),  # routing ids
        st.sampled_from(["", "aa" * 32, "bb" * 32]),  # CURVE keys
        st.one_of(
            frames.filter(bool),
            st.builds(
                lambda parts, changes: [mutate(parts[0], changes), *parts[1:]],
                st.sampled_from(ECHO_FRAMES),
                edits,
            ),
            st.sampled_from(ECHO_FRAMES),
        ),
    ),
    max_size=20,
)
happenings = st.lists(
    st.tuples(st.sampled_from([1 << n for n in range(16)]), st.integers(0, 12)), max_size=10
)


@given(arrivals, happenings)
def test_whatever_arrives_a_friend_is_heard(
    sequence: list[tuple[bytes, str, list[bytes]]], events: list[tuple[int, int]]
) -> None:
    desk = Desk(limits=LIMITS)
    desk.say_hello("friend", b"friend", user="cc" * 32, fd=100)
    desk.say_hello("eve", b"member", user="aa" * 32, fd=5)
    for n, (routing_id, user, parts) in enumerate(sequence):
        desk.router.put(routing_id, parts, user=user, fd=n)
    desk.happens(*events)
    while desk.inbound.drain(0.0):
        pass
    assert {name for name, _, _ in desk.delivered} <= {
        session.name for session in desk.inbound.sessions.values()
    } | {name for name, _ in desk.lost} | {"eve"}
    desk.delivered.clear()
    desk.router.put(b"friend", ECHO_FRAMES[0], user="cc" * 32, fd=100)
    desk.inbound.drain(0.0)
    assert [(name, scope) for name, scope, _ in desk.delivered] == [("friend", "")] * 2
