"""What leaves in datagrams: sealed for a reader as soon as its certificate was seen."""

from __future__ import annotations

from pathlib import Path

from overlay.errors import RemoteProtocolError
from overlay.limits import Limits
from overlay.net.envelopes import Envelopes
from overlay.net.trust import CertifiedTrust, OpenTrust, Trust
from overlay.net.udp import Datagrams
from overlay.protocol import Message, Origin, UdpAddress
from overlay.security.authority import Authority
from overlay.security.datagram import SEALED
from overlay.security.identity import Identity
from overlay.security.rights import Rights
from overlay.wire.reader import BatchReader
from protocols.discovery.messages import Ping

HERE = UdpAddress("127.0.0.1", 7400)
PING = Ping(b"ABCDEFGH", 1.0)


class Wire(Datagrams):
    """Keeps what would have been sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, data: bytes, address: UdpAddress) -> None:
        """Take it."""
        self.sent.append(data)


class End:
    """The envelopes of one node, and what it was told."""

    def __init__(self, name: str, trust: Trust) -> None:
        self.wire = Wire()
        self.heard: list[tuple[str, Message]] = []
        self.refused: list[str] = []
        self.learned: list[Identity] = []
        self.envelopes = Envelopes(
            name,
            trust,
            BatchReader((Ping,), Limits()),
            Limits(),
            self._deliver,
            self._refuse,
            self.learned.append,
            lambda: 1.0,
        )

    def _deliver(self, origin: Origin, scope: str, msg: Message, now: float) -> None:
        self.heard.append((origin.name, msg))

    def _refuse(self, who: str, error: RemoteProtocolError, count: int) -> None:
        self.refused.append(error.reason)

    def cast(self, reader: str = "") -> bytes:
        """The bytes of one ping."""
        self.envelopes.cast(self.wire, HERE, "", PING, reader)
        return self.wire.sent[-1]


def is_sealed(data: bytes) -> bool:
    return bool(data[1] & SEALED)


def test_a_reader_is_sealed_for_once_it_was_heard(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path, "lab")
    keys = [authority.issue(name, Rights(), 1) for name in ("ada", "bob", "eve")]
    a, b, e = (End(one.identity.name, CertifiedTrust(one)) for one in keys)
    first = a.cast("bob")
    assert not is_sealed(first), "nobody has shown bob's certificate yet"
    a.envelopes.received(b.cast(), HERE, "")
    assert a.learned == [keys[1].identity]
    second = a.cast("bob")
    assert is_sealed(second)
    assert PING.nonce in first
    assert PING.nonce not in second
    assert not is_sealed(a.cast()), "who is not named may be anybody"
    for data in (first, second):
        b.envelopes.received(data, HERE, "")
        e.envelopes.received(data, HERE, "")
    assert b.heard == [("ada", PING), ("ada", PING)]
    assert e.heard == [("ada", PING)]
    assert e.refused == ["sealed-unreadable"]


def test_an_insecure_node_seals_nothing() -> None:
    a, b = (End(name, OpenTrust(name, "lab")) for name in ("ada", "bob"))
    a.envelopes.received(b.cast(), HERE, "")
    assert a.heard == [("bob", PING)]
    assert a.learned == []
    b.envelopes.received(a.cast("bob"), HERE, "")
    assert b.heard == [("ada", PING)]
