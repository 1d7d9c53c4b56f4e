"""Signed datagrams: who is believed, once, and the exact reason for each refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.security.authority import Authority
from overlay.security.credentials import Credentials
from overlay.security.datagram import DatagramSettings, DatagramSigner, DatagramVerifier
from overlay.security.interface import OpensDatagrams, SignsDatagrams
from overlay.security.plain import PlainSigner, PlainVerifier
from tests.unit.security.conftest import DAY, NOW, RIGHTS


@pytest.fixture
def signer(ada: Credentials) -> DatagramSigner:
    return DatagramSigner(ada)


@pytest.fixture
def opener(bob: Credentials) -> DatagramVerifier:
    """Bob's side, which has not met ada yet."""
    return DatagramVerifier(bob.verifier(), curve_secret=bob.curve_secret)


def reason_of(opener: OpensDatagrams, data: bytes, now: float = NOW) -> str:
    with pytest.raises(RemoteProtocolError) as caught:
        opener.open(data, now)
    return caught.value.reason


def test_a_datagram_with_certificate_introduces_its_sender(
    ada: Credentials, signer: DatagramSigner, opener: DatagramVerifier
) -> None:
    assert reason_of(opener, signer.sign(b"hi", NOW)) == "datagram-unknown-sender"
    assert opener.open(signer.sign(b"hello", NOW, with_certificate=True), NOW) == (
        ada.identity,
        b"hello",
    )
    short = signer.sign(b"hi", NOW)
    assert opener.open(short, NOW) == (ada.identity, b"hi")
    assert len(short) == len(b"hi") + 106


@pytest.mark.parametrize("with_certificate", [True, False])
def test_a_replay_is_refused(
    ada: Credentials, signer: DatagramSigner, opener: DatagramVerifier, with_certificate: bool
) -> None:
    opener.open(signer.sign(b"", NOW, with_certificate=True), NOW)
    data = signer.sign(b"once", NOW, with_certificate)
    assert opener.open(data, NOW)[1] == b"once"
    assert reason_of(opener, data) == "datagram-replayed"
    assert reason_of(opener, data, NOW + 29) == "datagram-replayed"
    assert reason_of(opener, data, NOW + 31) == "datagram-stale"


def test_datagrams_may_overtake_each_other_within_the_window(
    signer: DatagramSigner, opener: DatagramVerifier
) -> None:
    sent = [signer.sign(bytes([n]), NOW, with_certificate=True) for n in range(100)]
    for data in reversed(sent):
        opener.open(data, NOW)
    for data in sent:
        assert reason_of(opener, data) == "datagram-replayed"


def test_one_overtaken_by_more_than_the_window_is_stale(
    bob: Credentials, signer: DatagramSigner
) -> None:
    opener = DatagramVerifier(bob.verifier(), DatagramSettings(window=4))
    sent = [signer.sign(bytes([n]), NOW, with_certificate=True) for n in range(6)]
    for data in sent[1:]:
        opener.open(data, NOW)
    assert reason_of(opener, sent[0]) == "datagram-stale"
    assert reason_of(opener, sent[1]) == "datagram-stale"  # forgotten, so refused as well
    assert reason_of(opener, sent[2]) == "datagram-replayed"


@pytest.mark.parametrize("off", [-30.5, 30.5, -DAY, DAY])
def test_a_stamp_too_far_from_our_clock_is_stale_and_says_how_far(
    signer: DatagramSigner, opener: DatagramVerifier, off: float
) -> None:
    data = signer.sign(b"", NOW + off, with_certificate=True)
    with pytest.raises(RemoteProtocolError) as caught:
        opener.open(data, NOW)
    assert caught.value.reason == "datagram-stale"
    assert f"{abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} our clock" in str(caught.value)


