"""Signed datagrams: each names its sender, is believed for a short time, and counts once.

    magic 1 · version and flags 1 · fingerprint 32 | length 2 + certificate · stamp 8 · body ·
    Ed25519 signature 64, over the overlay's id and everything before

A signature proves the sender, not the addressee: a datagram for one node can be shown to
another within the allowed skew. What must not be, is sealed or names its addressee in its body.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.security.certificate import MAX_CERTIFICATE, Verifier, overlay_id_of
from overlay.security.plain import PLAIN_MAGIC
from overlay.security.replay import Freshness, ReplayGuard
from overlay.security.sealing import seal, unseal

if TYPE_CHECKING:
    from overlay.security.credentials import Credentials
    from overlay.security.identity import Identity

MAGIC = 0xD5
VERSION = 1
WITH_CERTIFICATE = 0x1
SEALED = 0x2
_FLAGS = WITH_CERTIFICATE | SEALED
_PURPOSE = b"zmq-overlay datagram 1\0"  # the key signs nothing else that starts like this
_STAMP = struct.Struct("!Q")
_LENGTH = struct.Struct("!H")
_FINGERPRINT = 32
SIGNATURE = 64
_MICROSECONDS = 1_000_000


class DatagramSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of what is believed."""

    # Seconds between the sender's clock and ours. Machines without NTP drift by seconds a day;
    # raise it where clocks are bad: replays stay refused, for as long as the windows reach.
    max_skew: float = 30.0
    max_bytes: int = 16_384  # of a whole datagram, sent or received
    window: int = 128  # stamps remembered for each sender, 1 KiB: how far one may be overtaken
    senders: int = 4_096  # about 5 MB when all windows are full


class DatagramSigner:
    """Signs what this node sends."""

    def __init__(self, credentials: Credentials, settings: DatagramSettings | None = None) -> None:
        self._settings = settings or DatagramSettings()
        self._key = credentials.signing_key()
        self._domain = _PURPOSE + overlay_id_of(credentials.authority_certificate)
        self._fingerprint = credentials.identity.fingerprint
        self._certificate = _LENGTH.pack(len(credentials.certificate)) + credentials.certificate
        self._last = -1

    def sign(
        self,
        body: bytes,
        now: float,
        with_certificate: bool = False,
        seal_for: Identity | None = None,
    ) -> bytes:
        """Return one datagram; with the certificate for receivers that may not know us yet."""
        flags = WITH_CERTIFICATE if with_certificate else 0
        sender = self._certificate if with_certificate else self._fingerprint
        if seal_for is not None:
            flags |= SEALED
            body = seal(body, seal_for.curve_key, self._domain + self._fingerprint)
        head = bytes((MAGIC, VERSION << 4 | flags)) + sender + _STAMP.pack(self._next_stamp(now))
        size = len(head) + len(body) + SIGNATURE
        if size > self._settings.max_bytes:
            raise LocalProtocolError(
                f"a datagram of {size} bytes: at most {self._settings.max_bytes}, use a link"
            )
        signed = head + body
        return signed + self._key.sign(self._domain + signed)

    def _next_stamp(self, now: float) -> int:
        """Strictly increasing, unless the clock was set back by more than anyone would believe."""
        stamp = int(now * _MICROSECONDS)
        if self._last - self._settings.max_skew * _MICROSECONDS <= stamp <= self._last:
            stamp = self._last + 1
        self._last = stamp
        return stamp


class DatagramVerifier:
    """Opens what arrives: checks stamp, certificate, replay and signature, in order of cost."""

    def __init__(
        self,
        verifier: Verifier,
        settings: DatagramSettings | None = None,
        *,
        curve_secret: bytes | None = None,
    ) -> None:
        self._verifier = verifier
        self._settings = settings or DatagramSettings()
        self._skew = int(self._settings.max_skew * _MICROSECONDS)
        self._domain = _PURPOSE + verifier.overlay_id
        self._curve_secret = curve_secret
        self.replays = ReplayGuard(senders=self._settings.senders, window=self._settings.window)

    def open(self, data: bytes, now: float) -> tuple[Identity, bytes]:
        """Return who sent it and the body; RemoteProtocolError says why it is not believed."""
        flags, sender, stamp, body_at = read_head(data, self._settings.max_bytes)
        here = int(now * _MICROSECONDS)
        if abs(here - stamp) > self._skew:
            raise _stale(stamp - here)
        if flags & WITH_CERTIFICATE:
            identity = self._verifier.verify(sender, now)
        else:
            known = self._verifier.known(sender, now)
            if known is None:
                raise RemoteProtocolError("datagram-unknown-sender", sender[:8].hex())
            identity = known
        freshness = self.replays.judge(identity.fingerprint, stamp)
        if freshness is Freshness.SEEN:
            raise RemoteProtocolError("datagram-replayed", f"{identity.name!a}")
        if freshness is Freshness.TOO_OLD:
            raise RemoteProtocolError("datagram-stale", f"{identity.name!a}, overtaken by many")
        try:
            Ed25519PublicKey.from_public_bytes(identity.signing_key).verify(
                data[-SIGNATURE:], self._domain + data[:-SIGNATURE]
            )
        except InvalidSignature as error:
            raise RemoteProtocolError("datagram-forged", f"in the name of {identity.name!a}") from (
                error
            )
        # Only now: a forgery must not use up a stamp of the one it imitates.
        self.replays.accept(identity.fingerprint, stamp, here - self._skew)
        body = data[body_at:-SIGNATURE]
        if flags & SEALED:
            if self._curve_secret is None:
                raise RemoteProtocolError("sealed-unreadable", "this node opens no sealed bodies")
            body = unseal(body, self._curve_secret, self._domain + identity.fingerprint)
        return identity, body


def read_head(data: bytes, max_bytes: int) -> tuple[int, bytes, int, int]:
    """Return flags, fingerprint or certificate, stamp, and where the body starts: all unproven."""
    size = len(data)
    if size > max_bytes:
        raise _malformed(f"{size} bytes, at most {max_bytes}")
    if data[:1] == bytes((PLAIN_MAGIC,)):
        raise RemoteProtocolError("datagram-wrong-overlay", "it is insecure, and ours is not")
    if size < 2 + _LENGTH.size + _STAMP.size + SIGNATURE:
        raise _malformed(f"{size} bytes")
    if data[0] != MAGIC or data[1] >> 4 != VERSION or data[1] & 0xF & ~_FLAGS:
        raise _malformed(f"starts with {data[:2].hex()}")
    flags = data[1] & _FLAGS
    if flags & WITH_CERTIFICATE:
        (length,) = _LENGTH.unpack_from(data, 2)
        if length > MAX_CERTIFICATE:
            raise _malformed(f"a certificate of {length} bytes")
        start = 2 + _LENGTH.size
    else:
        start, length = 2, _FINGERPRINT
    end = start + length
    if end + _STAMP.size + SIGNATURE > size:
        raise _malformed("cut off")
    (stamp,) = _STAMP.unpack_from(data, end)
    return flags, data[start:end], stamp, end + _STAMP.size


def _malformed(detail: str) -> RemoteProtocolError:
    return RemoteProtocolError("datagram-malformed", detail)


def _stale(ahead: int) -> RemoteProtocolError:
    seconds = abs(ahead) / _MICROSECONDS
    return RemoteProtocolError(
        "datagram-stale",
        f"its stamp is {seconds:.0f} s {'ahead of' if ahead > 0 else 'behind'} our clock: "
        "an old datagram, or clocks to be set",
    )
