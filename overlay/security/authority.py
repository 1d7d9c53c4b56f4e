"""The overlay's authority: makes node certificates and takes them back; no node needs it to run."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.x509.oid import NameOID

from overlay.errors import LocalProtocolError, SecurityError
from overlay.ids import NodeId, check_name
from overlay.security.certificate import (
    CURVE_KEY_OID,
    MAX_CERTIFICATE,
    RIGHTS_OID,
    fingerprint_of,
    load_authority_certificate,
    name_to_uri,
    overlay_name_of,
    to_der,
)
from overlay.security.credentials import Credentials
from overlay.security.files import (
    locked,
    make_private_folder,
    read_private,
    read_public,
    write_private,
    write_public,
)
from overlay.security.folders import (
    AUTHORITY,
    AUTHORITY_KEY_FILE,
    CERTIFICATE_FILE,
    LEDGER_FILE,
    REVOKED_FILE,
    first_commands,
)

if TYPE_CHECKING:
    from pathlib import Path

    from overlay.security.rights import Rights

AUTHORITY_DAYS = 3650
BACKDATED = timedelta(hours=24)  # lab machines whose clocks are late can still join
KEPT_AFTER_EXPIRY = 30 * 86_400.0  # seconds that the list still names an expired certificate


class Issued(msgspec.Struct, frozen=True):
    """One line of the authority's ledger."""

    serial: str  # hexadecimal
    name: NodeId
    fingerprint: str  # hexadecimal SHA-256
    issued_at: float  # Unix seconds
    not_after: float
    revoked_at: float | None = None

    def state(self, now: float) -> str:
        """`valid`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if now > self.not_after else "valid"


class _Ledger(msgspec.Struct, frozen=True):
    revision: int = 0  # the number of the newest revocation list
    issued: tuple[Issued, ...] = ()


class Authority:
    """The holder of the overlay's CA key, in `<keys folder>/authority/`."""

    def __init__(
        self, folder: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate
    ) -> None:
        self._home = folder / AUTHORITY
        self._key = key
        self._certificate = certificate
        self.overlay = overlay_name_of(certificate)

    def __repr__(self) -> str:
        return f"<Authority of {self.overlay!r} in {self._home}, key not shown>"

    @classmethod
    def create(
        cls,
        folder: Path,
        overlay: str,
        *,
        replace: bool = False,
        now: float | None = None,
    ) -> Authority:
        """Make a new authority; SecurityError if there is one already and not `replace`."""
        check_name(overlay)
        home = folder / AUTHORITY
        make_private_folder(home)
        with locked(home):
            if (home / AUTHORITY_KEY_FILE).exists() and not replace:
                raise SecurityError(
                    f"{home} holds an authority already: `--force` replaces it, and every "
                    "certificate that it issued is then worthless"
                )
            key = ec.generate_private_key(ec.SECP256R1())
            certificate = _authority_certificate(key, overlay, _moment(now))
            authority = cls(folder, key, certificate)
            authority._write_ledger(_Ledger())
            pem = certificate.public_bytes(serialization.Encoding.PEM)
            write_public(home / CERTIFICATE_FILE, pem, replace=True)
            authority._write_revocations(_Ledger(), _moment(now))
            write_private(home / AUTHORITY_KEY_FILE, _key_to_pem(key), replace=True)
        return authority

    @classmethod
    def load(cls, folder: Path) -> Authority:
        """Load the authority of a keys folder; SecurityError says what to do if it cannot."""
        home = folder / AUTHORITY
        try:
            pem = read_private(home / AUTHORITY_KEY_FILE)
            certificate = load_authority_certificate(read_public(home / CERTIFICATE_FILE))
        except FileNotFoundError as error:
            raise SecurityError(
                f"no authority in {folder}: run " + first_commands(folder)
            ) from error
        except OSError as error:
            raise SecurityError(f"{error.filename} cannot be read: {error.strerror}") from error
        try:
            key = serialization.load_pem_private_key(pem, password=None)
        except (ValueError, TypeError) as error:
            raise SecurityError(
                f"{home / AUTHORITY_KEY_FILE} is damaged: restore it from a backup"
            ) from error
        if not isinstance(key, ec.EllipticCurvePrivateKey) or (
            key.public_key() != certificate.public_key()
        ):
            raise SecurityError(f"key and certificate in {home} do not belong together")
        return cls(folder, key, certificate)

    @property
    def certificate(self) -> bytes:
        """The CA certificate, DER."""
        return to_der(self._certificate)

    @property
    def not_after(self) -> float:
        """When the authority itself ends, Unix seconds."""
        return self._certificate.not_valid_after_utc.timestamp()

    @property
    def revocations_file(self) -> Path:
        """The file to copy to other machines after a revocation."""
        return self._home / REVOKED_FILE

    def revocations(self) -> bytes:
        """The signed revocation list, PEM."""
        return read_public(self.revocations_file)

    def issued(self) -> tuple[Issued, ...]:
        """Every certificate that this authority made, oldest first."""
        return self._read_ledger().issued

    def issue(
        self, name: NodeId, rights: Rights, days: float = 365, *, now: float | None = None
    ) -> Credentials:
        """Make new keys and a certificate for `name`; earlier ones stay valid until revoked."""
        if check_name(name) == AUTHORITY:
            raise LocalProtocolError(f"no node can be called {AUTHORITY!r}: that folder is taken")
        if not 0 < days <= AUTHORITY_DAYS:
            raise LocalProtocolError(f"{days} days: give more than 0 and at most {AUTHORITY_DAYS}")
        moment = _moment(now)
        end = min(moment + timedelta(days=days), self._certificate.not_valid_after_utc)
        if end <= moment:
            raise SecurityError("the authority has expired: make a new one with --force")
        signing, curve = Ed25519PrivateKey.generate(), X25519PrivateKey.generate()
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self._certificate.subject)
            .public_key(signing.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(max(moment - BACKDATED, self._certificate.not_valid_before_utc))
            .not_valid_after(end)
            .add_extension(
                x509.SubjectAlternativeName(
                    [x509.UniformResourceIdentifier(name_to_uri(self.overlay, name))]
                ),
                critical=True,  # RFC 5280 asks for it where the subject is empty
            )
            .add_extension(self._authority_key_identifier(), critical=False)
            .add_extension(
                x509.UnrecognizedExtension(CURVE_KEY_OID, curve.public_key().public_bytes_raw()),
                critical=False,
            )
            .add_extension(
                x509.UnrecognizedExtension(RIGHTS_OID, msgspec.msgpack.encode(rights)),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        der = to_der(certificate)
        if len(der) > MAX_CERTIFICATE:
            raise LocalProtocolError(
                f"a certificate of {len(der)} bytes, at most {MAX_CERTIFICATE}: "
                "give fewer or shorter zones and patterns"
            )
        entry = Issued(
            serial=f"{certificate.serial_number:x}",
            name=name,
            fingerprint=fingerprint_of(der).hex(),
            issued_at=moment.timestamp(),
            not_after=certificate.not_valid_after_utc.timestamp(),
        )
        with locked(self._home):
            # First into the ledger: a certificate that is not in it could not be revoked.
            ledger = self._read_ledger()
            self._write_ledger(_Ledger(ledger.revision, (*ledger.issued, entry)))
        return Credentials(
            authority_certificate=self.certificate,
            certificate=der,
            signing_secret=signing.private_bytes_raw(),
            curve_secret=curve.private_bytes_raw(),
            revocations=self.revocations(),
        )

    def revoke(self, name_or_serial: str, *, now: float | None = None) -> tuple[Issued, ...]:
        """Revoke all certificates of a name, or the one with that serial (hexadecimal).

        Returns them, also those revoked before. SecurityError if there is none.
        """
        moment = _moment(now)
        with locked(self._home):
            ledger = self._read_ledger()
            chosen = [entry for entry in ledger.issued if entry.name == name_or_serial] or [
                entry for entry in ledger.issued if entry.serial == name_or_serial.lower()
            ]
            if not chosen:
                raise SecurityError(
                    f"no certificate of {name_or_serial!r} was issued here: "
                    "`overlay keys list` shows all"
                )
            serials = {entry.serial for entry in chosen}
            issued = tuple(
                msgspec.structs.replace(entry, revoked_at=moment.timestamp())
                if entry.serial in serials and entry.revoked_at is None
                else entry
                for entry in ledger.issued
            )
            # First the ledger: each list is made from it, so a crash in between loses nothing
            # that the next revocation (or this one, repeated) would not publish.
            ledger = _Ledger(ledger.revision + 1, issued)
            self._write_ledger(ledger)
            self._write_revocations(ledger, moment)
        return tuple(entry for entry in issued if entry.serial in serials)

    def _authority_key_identifier(self) -> x509.AuthorityKeyIdentifier:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())

    def _read_ledger(self) -> _Ledger:
        path = self._home / LEDGER_FILE
        try:
            return msgspec.json.decode(read_public(path), type=_Ledger)
        except (OSError, msgspec.DecodeError) as error:
            raise SecurityError(f"{path} cannot be read: restore it from a backup") from error

    def _write_ledger(self, ledger: _Ledger) -> None:
        text = msgspec.json.format(msgspec.json.encode(ledger), indent=1)
        write_private(self._home / LEDGER_FILE, text + b"\n", replace=True)

    def _write_revocations(self, ledger: _Ledger, moment: datetime) -> None:
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self._certificate.subject)
            .last_update(moment)
            # A list holds until a newer one comes: an overlay must not stop because nobody
            # renewed a list in which nothing changed.
            .next_update(max(self._certificate.not_valid_after_utc, moment + BACKDATED))
            .add_extension(x509.CRLNumber(ledger.revision), critical=False)
            .add_extension(self._authority_key_identifier(), critical=False)
        )
        for entry in ledger.issued:
            if entry.revoked_at is None:
                continue
            if moment.timestamp() > entry.not_after + KEPT_AFTER_EXPIRY:
                continue  # refused for its age anyway; the list stays short
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder()
                .serial_number(int(entry.serial, 16))
                .revocation_date(datetime.fromtimestamp(entry.revoked_at, UTC))
                .build()
            )
        signed = builder.sign(self._key, hashes.SHA256())
        pem = signed.public_bytes(serialization.Encoding.PEM)
        write_public(self.revocations_file, pem, replace=True)


def _moment(now: float | None) -> datetime:
    return datetime.fromtimestamp(time.time() if now is None else now, UTC)


def _authority_certificate(
    key: ec.EllipticCurvePrivateKey, overlay: str, moment: datetime
) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, overlay)])
    usage = x509.KeyUsage(
        key_cert_sign=True,
        crl_sign=True,
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - BACKDATED)
        .not_valid_after(moment + timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _key_to_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
