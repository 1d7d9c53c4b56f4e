"""What travels between publishers, subscribers and the gateways between them."""

from __future__ import annotations

from typing import Annotated, TypeAlias, get_args

import msgspec

from overlay.ids import NodeId, WireName, WireVid
from overlay.protocol import Message
from protocols.topics.modes import Mode

MOST_GAPS = 64  # ranges that one Ack or Nack names
MOST_MESSAGES = 1 << 16  # in one chunk
LARGEST = (1 << 62) - 1  # number of a message

StreamKey: TypeAlias = tuple[NodeId, int]
"""A stream: who publishes it, and a number that tells its streams and lives apart."""

ArrivalKey: TypeAlias = tuple[NodeId, int, bool]
"""A stream as it arrives: for subscriptions of this node, or (True) for others, at a gateway."""

Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_MESSAGES)]
Topic: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Range: TypeAlias = tuple[Number, Number]
Ranges: TypeAlias = Annotated[tuple[Range, ...], msgspec.Meta(max_length=MOST_GAPS)]
Reason: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)]
Hops: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=255)]

ASK = 1  # flag: acknowledge at once
LAST = 2  # flag: nothing follows; the publisher closed
LOST = 4  # flag, with LAST: its publisher failed
RELAY = 8  # flag: for the receiver as a gateway, which hands it on
BARE = 16  # flag: the payload is the one message itself, which is bytes
MOST_FLAGS = 31

GONE = "gone"  # a reason: there is no such stream here (any more)
MOVED = "moved"  # a reason: somebody else serves it now
LEFT = "left"  # a reason: it wants no more of it
NO_INTEREST, NOT_ADMITTED = "no interest", "not admitted"  # reasons of a Reject

NO_REPLAY, REPLAY_LAST, REPLAY_SINCE, REPLAY_ALL = range(4)


class Offer(Message, frozen=True, tag=112):
    """Will you have this stream? Repeated until it is answered."""

    origin: WireName
    stream: Number
    topic: Topic
    mode: Mode
    start: Number  # the first message that the receiver gets, if it is new
    newest: Number  # the last one so far
    window: Number  # bytes that may be on the way: acknowledge well before
    keep: Number  # acknowledged messages that are kept for late joiners: gateways do so, too
    relay: bool = False  # to a gateway, which hands it on; here and in the messages below
    oldest: Number = 0  # the first one that the sender still has, though it does not promise it


class Accept(Message, frozen=True, tag=113):
    """I will; Begin must follow."""

    origin: WireName
    stream: Number
    receiver: Number  # tells two lives of a receiver apart
    have: Number  # I have all up to this one; 0: I am new to this stream
    replay: Annotated[int, msgspec.Meta(ge=NO_REPLAY, le=REPLAY_ALL)] = NO_REPLAY
    amount: Annotated[float, msgspec.Meta(ge=0, le=1e18)] = 0.0  # messages, or Unix seconds
    relay: bool = False


class Reject(Message, frozen=True, tag=114):
    """I will not."""

    origin: WireName
    stream: Number
    reason: Reason
    relay: bool = False


class Begin(Message, frozen=True, tag=115):
    """You get everything from `start` on; what you lack before that is gone."""

    origin: WireName
    stream: Number
    start: Number
    relay: bool = False
    live: Number = 0  # where who is new, and wants no replay, begins; 0: at `start`


class Data(Message, frozen=True, tag=116):
    """Messages `first` to `first + count - 1`; none: only how far the stream is."""

    bulk = True

    origin: WireName
    stream: Number
    topic: Topic
    mode: Mode
    first: Number  # with count = 0: the next one to come
    count: Count
    oldest: Number  # the first one that the sender could still send
    sent_at: float
    flags: Annotated[int, msgspec.Meta(ge=0, le=MOST_FLAGS)]
    payload: bytes  # a MessagePack array of `count` values, or BARE


class Repair(Data, frozen=True, tag=125):
    """The same, sent again: it does not wait behind what is sent for the first time."""

    bulk = False


class TreeData(Message, frozen=True, tag=117):
    """The same for all members in [start, upto) of the ring who are interested."""

    bulk = True

    origin: WireName
    stream: Number
    topic: Topic
    mode: Mode
    first: Number
    count: Count
    oldest: Number
    sent_at: float
    flags: Annotated[int, msgspec.Meta(ge=0, le=MOST_FLAGS)]
    start: WireVid
    upto: WireVid
    hops: Hops
    root: WireName  # who began this tree, in this zone
    payload: bytes


class Ack(Message, frozen=True, tag=118):
    """I have all up to `upto`, and lack these of what came after."""

    origin: WireName
    stream: Number
    receiver: Number
    upto: Number
    gaps: Ranges = ()
    relay: bool = False


class Nack(Message, frozen=True, tag=119):
    """I lack these; whoever has them may send them."""

    origin: WireName
    stream: Number
    gaps: Ranges
    relay: bool = False


class Failed(Message, frozen=True, tag=120):
    """You are no receiver of this stream (any more)."""

    origin: WireName
    stream: Number
    reason: Reason
    relay: bool = False


class Leave(Message, frozen=True, tag=121):
    """I do not want this stream any more."""

    origin: WireName
    stream: Number
    relay: bool = False
    moved: bool = False  # since somebody else sends it to me


class Knock(Message, frozen=True, tag=122):
    """Offer me your streams of this topic, please."""

    topic: Topic


class Recall(Message, frozen=True, tag=123):
    """Send me what came before; what is after `upto` I get as everybody does."""

    origin: WireName
    stream: Number
    serial: Number  # tells the requests of a node apart
    have: Number  # all of it up to this one is here; 0: where it begins is not known yet
    upto: Number
    replay: Annotated[int, msgspec.Meta(ge=NO_REPLAY, le=REPLAY_ALL)]
    amount: Annotated[float, msgspec.Meta(ge=0, le=1e18)]  # messages, or Unix seconds
    relay: bool = False


class Recalled(Message, frozen=True, tag=124):
    """A chunk of what came before; there may be more in this part, and more parts."""

    bulk = True

    origin: WireName
    stream: Number
    serial: Number
    start: Number  # what is asked for begins there: nothing before it is left
    until: Number  # where this part ends: then ask again
    first: Number
    count: Count  # none: nothing is left
    sent_at: float
    payload: bytes
    relay: bool = False
    bare: bool = False  # as BARE says it of Data


class Moving(Message, frozen=True, tag=126):
    """I change my zone or my address, or its publisher does: keep my place, or wait for me."""

    origin: WireName
    stream: Number
    relay: bool = False
    receiver: Number = 0  # of a gateway that goes, and was served by itself: it needs a place
    have: Number = 0  # all up to this one


AboutStream: TypeAlias = (
    Offer
    | Accept
    | Reject
    | Begin
    | Data
    | Repair
    | TreeData
    | Ack
    | Nack
    | Failed
    | Leave
    | Recall
    | Recalled
    | Moving
)
MESSAGES: tuple[type[Message], ...] = (*get_args(AboutStream), Knock)


def key_of(msg: AboutStream) -> StreamKey:
    """Which stream a message is about."""
    return msg.origin, msg.stream