def test_a_lab_with_bad_clocks_can_allow_more_skew(
    bob: Credentials, signer: DatagramSigner
) -> None:
    opener = DatagramVerifier(bob.verifier(), DatagramSettings(max_skew=600))
    assert opener.open(signer.sign(b"late", NOW - 500, with_certificate=True), NOW)[1] == b"late"


def test_the_signer_survives_a_clock_that_stands_or_jumps_back(
    bob: Credentials, signer: DatagramSigner
) -> None:
    opener = DatagramVerifier(bob.verifier())
    for moment in (NOW, NOW, NOW - 10, NOW + 1):
        opener.open(signer.sign(b"", moment, with_certificate=True), NOW)
    # An hour ahead nobody believed it; set right, it is believed at once.
    signer.sign(b"", NOW + 3600)
    assert opener.open(signer.sign(b"back", NOW + 2), NOW + 2)[1] == b"back"


def test_every_changed_byte_is_noticed(signer: DatagramSigner, opener: DatagramVerifier) -> None:
    opener.open(signer.sign(b"", NOW, with_certificate=True), NOW)
    data = signer.sign(b"body", NOW)
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 0x10
        reason = reason_of(opener, bytes(changed))
        if at >= 42:  # past the stamp: the body and the signature
            assert reason == "datagram-forged"
    assert opener.open(data, NOW)[1] == b"body"  # no forgery used its stamp up


def test_a_forger_cannot_speak_for_another(
    bob: Credentials, signer: DatagramSigner, opener: DatagramVerifier
) -> None:
    opener.open(signer.sign(b"", NOW, with_certificate=True), NOW)
    mine = DatagramSigner(bob).sign(b"from ada, really", NOW + 1)
    theirs = signer.sign(b"", NOW)
    assert reason_of(opener, mine[:2] + theirs[2:34] + mine[34:]) == "datagram-forged"


def test_every_truncation_is_refused(signer: DatagramSigner, opener: DatagramVerifier) -> None:
    data = signer.sign(b"", NOW, with_certificate=True)
    for length in range(len(data)):
        assert reason_of(opener, data[:length]) == "datagram-malformed"
    assert reason_of(opener, data + b"\0") == "datagram-forged"


def test_sizes_at_and_past_their_edge(bob: Credentials, ada: Credentials) -> None:
    settings = DatagramSettings(max_bytes=1000)
    signer, opener = DatagramSigner(ada, settings), DatagramVerifier(bob.verifier(), settings)
    opener.open(signer.sign(b"", NOW, with_certificate=True), NOW)
    largest = signer.sign(bytes(1000 - 106), NOW)
    assert len(largest) == 1000
    opener.open(largest, NOW)
    with pytest.raises(LocalProtocolError, match="use a link"):
        signer.sign(bytes(1000 - 105), NOW)
    larger = DatagramSigner(ada).sign(bytes(1000 - 105), NOW)
    assert reason_of(opener, larger) == "datagram-malformed"


@pytest.mark.parametrize("start", [b"\xd5\x20", b"\xd5\x14", b"\xd5\x18", b"\x00\x10", b"\xd3\x01"])
def test_an_unknown_magic_version_or_flag_is_malformed(
    opener: DatagramVerifier, start: bytes
) -> None:
    assert reason_of(opener, start + bytes(200)) == "datagram-malformed"


def test_a_stranger_an_expired_and_a_revoked_sender(
    bob: Credentials, stranger: Credentials, opener: DatagramVerifier, tmp_path: Path
) -> None:
    foreign = DatagramSigner(stranger).sign(b"", NOW, with_certificate=True)
    assert reason_of(opener, foreign) == "certificate-untrusted"
    late = NOW + 31 * DAY
    expired = DatagramSigner(bob).sign(b"", late, with_certificate=True)
    assert reason_of(opener, expired, late) == "certificate-expired"

    authority = Authority.create(tmp_path, "lab", now=NOW)
    eve = authority.issue("eve", RIGHTS, now=NOW)
    verifier, signer = eve.verifier(), DatagramSigner(eve)
    heard = DatagramVerifier(verifier)
    heard.open(signer.sign(b"", NOW, with_certificate=True), NOW)
    authority.revoke("eve", now=NOW)
    verifier.reload_revocations(authority.revocations())
    assert reason_of(heard, signer.sign(b"", NOW)) == "certificate-revoked"


