"""A body that only one node can read: X25519 with a throw-away key, HKDF, ChaCha20-Poly1305.

The reader's static key is the CURVE key of its certificate; the derivation names its own
purpose, so it shares no key with CURVE. Sealing hides, it does not tell who sealed: the
signature around it does, and `context` ties the two together.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from overlay.errors import LocalProtocolError, RemoteProtocolError

_PURPOSE = b"zmq-overlay sealed body 1\0"
_KEY = 32
_TAG = 16
_NONCE = bytes(12)  # each key seals exactly one body

OVERHEAD = _KEY + _TAG


def seal(body: bytes, reader: bytes, context: bytes) -> bytes:
    """Seal for the owner of the CURVE public key `reader` (32 bytes)."""
    throwaway = X25519PrivateKey.generate()
    public = throwaway.public_key().public_bytes_raw()
    try:
        shared = throwaway.exchange(X25519PublicKey.from_public_bytes(reader))
    except ValueError as error:
        raise LocalProtocolError("the reader's CURVE key cannot be sealed for") from error
    return public + _cipher(shared, public, reader, context).encrypt(_NONCE, body, context)


def unseal(sealed: bytes, secret: bytes, context: bytes) -> bytes:
    """Open with the CURVE secret; RemoteProtocolError if it was not sealed for us like this."""
    if len(sealed) < OVERHEAD:
        raise RemoteProtocolError("sealed-malformed", f"{len(sealed)} bytes")
    mine = X25519PrivateKey.from_private_bytes(secret)
    public = sealed[:_KEY]
    try:
        shared = mine.exchange(X25519PublicKey.from_public_bytes(public))
        cipher = _cipher(shared, public, mine.public_key().public_bytes_raw(), context)
        return cipher.decrypt(_NONCE, sealed[_KEY:], context)
    except (ValueError, InvalidTag) as error:
        raise RemoteProtocolError("sealed-unreadable", "sealed for another, or changed") from error


def _cipher(shared: bytes, throwaway: bytes, reader: bytes, context: bytes) -> ChaCha20Poly1305:
    derivation = HKDF(SHA256(), _KEY, salt=throwaway + reader, info=_PURPOSE + context)
    return ChaCha20Poly1305(derivation.derive(shared))
