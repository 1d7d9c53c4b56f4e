"""Node certificates: what they hold, and the verifier that decides whom to believe.

X.509 v3, signed by the overlay's P-256 authority, with an Ed25519 key. The name is a URI
(`overlay://<overlay>/<name>`); two private extensions hold the CURVE key and the rights.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote, unquote

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives._serialization import Encoding  # without ssh and pkcs12
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import NameOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from overlay.errors import LocalProtocolError, RemoteProtocolError, SecurityError
from overlay.ids import NodeId, check_name
from overlay.security.identity import Identity
from overlay.security.revocation import read_revocations
from overlay.security.rights import Rights

# Arcs below 2.25 belong to whoever drew the UUID; these are append-only, as wire tags are.
_ARC = "2.25.199821544370112739066571409824837710021"
CURVE_KEY_OID = x509.ObjectIdentifier(f"{_ARC}.1")
RIGHTS_OID = x509.ObjectIdentifier(f"{_ARC}.2")

MAX_CERTIFICATE = 4096  # bytes; the usual one has about 450
KEY_BYTES = 32
REMEMBERED = 4096  # verified certificates, about 1 KB each

_UNPARSABLE = (
    ValueError,
    TypeError,
    CryptographyDeprecationWarning,
    UnsupportedAlgorithm,
    LocalProtocolError,
    msgspec.DecodeError,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.ExtensionNotFound,
    x509.UnsupportedGeneralNameType,
)


class _Claims(NamedTuple):
    certificate: x509.Certificate
    identity: Identity


def name_to_uri(overlay: str, name: NodeId) -> str:
    """Write a node's name as the URI that its certificate carries."""
    return f"overlay://{quote(overlay, safe='')}/{quote(name, safe='')}"


def name_from_uri(uri: str) -> tuple[str, NodeId]:
    """Read overlay and name; ValueError or LocalProtocolError if there is another spelling."""
    scheme, _, rest = uri.partition("://")
    overlay, _, name = (unquote(part, errors="strict") for part in rest.partition("/"))
    if scheme != "overlay" or name_to_uri(overlay, name) != uri:
        raise ValueError("the certificate's URI does not name a node")
    return check_name(overlay), check_name(name)


def fingerprint_of(certificate: bytes) -> bytes:
    """SHA-256 of a certificate in DER."""
    return sha256(certificate).digest()


def overlay_id_of(authority_certificate: bytes) -> bytes:
    """16 bytes that tell overlays apart, also those of one name."""
    return sha256(authority_certificate).digest()[:16]


def load_authority_certificate(data: bytes) -> x509.Certificate:
    """Load the overlay's CA certificate, PEM or DER; SecurityError if it is none."""
    try:
        if data.startswith(b"-----"):
            return x509.load_pem_x509_certificate(data)
        return x509.load_der_x509_certificate(data)
    except ValueError as error:
        raise SecurityError("the overlay's CA certificate is damaged: copy it again") from error


def overlay_name_of(authority: x509.Certificate) -> str:
    """Read the overlay's name from its CA certificate."""
    try:
        (attribute,) = authority.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError as error:
        raise SecurityError("the CA certificate names no overlay: it is not one of ours") from error
    return str(attribute.value)


def to_der(certificate: x509.Certificate) -> bytes:
    """Encode for the wire."""
    return certificate.public_bytes(Encoding.DER)


def to_pem(certificate: bytes) -> bytes:
    """Encode a certificate in DER as text, for a file."""
    return x509.load_der_x509_certificate(certificate).public_bytes(Encoding.PEM)


def read_identity(certificate: bytes) -> Identity:
    """Read what a certificate claims, without believing it; RemoteProtocolError if unreadable."""
    return _read_claims(certificate).identity


