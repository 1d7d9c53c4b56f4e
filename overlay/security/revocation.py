"""The authority's signed list of certificates that no longer count (an X.509 CRL)."""

from __future__ import annotations

from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from overlay.errors import SecurityError

_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, x509.ExtensionNotFound)


class Revocations(NamedTuple):
    """Which serial numbers to refuse, and the number of the list, which only grows."""

    number: int
    serials: frozenset[int]


def read_revocations(data: bytes, authority: x509.Certificate) -> Revocations:
    """Read a list, PEM or DER; SecurityError if it is damaged or not signed by `authority`."""
    try:
        if data.startswith(b"-----"):
            listed = x509.load_pem_x509_crl(data)
        else:
            listed = x509.load_der_x509_crl(data)
        signed = listed.is_signature_valid(authority.public_key())  # type: ignore[arg-type]
        number = listed.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
        serials = frozenset(entry.serial_number for entry in listed)
    except _UNREADABLE as error:
        raise SecurityError(
            "the revocation list is damaged: copy revoked.pem of the authority again"
        ) from error
    if not signed:
        raise SecurityError(
            "the revocation list is not signed by this overlay's authority: "
            "copy revoked.pem of the right one"
        )
    return Revocations(number, serials)
