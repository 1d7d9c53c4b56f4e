"""One message in one datagram: `[version, scope, message]`, inside a signed envelope.

Introductions (`FRAMEWORK_SCOPE`) are as long as a certificate, whatever `limits.datagram_bytes`
says; their types bound them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.limits import Limits
from overlay.protocol import Message, Scope
from overlay.wire.frames import (
    FRAMEWORK_SCOPE,
    OLDEST_VERSION,
    UNDECODABLE,
    VERSION,
    ShortText,
)
from overlay.wire.reader import BatchReader

_ENVELOPE = msgspec.msgpack.Decoder(tuple[int, ShortText, msgspec.Raw])
_ENCODER = msgspec.msgpack.Encoder()


def write_datagram(scope: Scope, msg: Message, limits: Limits) -> bytes:
    """Encode; a datagram is never split, so a message that is too large is the caller's error."""
    body = _ENCODER.encode((VERSION, scope, msg))
    if len(body) > limits.datagram_bytes and scope != FRAMEWORK_SCOPE:
        raise LocalProtocolError(
            f"{type(msg).__name__} takes {len(body)} bytes as a datagram;"
            f" limits.datagram_bytes is {limits.datagram_bytes}"
        )
    return body


def read_datagram(body: bytes, reader: BatchReader) -> tuple[Scope, Any]:
    """Decode what the envelope held."""
    try:
        version, scope, raw = _ENVELOPE.decode(body)
    except UNDECODABLE as error:
        raise RemoteProtocolError("malformed-datagram", str(error)) from None
    if not OLDEST_VERSION <= version <= VERSION:
        raise RemoteProtocolError("wrong-version", str(version))
    if len(body) > reader.limits.datagram_bytes and scope != FRAMEWORK_SCOPE:
        raise RemoteProtocolError("datagram-too-large", f"{len(body)} bytes")
    return scope, reader.message(raw)
