"""Frames and pieces: only RemoteProtocolError ever comes out of the reader."""

from __future__ import annotations

import atheris

with atheris.instrument_imports(include=["overlay", "protocols", "tests"]):
    import msgspec

    from overlay.errors import RemoteProtocolError
    from overlay.limits import Limits
    from overlay.wire.frames import FRAMEWORK_SCOPE, Piece, PieceStart
    from overlay.wire.pieces import Reassembly
    from tests.fuzz.running import chunks, fuzz, joined
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

SMALL = Limits(frame_bytes=4096, batch_messages=8, nesting=6, string_bytes=64, payload_inline=50)
READERS = (make_reader(SMALL), make_reader(Limits(), (*KINDS, Anything)))


def read(data: bytes) -> None:
    """Take the input as the parts of a frame; and as messages inside of a good one."""
    parts = chunks(data)
    count = len(parts)
    raws = [msgspec.Raw(part) for part in parts if part]
    wrapped = msgspec.msgpack.encode([1, 0.0, [["", raws]], list(range(count % 3))])
    for reader in READERS:
        pieces = Reassembly(reader, reader.limits)
        for frame in (parts, [wrapped, *parts[: count % 3]]):
            try:
                sections = reader.read(frame).sections
            except RemoteProtocolError:
                continue
            for msg in (msg for _, messages in sections for msg in messages):
                try:
                    if isinstance(msg, PieceStart):
                        pieces.begin(msg)
                    elif isinstance(msg, Piece):
                        pieces.add(msg)
                except RemoteProtocolError:
                    pass


def seeds() -> list[bytes]:
    """One of each kind, as a frame and bare."""
    messages = (
        Note(1, b"x" * 60),
        Word("grüße", True),
        Tree(("a", "b"), {"c": -1}),
        Labelled("topic", b"y" * 60),
        Short(b""),
        Anything({"a": [1, 2.5, None, {"b": b"c"}]}),
        PieceStart("zone", 3, msgspec.msgpack.encode(Note(1, b""))),
        Piece(b"abc"),
    )
    frames = [joined(*frame_of(msg, scope=FRAMEWORK_SCOPE, limits=SMALL)) for msg in messages]
    return [*frames, joined(*map(msgspec.msgpack.encode, messages))]


if __name__ == "__main__":
    fuzz("frames", read, seeds())
