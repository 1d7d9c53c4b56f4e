"""What the test vectors are made of: one example for each message that docs/wire.md explains."""

from __future__ import annotations

from typing import Any

from overlay.protocol import Message
from overlay.wire.frames import (
    Goodbye,
    Hello,
    IAm,
    Mark,
    Piece,
    PieceStart,
    Refusal,
    Welcome,
    WhoIs,
)
from protocols.membership import messages as membership
from protocols.membership.attributes import Attribute
from protocols.membership.records import Record, State
from protocols.topics import messages as topics
from protocols.topics.modes import Mode
from protocols.topology import messages as topology

LIFE = bytes(range(8))
ENDPOINT = "tcp://127.0.0.1:7400"
BORN = 1_700_000_000_000
ADA = Record("ada", BORN, State.ALIVE, 12345, BORN, (ENDPOINT,))
BOB = Record("bob", BORN + 1, State.SUSPECT, 67890, BORN, (), ("ada",), True)
GPU = Attribute("ada", "gpu", BORN << 20, 4)
GONE = Attribute("bob", "topics", (BORN << 20) + 7)
STREAM = ("ada", 4711)
TOPIC = "sensors/7/temperature"
TWO_MESSAGES = bytes.fromhex("920181a163cb4035800000000000")  # [1, {"c": 21.5}]

FRAMEWORK: tuple[Message, ...] = (
    WhoIs(LIFE, bytes(4)),
    IAm(LIFE, "ada", b""),
    Hello(1, 1, "overlay", "ada", LIFE, (ENDPOINT,)),
    Welcome(1, "bob", LIFE),
    Refusal("wrong-overlay", "this is 'lab', not 'overlay'"),
    PieceStart("", 5, b"\x93\x10\x07\xc4\x00", 1),
    Piece(b"hello", 1),
    Goodbye(idle=True),
    Mark(4_194_304),
)
MEMBERSHIP: tuple[Message, ...] = (
    membership.Ping(7, 99, (ADA,), (GPU,)),
    membership.Ack(7, 12345, 99),
    membership.PingRequest(8, "bob"),
    membership.IndirectAck(8, True, 67890),
    membership.Gossip((BOB,), (GONE,)),
    membership.Join(12345, BORN, BORN, (ENDPOINT,), (GPU,)),
    membership.JoinReply(12345, 0, 1, 0, (ADA, BOB), (GPU, GONE)),
    membership.JoinRefused(12345, "zone 'lab' is full: join another one"),
    membership.Sync(1, bytes(512)),
    membership.SyncSummary(1, (3, 60), (membership.Summary("bob", BORN + 1, 67890, 1, 5),)),
    membership.SyncRecords(1, (ADA,), (GPU,), ("bob",)),
)
TOPOLOGY: tuple[Message, ...] = (
    topology.LinkRequest(1),
    topology.LinkAccept(0),
    topology.LinkRefused(),
    topology.LinkDropped(),
    topology.LinkCheck(3),
)
TOPICS: tuple[Message, ...] = (
    topics.Offer(*STREAM, TOPIC, Mode.ACK, 1, 0, 1 << 20, 0),
    topics.Accept(*STREAM, 42, 0),
    topics.Reject(*STREAM, "no interest"),
    topics.Begin(*STREAM, 1),
    topics.Data(*STREAM, TOPIC, Mode.ACK, 1, 2, 1, 1_700_000_000.25, 0, TWO_MESSAGES),
    topics.Data(*STREAM, TOPIC, Mode.ACK, 3, 0, 1, 0.0, topics.ASK | topics.LAST, b""),
    topics.Repair(*STREAM, TOPIC, Mode.ACK, 3, 1, 1, 1_700_000_000.5, topics.BARE, b"bytes"),
    topics.Ack(*STREAM, 42, 1, ((2, 2),)),
    topics.Failed(*STREAM, "silent"),
    topics.Leave(*STREAM),
    topics.Knock(TOPIC),
)  # fmt: skip
FRAMES: tuple[tuple[str, Any], ...] = (
    ("two scopes", [("lab", [membership.Ack(7, 12345, 99)]), ("", [topics.Knock(TOPIC)])]),
    ("goodbye", [("#", [Goodbye(idle=False)])]),
)  # fmt: skip
