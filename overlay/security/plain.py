"""Datagrams of an insecure overlay: the name is a claim, nothing is signed, sealed or counted.

magic 1 · version 1 · length 1 + overlay · length 1 + name · length 4 of the body · body
"""

from __future__ import annotations

import math
import struct
from hashlib import sha256

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId, check_name
from overlay.security.identity import Identity
from overlay.security.rights import ALL_RIGHTS

PLAIN_MAGIC = 0xD4
PLAIN_VERSION = 1
SIGNED_MAGIC = b"\xd5"  # of `datagram.MAGIC`, which an insecure node does not import
MAX_PLAIN = 16_384  # bytes, as `DatagramSettings.max_bytes`
_LENGTH = struct.Struct("!I")


class PlainSigner:
    """Wraps bodies under this node's claimed name."""

    def __init__(self, name: NodeId, overlay: str, *, max_bytes: int = MAX_PLAIN) -> None:
        self._max_bytes = max_bytes
        self._head = bytes((PLAIN_MAGIC, PLAIN_VERSION)) + b"".join(
            bytes((len(word),)) + word
            for word in (check_name(overlay).encode(), check_name(name).encode())
        )

    def sign(
        self,
        body: bytes,
        now: float,
        with_certificate: bool = False,
        seal_for: Identity | None = None,
    ) -> bytes:
        """Return one datagram; whoever is on the network can read and imitate it."""
        size = len(self._head) + _LENGTH.size + len(body)
        if size > self._max_bytes:
            raise LocalProtocolError(f"a datagram of {size} bytes: at most {self._max_bytes}")
        return self._head + _LENGTH.pack(len(body)) + body


class PlainVerifier:
    """Unwraps what arrives; checks its form and the overlay's name, believes the rest."""

    def __init__(self, overlay: str, *, max_bytes: int = MAX_PLAIN) -> None:
        self._overlay = check_name(overlay)
        self._max_bytes = max_bytes

    def open(self, data: bytes, now: float) -> tuple[Identity, bytes]:
        """Return the claimed sender, with all rights, and the body."""
        if len(data) > self._max_bytes:
            raise _malformed(f"{len(data)} bytes, at most {self._max_bytes}")
        if data[:1] == SIGNED_MAGIC:
            raise RemoteProtocolError("datagram-wrong-overlay", "it is secure, and ours is not")
        overlay, name, body = read_plain(data)
        if overlay != self._overlay:
            raise RemoteProtocolError("datagram-wrong-overlay", f"{overlay!a}")
        return claimed_identity(name, overlay), body


def read_plain(data: bytes) -> tuple[str, NodeId, bytes]:
    """The overlay and the name that are claimed, and the body."""
    if data[:2] != bytes((PLAIN_MAGIC, PLAIN_VERSION)):
        raise _malformed(f"starts with {data[:2].hex()}: no insecure node sent it")
    overlay, at = _read_word(data, 2)
    name, at = _read_word(data, at)
    if len(data) < at + _LENGTH.size:
        raise _malformed("cut off")
    (length,) = _LENGTH.unpack_from(data, at)
    body = data[at + _LENGTH.size :]
    if len(body) != length:
        raise _malformed(f"a body of {len(body)} bytes that should have {length}")
    return overlay, name, body


def claimed_identity(name: NodeId, overlay: str) -> Identity:
    """The identity of a node that has proven nothing, in an overlay that asks for no proof."""
    return Identity(
        name=name,
        overlay=overlay,
        rights=ALL_RIGHTS,
        curve_key=b"",
        signing_key=b"",
        serial=0,
        not_before=-math.inf,
        not_after=math.inf,
        fingerprint=sha256(f"{overlay}/{name}".encode()).digest(),
    )


def _read_word(data: bytes, at: int) -> tuple[str, int]:
    if at >= len(data):
        raise _malformed("cut off")
    end = at + 1 + data[at]
    try:
        return check_name(data[at + 1 : end].decode()), end
    except (UnicodeDecodeError, LocalProtocolError) as error:
        raise _malformed("a name that is none") from error


def _malformed(detail: str) -> RemoteProtocolError:
    return RemoteProtocolError("datagram-malformed", detail)