def test_a_sealed_body_is_read_by_its_reader_only(
    ada: Credentials, bob: Credentials, signer: DatagramSigner, opener: DatagramVerifier
) -> None:
    data = signer.sign(b"the secret", NOW, with_certificate=True, seal_for=bob.identity)
    assert b"the secret" not in data
    assert opener.open(data, NOW) == (ada.identity, b"the secret")
    nosy = DatagramVerifier(ada.verifier(), curve_secret=ada.curve_secret)
    assert reason_of(nosy, data) == "sealed-unreadable"
    deaf = DatagramVerifier(bob.verifier())
    assert reason_of(deaf, data) == "sealed-unreadable"


def test_a_sealed_body_cannot_be_passed_on_as_ones_own(
    ada: Credentials, bob: Credentials, authority: Authority, opener: DatagramVerifier
) -> None:
    """Mallory cuts ada's sealed body out and signs it: bob must not take it for mallory's."""
    sealed = DatagramSigner(ada).sign(b"secret", NOW, seal_for=bob.identity)[42:-64]
    mallory = DatagramSigner(authority.issue("mallory", RIGHTS, now=NOW))
    template = mallory.sign(b"", NOW, with_certificate=True)[:-64]
    body = bytes((template[0], template[1] | 0x2)) + template[2:] + sealed
    signature = mallory._key.sign(mallory._domain + body)
    assert reason_of(opener, body + signature) == "sealed-unreadable"


def test_plain_datagrams_have_the_same_interface(bob: Credentials) -> None:
    signer: SignsDatagrams = PlainSigner("grün", "lab")
    opener: OpensDatagrams = PlainVerifier("lab")
    data = signer.sign(b"hello", NOW, with_certificate=True, seal_for=bob.identity)
    for _ in range(2):  # nothing is counted: who wants no proof cannot tell a replay
        identity, body = opener.open(data, NOW)
        assert (identity.name, identity.overlay, body) == ("grün", "lab", b"hello")
    assert identity.rights.may_join("any zone")
    assert identity.rights.may_publish("any/topic")


def test_plain_datagrams_are_still_checked_for_form() -> None:
    data = PlainSigner("ada", "lab").sign(b"hello", NOW)
    opener = PlainVerifier("lab")
    for length in range(len(data)):
        assert reason_of(opener, data[:length]) == "datagram-malformed"
    assert reason_of(opener, data + b"\0") == "datagram-malformed"
    assert reason_of(opener, b"\xd3" + data[1:]) == "datagram-malformed"
    assert reason_of(opener, data.replace(b"ada", b"a/a")) == "datagram-malformed"
    assert reason_of(opener, data.replace(b"ada", b"\xff\xff\xff")) == "datagram-malformed"
    assert reason_of(opener, bytes(20_000)) == "datagram-malformed"
    assert reason_of(PlainVerifier("office"), data) == "datagram-wrong-overlay"
    with pytest.raises(LocalProtocolError, match="at most"):
        PlainSigner("ada", "lab").sign(bytes(20_000), NOW)


def test_secure_and_insecure_nodes_do_not_hear_each_other(
    signer: DatagramSigner, opener: DatagramVerifier
) -> None:
    plain = PlainSigner("ada", "lab").sign(bytes(100), NOW)
    with pytest.raises(RemoteProtocolError, match=r"datagram-wrong-overlay.*insecure"):
        opener.open(plain, NOW)
    assert reason_of(PlainVerifier("lab"), signer.sign(b"", NOW)) == "datagram-wrong-overlay"
