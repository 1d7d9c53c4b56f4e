"""Datagrams, signed, sealed and plain: only RemoteProtocolError ever comes out of the openers."""

from __future__ import annotations

import atheris

with atheris.instrument_imports(include=["overlay", "protocols", "tests"]):
    from contextlib import suppress
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from overlay.errors import RemoteProtocolError
    from overlay.limits import Limits
    from overlay.security.authority import Authority
    from overlay.security.datagram import DatagramSigner, DatagramVerifier
    from overlay.security.plain import PlainSigner, PlainVerifier
    from overlay.security.rights import ALL_RIGHTS
    from overlay.wire.datagrams import read_datagram, write_datagram
    from overlay.wire.frames import FRAMEWORK_SCOPE, IAm, WhoIs
    from tests.fuzz.running import fuzz
    from tests.unit.wire.messages import KINDS, Anything, Note, Tree, Word, make_reader

NOW = 1_800_000_000.0
READER = make_reader(Limits(datagram_bytes=1024), (*KINDS, Anything))

with TemporaryDirectory() as folder:
    ADA = Authority.create(Path(folder), "lab", now=NOW).issue("ada", ALL_RIGHTS, now=NOW)
VERIFIER = ADA.verifier()
VERIFIER.verify(ADA.certificate, NOW)  # known, so that a fingerprint reaches the signature


def opened(data: bytes) -> None:
    """Whatever arrives at the UDP port."""
    secure = DatagramVerifier(VERIFIER, curve_secret=ADA.curve_secret)
    for opener in (secure, PlainVerifier("lab")):
        try:
            _, body = opener.open(data, NOW)
            read_datagram(body, READER)
        except RemoteProtocolError:
            pass


def read(data: bytes) -> None:
    """As a datagram, as the body of one that is signed well, and as a certificate."""
    opened(data)
    signer = DatagramSigner(ADA)
    seal_for = ADA.identity if data[:1] < b"\x40" else None
    opened(signer.sign(data[1:], NOW, data[:1] >= b"\x80", seal_for))
    with suppress(RemoteProtocolError):
        VERIFIER.verify(data, NOW)


def seeds() -> list[bytes]:
    """Datagrams of each form."""
    limits = Limits()
    bodies = [
        write_datagram("zone", msg, limits)
        for msg in (Note(1, b"x"), Word("grüße"), Tree(("a",)), Anything([1, {"a": None}]))
    ]
    bodies += [
        write_datagram(FRAMEWORK_SCOPE, msg, limits)
        for msg in (WhoIs(bytes(8), bytes(100)), IAm(bytes(8), "ada", b"certificate"))
    ]
    signer, plain = DatagramSigner(ADA), PlainSigner("bob", "lab")
    return [
        ADA.certificate,
        *(b"\xff" + body for body in bodies),
        *(plain.sign(body, NOW) for body in bodies),
        *(signer.sign(body, NOW, with_certificate=True) for body in bodies[:2]),
        signer.sign(bodies[0], NOW),
        signer.sign(bodies[0], NOW, seal_for=ADA.identity),
    ]


if __name__ == "__main__":
    fuzz("datagrams", read, seeds())
