"""Sealed bodies on their own: for one reader, in one context."""

from __future__ import annotations

import pytest

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.security.credentials import Credentials
from overlay.security.sealing import OVERHEAD, seal, unseal


def reason_of(sealed: bytes, secret: bytes, context: bytes) -> str:
    with pytest.raises(RemoteProtocolError) as caught:
        unseal(sealed, secret, context)
    return caught.value.reason


@pytest.mark.parametrize("body", [b"", b"x", bytes(10_000)])
def test_only_the_reader_in_the_same_context_opens_it(
    ada: Credentials, bob: Credentials, body: bytes
) -> None:
    sealed = seal(body, bob.curve_public, b"context")
    assert len(sealed) == len(body) + OVERHEAD
    assert unseal(sealed, bob.curve_secret, b"context") == body
    assert reason_of(sealed, ada.curve_secret, b"context") == "sealed-unreadable"
    assert reason_of(sealed, bob.curve_secret, b"another") == "sealed-unreadable"


def test_two_seals_of_one_body_have_nothing_in_common(bob: Credentials) -> None:
    one, two = (seal(bytes(64), bob.curve_public, b"") for _ in range(2))
    assert one[:32] != two[:32]
    assert one[32:] != two[32:]


def test_every_changed_or_missing_byte_is_noticed(bob: Credentials) -> None:
    sealed = seal(b"body", bob.curve_public, b"")
    for at in range(len(sealed)):
        changed = bytearray(sealed)
        changed[at] ^= 1
        assert reason_of(bytes(changed), bob.curve_secret, b"") == "sealed-unreadable"
        expected = "sealed-malformed" if at < OVERHEAD else "sealed-unreadable"
        assert reason_of(sealed[:at], bob.curve_secret, b"") == expected


def test_a_key_that_would_give_the_secret_away_is_refused(bob: Credentials) -> None:
    with pytest.raises(LocalProtocolError, match="cannot be sealed for"):
        seal(b"", bytes(32), b"")
    assert reason_of(bytes(OVERHEAD), bob.curve_secret, b"") == "sealed-unreadable"
