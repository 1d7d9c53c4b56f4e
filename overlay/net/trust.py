"""Whom a node believes: by certificates, or in an insecure overlay everybody."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from overlay.errors import LocalProtocolError, RemoteProtocolError, SecurityError
from overlay.ids import NodeId, check_name
from overlay.logs import about
from overlay.security.identity import Identity
from overlay.security.interface import OpensDatagrams, SignsDatagrams

if TYPE_CHECKING:
    from overlay.security.credentials import Credentials

log = logging.getLogger("overlay.net")

LARGEST_DATAGRAM = 65_507  # UDP's own bound; `limits.datagram_bytes` keeps bodies below it


class Trust(Protocol):
    """What the driver asks of a node's security."""

    certificate: bytes  # DER, empty when insecure
    curve: tuple[bytes, bytes] | None  # own public and secret key, 32 bytes each
    signer: SignsDatagrams
    opener: OpensDatagrams

    def identify(
        self, certificate: bytes, name: NodeId | None, curve_key: bytes | None, now: float
    ) -> Identity:
        """Return who it is; RemoteProtocolError when it is not who it claims to be."""

    def admits(self, curve_key: bytes) -> bool:
        """May this key connect at all?"""

    def refresh(self) -> None:
        """Look for a newer revocation list."""


class CertifiedTrust:
    """Believes what the overlay's authority signed."""

    def __init__(self, credentials: Credentials) -> None:
        from overlay.security.datagram import DatagramSettings, DatagramSigner, DatagramVerifier

        self._credentials = credentials
        self._complaint = ""  # about the revocation list, said once
        self._verifier = credentials.verifier()
        self.certificate = credentials.certificate
        self.curve: tuple[bytes, bytes] | None = (
            credentials.curve_public,
            credentials.curve_secret,
        )
        settings = DatagramSettings(max_bytes=LARGEST_DATAGRAM)
        self.signer: SignsDatagrams = DatagramSigner(credentials, settings)
        self.opener: OpensDatagrams = DatagramVerifier(
            self._verifier, settings, curve_secret=credentials.curve_secret
        )

    def identify(
        self, certificate: bytes, name: NodeId | None, curve_key: bytes | None, now: float
    ) -> Identity:
        """Check the certificate, and that name and key are the certified ones."""
        if not certificate:
            raise RemoteProtocolError("certificate-missing", "the peer is insecure")
        return self._verifier.verify(certificate, now, name=name, curve_key=curve_key)

    def admits(self, curve_key: bytes) -> bool:
        """Any key may knock: only Hello brings the certificate that vouches for it."""
        return True

    def refresh(self) -> None:
        """Take a revocation list that was written since; a damaged one changes nothing."""
        from overlay.security.credentials import newest_revocations

        try:
            self._verifier.reload_revocations(newest_revocations(self._credentials))
        except SecurityError as error:  # being copied, or damaged: the last good one stays
            if str(error) != self._complaint:
                log.warning("%s", error, extra=about("revocations-unread", "net"))
            self._complaint = str(error)
        else:
            self._complaint = ""


class OpenTrust:
    """Believes every claim; the user wrote `--insecure`."""

    def __init__(self, name: NodeId, overlay: str) -> None:
        from overlay.security.plain import PlainSigner, PlainVerifier, claimed_identity

        self._overlay = overlay
        self._claimed = claimed_identity
        self.certificate = b""
        self.curve: tuple[bytes, bytes] | None = None
        self.signer: SignsDatagrams = PlainSigner(name, overlay, max_bytes=LARGEST_DATAGRAM)
        self.opener: OpensDatagrams = PlainVerifier(overlay, max_bytes=LARGEST_DATAGRAM)

    def identify(
        self, certificate: bytes, name: NodeId | None, curve_key: bytes | None, now: float
    ) -> Identity:
        """Take the claim, if it is a name at all."""
        try:
            return self._claimed(check_name(name or ""), self._overlay)
        except LocalProtocolError as error:
            raise RemoteProtocolError("bad-name", str(error)) from None

    def admits(self, curve_key: bytes) -> bool:
        """Nobody asks: without CURVE there is no ZAP."""
        return True

    def refresh(self) -> None:
        """There is nothing to revoke."""
