"""Whom the verifier believes, and the exact reason for each refusal."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from overlay.errors import LocalProtocolError, RemoteProtocolError, SecurityError
from overlay.security.authority import Authority
from overlay.security.certificate import (
    MAX_CERTIFICATE,
    Verifier,
    fingerprint_of,
    name_from_uri,
    name_to_uri,
)
from overlay.security.credentials import Credentials
from overlay.security.rights import ALL_RIGHTS, Rights
from tests.unit.security.conftest import DAY, NOW, RIGHTS


def reason_of(verifier: Verifier, certificate: bytes, now: float = NOW, **claims: object) -> str:
    with pytest.raises(RemoteProtocolError) as caught:
        verifier.verify(certificate, now, **claims)  # type: ignore[arg-type]
    return caught.value.reason


def test_a_certificate_proves_name_keys_and_rights(ada: Credentials) -> None:
    identity = ada.verifier().verify(
        ada.certificate, NOW, name="ada", curve_key=ada.identity.curve_key
    )
    assert identity.name == "ada"
    assert identity.overlay == "lab"
    assert identity.rights == RIGHTS
    assert identity.curve_key == ada.curve_public
    assert identity.signing_key == ada.signing_key().public_key().public_bytes_raw()
    assert identity.fingerprint == fingerprint_of(ada.certificate)
    assert identity.not_after == NOW + 30 * DAY


def test_its_curve_key_is_the_one_that_zeromq_derives(ada: Credentials) -> None:
    import zmq
    from zmq.utils import z85

    assert z85.decode(zmq.curve_public(z85.encode(ada.curve_secret))) == ada.curve_public


def test_validity_ends_and_begins_at_its_second(ada: Credentials) -> None:
    verifier = ada.verifier()
    identity = verifier.verify(ada.certificate, ada.identity.not_after)
    assert verifier.verify(ada.certificate, identity.not_before) == identity
    assert reason_of(verifier, ada.certificate, identity.not_after + 1) == "certificate-expired"
    assert (
        reason_of(verifier, ada.certificate, identity.not_before - 1) == "certificate-not-yet-valid"
    )


@pytest.mark.parametrize(
    ("off", "reason"),
    [(31 * DAY, "certificate-expired"), (-2 * DAY, "certificate-not-yet-valid")],
)
def test_time_is_checked_on_the_first_look_too(ada: Credentials, off: float, reason: str) -> None:
    assert reason_of(ada.verifier(), ada.certificate, NOW + off) == reason


def test_another_authority_of_the_same_overlay_name_is_untrusted(
    ada: Credentials, stranger: Credentials
) -> None:
    assert reason_of(ada.verifier(), stranger.certificate) == "certificate-untrusted"
    # Forged and expired is forged: time must not hide it.
    assert reason_of(ada.verifier(), stranger.certificate, NOW + 90 * DAY) == (
        "certificate-untrusted"
    )


def test_a_certificate_of_another_overlay_says_so(ada: Credentials, tmp_path: Path) -> None:
    foreign = Authority.create(tmp_path, "office", now=NOW).issue("ada", RIGHTS, now=NOW)
    assert reason_of(ada.verifier(), foreign.certificate) == "certificate-wrong-overlay"


def test_the_authority_itself_is_no_node(ada: Credentials) -> None:
    assert reason_of(ada.verifier(), ada.authority_certificate) == "certificate-malformed"


def test_tampered_rights_break_the_signature(ada: Credentials) -> None:
    mine, more = (
        msgspec.msgpack.encode(rights)
        for rights in (RIGHTS, msgspec.structs.replace(RIGHTS, zones=("mgt",)))
    )
    assert len(mine) == len(more)
    assert ada.certificate.count(mine) == 1
    assert reason_of(ada.verifier(), ada.certificate.replace(mine, more)) == (
        "certificate-untrusted"
    )


def test_a_tampered_curve_key_breaks_the_signature(ada: Credentials, bob: Credentials) -> None:
    swapped = ada.certificate.replace(ada.curve_public, bob.curve_public)
    assert reason_of(ada.verifier(), swapped) == "certificate-untrusted"


def test_a_claimed_name_and_the_links_key_must_be_the_certified_ones(
    ada: Credentials, bob: Credentials
) -> None:
    verifier = ada.verifier()
    for _ in range(2):  # fresh, then remembered
        assert reason_of(verifier, bob.certificate, name="ada") == "name-forged"
        assert reason_of(verifier, bob.certificate, curve_key=ada.curve_public) == "key-mismatch"


def test_every_truncation_is_malformed(ada: Credentials) -> None:
    verifier = ada.verifier()
    for length in range(len(ada.certificate)):
        assert reason_of(verifier, ada.certificate[:length]) == "certificate-malformed"
    assert reason_of(verifier, ada.certificate + b"\0") == "certificate-malformed"
    assert reason_of(verifier, bytes(MAX_CERTIFICATE + 1)) == "certificate-malformed"


def test_what_the_library_would_warn_of_is_refused_in_silence(
    ada: Credentials, recwarn: pytest.WarningsRecorder
) -> None:
    number = ada.identity.serial
    serial = number.to_bytes(number.bit_length() // 8 + 1, "big")  # as DER writes it
    negative = bytes((serial[0] | 0x80,)) + serial[1:]
    changed = ada.certificate.replace(serial, negative, 1)
    assert changed != ada.certificate
    assert reason_of(ada.verifier(), changed) == "certificate-malformed"
    assert not recwarn.list


def test_every_changed_byte_is_noticed(ada: Credentials) -> None:
    verifier = ada.verifier()
    for at in range(len(ada.certificate)):
        for flip in (0x01, 0x02, 0x07, 0x10, 0x80):
            changed = bytearray(ada.certificate)
            changed[at] ^= flip
            assert reason_of(verifier, bytes(changed)) in {
                "certificate-malformed",
                "certificate-untrusted",
                "certificate-wrong-overlay",
            }


def test_unused_bits_are_not_a_second_spelling(authority: Authority) -> None:
    """Where a signature happens to end in a zero bit, DER lets that bit be called unused."""
    while True:
        node = authority.issue("even", RIGHTS, now=NOW)
        signature = x509.load_der_x509_certificate(node.certificate).signature
        if signature[-1] % 2 == 0:
            break
    changed = node.certificate[: -len(signature) - 1] + b"\x01" + signature
    assert reason_of(node.verifier(), changed) == "certificate-malformed"


def test_revocation_reaches_a_remembered_certificate(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path, "lab", now=NOW)
    eve, ada = (authority.issue(name, RIGHTS, now=NOW) for name in ("eve", "ada"))
    verifier = ada.verifier()
    verifier.verify(eve.certificate, NOW)
    before = authority.revocations()
    authority.revoke("eve", now=NOW)

    assert verifier.reload_revocations(authority.revocations())
    assert verifier.revocation_number == 1
    assert reason_of(verifier, eve.certificate) == "certificate-revoked"
    with pytest.raises(RemoteProtocolError, match="certificate-revoked"):
        verifier.known(eve.identity.fingerprint, NOW)
    assert verifier.verify(ada.certificate, NOW).name == "ada"
    # An older list, replayed by whoever gained from it, changes nothing.
    assert not verifier.reload_revocations(before)
    assert reason_of(verifier, eve.certificate) == "certificate-revoked"


def test_a_list_of_another_authority_is_refused(ada: Credentials, stranger: Credentials) -> None:
    verifier = ada.verifier()
    with pytest.raises(SecurityError, match="not signed by this overlay's authority"):
        verifier.reload_revocations(stranger.revocations)
    with pytest.raises(SecurityError, match="damaged"):
        verifier.reload_revocations(b"-----BEGIN X509 CRL-----\n")
    assert verifier.verify(ada.certificate, NOW).name == "ada"


def test_der_and_pem_load_alike(ada: Credentials) -> None:
    pem = x509.load_der_x509_certificate(ada.authority_certificate).public_bytes(Encoding.PEM)
    crl = x509.load_pem_x509_crl(ada.revocations).public_bytes(Encoding.DER)
    assert Verifier(pem, crl).overlay_id == ada.verifier().overlay_id
    with pytest.raises(SecurityError, match="CA certificate is damaged"):
        Verifier(b"no certificate", crl)


def test_the_memory_of_certificates_is_bounded_and_counts(
    authority: Authority, ada: Credentials, bob: Credentials
) -> None:
    verifier = Verifier(ada.authority_certificate, ada.revocations, remembered=2)
    carol = authority.issue("carol", RIGHTS, now=NOW)
    for node in (ada, bob, ada, carol):  # ada again: bob is now the one used longest ago
        verifier.verify(node.certificate, NOW)
    assert verifier.known(bob.identity.fingerprint, NOW) is None
    assert verifier.known(ada.identity.fingerprint, NOW) == ada.identity
    assert verifier.forgotten == 1


def test_a_refused_certificate_is_not_remembered(ada: Credentials, stranger: Credentials) -> None:
    verifier = ada.verifier()
    reason_of(verifier, stranger.certificate)
    assert verifier.known(stranger.identity.fingerprint, NOW) is None


def test_names_survive_their_uri_and_have_one_spelling() -> None:
    for name in ("a", "grün", "a%2Fb", "x?y#z", "100%"):
        assert name_from_uri(name_to_uri("läb", name)) == ("läb", name)
    for uri in (
        "overlay://lab/%61",
        "overlay://lab/a/b",
        "overlay://lab",
        "http://lab/a",
        "overlay://lab/%ff",
        "overlay:///a",
        "",
    ):
        with pytest.raises((ValueError, LocalProtocolError)):
            name_from_uri(uri)


def test_a_certificate_stays_small_enough_for_a_datagram(ada: Credentials) -> None:
    assert len(ada.certificate) < 500


def test_a_certificate_that_would_be_too_large_is_not_issued(authority: Authority) -> None:
    wide = Rights(publish=tuple(f"{'x' * 90}/{number}" for number in range(60)))
    with pytest.raises(LocalProtocolError, match="fewer or shorter"):
        authority.issue("wide", wide, now=NOW)
    assert all(entry.name != "wide" for entry in authority.issued())


def test_all_rights_fit_into_a_certificate(authority: Authority) -> None:
    lord = authority.issue("lord", ALL_RIGHTS, now=NOW)
    assert lord.verifier().verify(lord.certificate, NOW).rights == ALL_RIGHTS