class Verifier:
    """Tells who a certificate proves its owner to be, by one authority's word.

    Verified certificates are remembered by their fingerprint; expiry and revocation are
    checked again each time.
    """

    def __init__(
        self, authority_certificate: bytes, revocations: bytes, *, remembered: int = REMEMBERED
    ) -> None:
        self._authority = load_authority_certificate(authority_certificate)
        self._policy = PolicyBuilder().store(Store([self._authority])).max_chain_depth(0)
        self._revocations = read_revocations(revocations, self._authority)
        self._remembered: OrderedDict[bytes, Identity] = OrderedDict()
        self._limit = remembered
        self.overlay = overlay_name_of(self._authority)
        self.overlay_id = overlay_id_of(to_der(self._authority))
        self.forgotten = 0  # verified certificates that the bound pushed out

    @property
    def revocation_number(self) -> int:
        """Which revocation list is in force."""
        return self._revocations.number

    def reload_revocations(self, revocations: bytes) -> bool:
        """Take a newer list and return True; an older one changes nothing.

        SecurityError if it is not the authority's: the present one stays in force.
        """
        candidate = read_revocations(revocations, self._authority)
        if candidate.number <= self._revocations.number:
            return False
        self._revocations = candidate
        return True

    def verify(
        self,
        certificate: bytes,
        now: float,
        *,
        name: NodeId | None = None,
        curve_key: bytes | None = None,
    ) -> Identity:
        """Return the identity that the certificate (DER) proves at `now` (Unix seconds).

        With `name` or `curve_key` (what the peer claims, what its link uses) these must be the
        certificate's too. Otherwise RemoteProtocolError says why not.
        """
        if len(certificate) > MAX_CERTIFICATE:
            raise RemoteProtocolError("certificate-malformed", f"{len(certificate)} bytes")
        fingerprint = fingerprint_of(certificate)
        identity = self._remembered.get(fingerprint)
        if identity is None:
            identity = self._believe(certificate, now)
            self._remember(identity)
        else:
            self._remembered.move_to_end(fingerprint)
        self._check_current(identity, now)
        if name is not None and name != identity.name:
            raise RemoteProtocolError(
                "name-forged", f"{identity.name!a} claims to be {name[:64]!a}"
            )
        if curve_key is not None and curve_key != identity.curve_key:
            raise RemoteProtocolError(
                "key-mismatch", f"the link's key is not the one certified for {identity.name!a}"
            )
        return identity

    def known(self, fingerprint: bytes, now: float) -> Identity | None:
        """Return an identity verified before, if it still holds; None if it was never seen."""
        identity = self._remembered.get(fingerprint)
        if identity is None:
            return None
        self._remembered.move_to_end(fingerprint)
        self._check_current(identity, now)
        return identity

    def _believe(self, certificate: bytes, now: float) -> Identity:
        parsed, identity = _read_claims(certificate)
        if identity.overlay != self.overlay:
            # A stranger's word so far, but it only decides which refusal helps people more.
            raise RemoteProtocolError(
                "certificate-wrong-overlay", f"{identity.overlay!a}, not {self.overlay!a}"
            )
        # Whether we trust it and whether it is current are two questions: the chain is judged
        # at a time when the leaf is valid, so that an expired forgery counts as a forgery.
        judged_at = min(max(now, identity.not_before), identity.not_after)
        policy = self._policy.time(datetime.fromtimestamp(judged_at, UTC))
        try:
            policy.build_client_verifier().verify(parsed, [])
        except VerificationError as error:
            raise RemoteProtocolError(
                "certificate-untrusted", f"not signed by the authority of {self.overlay!a}"
            ) from error
        return identity

    def _check_current(self, identity: Identity, now: float) -> None:
        if identity.serial in self._revocations.serials:
            raise RemoteProtocolError("certificate-revoked", f"{identity.name!a}")
        if now > identity.not_after:
            raise RemoteProtocolError(
                "certificate-expired", f"{identity.name!a}, {now - identity.not_after:.0f} s ago"
            )
        if now < identity.not_before:
            raise RemoteProtocolError(
                "certificate-not-yet-valid",
                f"{identity.name!a}, for {identity.not_before - now:.0f} s more: check the clocks",
            )

    def _remember(self, identity: Identity) -> None:
        self._remembered[identity.fingerprint] = identity
        if len(self._remembered) > self._limit:
            self._remembered.popitem(last=False)
            self.forgotten += 1


def _read_claims(certificate: bytes) -> _Claims:
    try:
        with warnings.catch_warnings():
            # What the library only frowns upon (a serial of 0) our authority never makes, and a
            # stranger must not be able to write to our stderr.
            warnings.simplefilter("error", CryptographyDeprecationWarning)
            parsed = x509.load_der_x509_certificate(certificate)
        if not certificate.endswith(b"\0" + parsed.signature):
            # The one byte that neither DER nor the signature pins: how many of the last bits
            # are unused. A fingerprint must not have several spellings.
            raise ValueError("its signature has unused bits")
        extensions = parsed.extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        (uri,) = names.get_values_for_type(x509.UniformResourceIdentifier)
        overlay, name = name_from_uri(uri)
        key = parsed.public_key()
        if not isinstance(key, Ed25519PublicKey):
            raise TypeError("the certificate's key is not an Ed25519 one")
        curve_key = _private_extension(extensions, CURVE_KEY_OID)
        if len(curve_key) != KEY_BYTES:
            raise ValueError(f"its CURVE key has {len(curve_key)} bytes")
        identity = Identity(
            name=name,
            overlay=overlay,
            rights=msgspec.msgpack.decode(_private_extension(extensions, RIGHTS_OID), type=Rights),
            curve_key=curve_key,
            signing_key=key.public_bytes_raw(),
            serial=parsed.serial_number,
            not_before=parsed.not_valid_before_utc.timestamp(),
            not_after=parsed.not_valid_after_utc.timestamp(),
            fingerprint=fingerprint_of(certificate),
        )
    except _UNPARSABLE as error:
        raise RemoteProtocolError("certificate-malformed", str(error)[:120]) from error
    return _Claims(parsed, identity)


def _private_extension(extensions: x509.Extensions, oid: x509.ObjectIdentifier) -> bytes:
    value = extensions.get_extension_for_oid(oid).value
    if not isinstance(value, x509.UnrecognizedExtension):
        raise TypeError(f"extension {oid.dotted_string} is not a private one")
    return value.value
