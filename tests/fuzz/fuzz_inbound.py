"""The driver's inbound path: whatever peers send and ZeroMQ reports, a friend is still heard."""

from __future__ import annotations

import atheris

with atheris.instrument_imports(include=["overlay", "protocols", "tests"]):
    from typing import Any

    import msgspec
    import zmq

    from overlay.limits import Limits
    from overlay.net.config import NetSettings
    from overlay.wire.frames import FRAMEWORK_SCOPE, Goodbye, Piece, PieceStart
    from protocols.echo.messages import EchoReply, EchoRequest
    from tests.fuzz.running import chunks, fuzz, joined
    from tests.unit.net.router import Desk, hello

LIMITS = Limits(frame_bytes=4096, batch_messages=8, nesting=6, string_bytes=64, payload_inline=50)
NET = NetSettings(peer_rate=20, peers=4, tick_bytes=8192)
EVENTS = (
    zmq.EVENT_ACCEPTED,
    zmq.EVENT_DISCONNECTED,
    zmq.EVENT_HANDSHAKE_SUCCEEDED,
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL,
)
FRIEND: dict[str, Any] = {"user": "cc" * 32, "fd": 100}
ASK = EchoRequest(1, b"alive?")


def head(*messages: object, scope: str = "") -> bytes:
    """A frame by hand."""
    return msgspec.msgpack.encode([1, 0.0, [[scope, messages]], []])


def read(data: bytes) -> None:
    """Each chunk is an event, or a message: who sends it, then its parts."""
    desk = Desk(net=NET, limits=LIMITS)
    desk.say_hello("friend", b"friend", **FRIEND)
    for now, chunk in enumerate(chunks(data)):
        if len(chunk) < 2:
            continue
        who, what, rest = chunk[0], chunk[1], chunk[2:]
        if who >= 0xF0:
            desk.happens((EVENTS[who % len(EVENTS)], what % 8))
        else:
            user = ("", "aa" * 32, "bb" * 32)[(who >> 3) % 3]
            parts = chunks(rest) if what & 1 else [rest]
            desk.router.put(bytes([who & 7]), parts or [b""], user=user, fd=who & 7)
        if who & 1:
            desk.inbound.drain(now * 0.05)
    while desk.inbound.drain(1000.0):
        pass
    desk.delivered.clear()
    desk.router.put(b"friend", [head(ASK)], **FRIEND)
    desk.inbound.drain(2000.0)
    assert desk.delivered == [("friend", "", ASK)], desk.delivered
    assert len(desk.inbound.sessions) <= NET.peers


def seeds() -> list[bytes]:
    """A life of a session, whole and in parts."""
    start = PieceStart("", 6, msgspec.msgpack.encode(EchoRequest(2, b"")))
    said = b"\x09\x00" + msgspec.msgpack.encode(hello("eve"))
    attached = msgspec.msgpack.encode([1, 0.0, [["", [EchoRequest(1, b"")]]], [0]])
    life = [
        b"\xf0\x01",
        b"\xf2\x01",
        said,
        b"\x09\x00" + head(ASK, EchoReply(3, b"x"), [9999]),
        b"\x09\x01" + joined(attached, b"payload"),
        b"\x09\x00" + head(start, Piece(b"abc"), Piece(b"def"), scope=FRAMEWORK_SCOPE),
        b"\x09\x00" + head(Goodbye(idle=False), scope=FRAMEWORK_SCOPE),
        b"\x11\x00" + head(ASK),
        b"\xf1\x01",
    ]
    return [joined(*life), joined(said, said), *(joined(said, one) for one in life)]


if __name__ == "__main__":
    fuzz("inbound", read, seeds())
