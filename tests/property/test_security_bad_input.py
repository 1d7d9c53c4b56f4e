"""Whatever bytes arrive, the only outcome is a refusal with a known reason."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.errors import RemoteProtocolError, SecurityError
from overlay.security.authority import Authority
from overlay.security.certificate import Verifier
from overlay.security.credentials import Credentials
from overlay.security.datagram import DatagramSigner, DatagramVerifier
from overlay.security.plain import PlainSigner, PlainVerifier
from overlay.security.rights import ALL_RIGHTS
from overlay.security.sealing import seal, unseal

NOW = 1_800_000_000.0

CERTIFICATE_REASONS = {
    "certificate-malformed",
    "certificate-untrusted",
    "certificate-wrong-overlay",
}
DATAGRAM_REASONS = {
    *CERTIFICATE_REASONS,
    "datagram-malformed",
    "datagram-stale",
    "datagram-forged",
    "datagram-unknown-sender",
    "datagram-wrong-overlay",
}
SEALED_REASONS = {"sealed-malformed", "sealed-unreadable"}

changes = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(1, 255), st.sampled_from(["flip", "cut", "add"])),
    min_size=1,
    max_size=4,
)


@lru_cache(maxsize=1)
def node() -> Credentials:
    """Made on first use: Hypothesis would complain of a fixture of narrower scope."""
    with TemporaryDirectory() as folder:
        return Authority.create(Path(folder), "lab", now=NOW).issue("ada", ALL_RIGHTS, now=NOW)


@lru_cache(maxsize=1)
def verifier() -> Verifier:
    return node().verifier()


def mutate(data: bytes, edits: list[tuple[int, int, str]]) -> bytes:
    changed = bytearray(data)
    for at, value, kind in edits:
        at %= len(changed) + 1
        if kind == "add":
            changed.insert(at, value)
        elif at < len(changed):
            if kind == "flip":
                changed[at] ^= value
            else:
                del changed[at]
    return bytes(changed)


def refused(open_it: Callable[[], object], reasons: set[str]) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        open_it()
    assert caught.value.reason in reasons
    assert len(str(caught.value)) < 300  # bounded: it may end in a log


@given(st.binary(max_size=600))
def test_random_bytes_are_no_certificate(data: bytes) -> None:
    refused(lambda: verifier().verify(data, NOW), {"certificate-malformed"})


@given(changes)
def test_a_mutated_certificate_is_refused(edits: list[tuple[int, int, str]]) -> None:
    changed = mutate(node().certificate, edits)
    if changed != node().certificate:
        refused(lambda: verifier().verify(changed, NOW), CERTIFICATE_REASONS)


@given(st.binary(max_size=600), st.sampled_from([b"", b"\xd5\x10", b"\xd5\x11", b"\xd5\x12"]))
def test_random_bytes_are_no_datagram(data: bytes, start: bytes) -> None:
    opener = DatagramVerifier(verifier())
    refused(lambda: opener.open(start + data, NOW), DATAGRAM_REASONS)


@given(changes, st.booleans(), st.binary(max_size=50))
def test_a_mutated_datagram_is_refused(
    edits: list[tuple[int, int, str]], with_certificate: bool, body: bytes
) -> None:
    verifier().verify(node().certificate, NOW)  # known, so that signatures are reached
    data = DatagramSigner(node()).sign(body, NOW, with_certificate)
    changed = mutate(data, edits)
    if changed != data:
        opener = DatagramVerifier(verifier())
        refused(lambda: opener.open(changed, NOW), DATAGRAM_REASONS)


@given(st.binary(max_size=200), st.booleans(), st.booleans())
def test_what_was_signed_is_what_is_read(body: bytes, with_certificate: bool, sealed: bool) -> None:
    verifier().verify(node().certificate, NOW)
    seal_for = node().identity if sealed else None
    data = DatagramSigner(node()).sign(body, NOW, with_certificate, seal_for)
    opener = DatagramVerifier(verifier(), curve_secret=node().curve_secret)
    assert opener.open(data, NOW) == (node().identity, body)


@given(st.binary(max_size=300), st.sampled_from([b"", b"\xd4\x01", b"\xd4\x01\x03lab\x03ada"]))
def test_random_bytes_are_no_plain_datagram(data: bytes, start: bytes) -> None:
    opener = PlainVerifier("lab")
    try:
        identity, body = opener.open(start + data, NOW)
    except RemoteProtocolError:
        refused(lambda: opener.open(start + data, NOW), DATAGRAM_REASONS)
    else:  # well formed by chance: then it is what that node would have sent
        assert PlainSigner(identity.name, "lab").sign(body, NOW) == start + data


@given(changes, st.binary(max_size=50))
def test_a_mutated_sealed_body_is_refused(edits: list[tuple[int, int, str]], body: bytes) -> None:
    sealed = seal(body, node().curve_public, b"context")
    changed = mutate(sealed, edits)
    # X25519 ignores the top bit of a public key, but the derivation does not.
    if changed != sealed:
        refused(lambda: unseal(changed, node().curve_secret, b"context"), SEALED_REASONS)


@given(changes)
def test_a_mutated_revocation_list_is_refused(edits: list[tuple[int, int, str]]) -> None:
    before = verifier().revocation_number
    with suppress(SecurityError):  # unless a mere comment around the list was changed
        assert not verifier().reload_revocations(mutate(node().revocations, edits))
    assert verifier().revocation_number == before
