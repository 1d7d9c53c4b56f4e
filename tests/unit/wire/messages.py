"""Messages of every kind of shape, and a writer and a reader that share their limits."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from overlay.limits import Limits
from overlay.protocol import Message, Scope
from overlay.wire.bulk import BulkLane
from overlay.wire.frames import FRAMEWORK_MESSAGES, Piece, PieceStart
from overlay.wire.pieces import Reassembly
from overlay.wire.reader import BatchReader, Frame
from overlay.wire.sizes import Sizes
from overlay.wire.writer import BatchWriter, Part


class Note(Message, frozen=True, tag=10_000):
    """Scalars and the payload only: the shape of the hot path."""

    id: int
    payload: bytes


class Word(Message, frozen=True, tag=10_001):
    """Text, so its size is bounded by counting characters."""

    text: str
    flag: bool = False


class Tree(Message, frozen=True, tag=10_002):
    """Lists, so it is measured by encoding it."""

    leaves: tuple[str, ...]
    counts: dict[str, int] = msgspec.field(default_factory=dict)


class Labelled(Message, frozen=True, tag=10_003):
    """Text beside a payload."""

    label: str
    payload: bytes


class Anything(Message, frozen=True, tag=10_004):
    """The sender decides how deep it is."""

    value: Any


class Short(Message, frozen=True, tag=10_005):
    """A payload with a bound of its own."""

    payload: Annotated[bytes, msgspec.Meta(max_length=50_000)]


class Pile(Message, frozen=True, tag=10_006):
    """May wait."""

    bulk: ClassVar[bool] = True
    id: int
    payload: bytes


class OlderWord(Message, frozen=True, tag=10_001):
    """What a node of last year knows of `Word`."""

    text: str


KINDS: tuple[type[Message], ...] = (Note, Word, Tree, Labelled, Short, Pile)
CAPACITY = 128 << 20
SENT_AT = 1_800_000_000.25


def make_sizes(limits: Limits | None = None) -> Sizes:
    """What a node knows that sends all of these."""
    return Sizes((*FRAMEWORK_MESSAGES, *KINDS, Anything), limits or Limits())


def make_writer(limits: Limits | None = None, capacity: int = CAPACITY) -> BatchWriter:
    """A writer whose clock stands still."""
    limits = limits or Limits()
    return BatchWriter(make_sizes(limits), limits, capacity, lambda: SENT_AT)


def make_lane(limits: Limits | None = None, capacity: int = CAPACITY) -> BulkLane:
    """A bulk lane whose clock stands still."""
    limits = limits or Limits()
    return BulkLane(make_sizes(limits), limits, capacity, lambda: SENT_AT)


def make_reader(
    limits: Limits | None = None, kinds: tuple[type[Message], ...] = KINDS
) -> BatchReader:
    """A reader of all these messages but `Anything`, which makes it look at each message."""
    return BatchReader(kinds, limits or Limits())


def take_frames(writer: BatchWriter) -> list[list[bytes]]:
    """Everything that waits, as it would arrive."""
    writer.pack()
    frames = []
    while writer.frames:
        frames.append([bytes(part) for part in writer.frames[0][0]])
        writer.sent()
    return frames


def take_turns(lane: BulkLane) -> list[list[bytes]]:
    """Everything that waits in a bulk lane, as it would arrive."""
    lane.pack()
    frames = []
    while (frame := lane.frame()) is not None:
        frames.append([bytes(part) for part in frame[0]])
        lane.sent()
    return frames


def put_together(
    frames: list[list[bytes]], limits: Limits | None = None, *, complete: bool = True
) -> list[tuple[str, Any]]:
    """What a receiver makes of the frames of one connection."""
    reader = make_reader(limits)
    reassembly = Reassembly(reader, limits or Limits())
    arrived: list[tuple[str, Any]] = []
    for parts in frames:
        frame = reader.read(parts)
        assert frame.refused == []
        for scope, msg in messages_of(frame):
            if isinstance(msg, PieceStart):
                reassembly.begin(msg)
            elif isinstance(msg, Piece):
                whole = reassembly.add(msg)
                arrived += [whole] if whole is not None else []
            else:
                arrived.append((scope, msg))
    assert not (complete and reassembly.held)
    return arrived


def frame_of(*messages: Message, limits: Limits | None = None, scope: Scope = "") -> list[bytes]:
    """One frame with these messages."""
    writer = make_writer(limits)
    for msg in messages:
        writer.put(scope, msg)
    (frame,) = take_frames(writer)
    return frame


def head(messages: list[Any], *, version: int = 1, attached: list[int] | None = None) -> bytes:
    """A head by hand, for what no writer would write."""
    return msgspec.msgpack.encode([version, SENT_AT, [["", messages]], attached or []])


def messages_of(frame: Frame) -> list[tuple[str, Any]]:
    """What a frame brought, one by one."""
    return [(scope, msg) for scope, messages in frame.sections for msg in messages]


def parts_bytes(parts: list[Part]) -> int:
    """What a frame takes on the wire, more or less."""
    return sum(len(part) for part in parts)
