"""How a secure node gets the CURVE key of a peer of which it knows only an address.

ZeroMQ must know the server's key before it connects. So the node asks by UDP, at the port of the
peer's ROUTER, and the answer is the peer's certificate. Neither is signed: the authority signed
the certificate, and that its owner lives at this address is then proven by CURVE itself. The
question is padded to the size of an answer, so nobody can use it to multiply traffic. For an ipc
endpoint the certificate lies beside the socket.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.limits import Limits
from overlay.net.addresses import Endpoint
from overlay.net.link import Link, State
from overlay.net.trust import Trust
from overlay.net.udp import Datagrams
from overlay.protocol import UdpAddress
from overlay.wire.datagrams import read_datagram, write_datagram
from overlay.wire.frames import FRAMEWORK_SCOPE, IAm, WhoIs
from overlay.wire.reader import BatchReader

INTRODUCTION_MAGIC = b"\xd0"  # the first byte, which tells these from signed datagrams
ASK_AGAIN = 0.25  # s; a question or an answer may be lost; then twice as long each time
OPEN_QUESTIONS = 4096

Introduced = Callable[[Link, NodeId, bytes], None]


class Introductions:
    """Asks and answers who lives at an address."""

    def __init__(
        self,
        me: NodeId,
        trust: Trust,
        datagrams: Datagrams,
        reader: BatchReader,
        limits: Limits,
        introduced: Introduced,
        unix_now: Callable[[], float],
    ) -> None:
        self._me = me
        self._trust = trust
        self._datagrams = datagrams
        self._reader = reader
        self._limits = limits
        self._introduced = introduced
        self._unix_now = unix_now
        self._questions: dict[bytes, tuple[Link, UdpAddress, float, float]] = {}

    def ask(self, link: Link, endpoint: Endpoint, now: float) -> bool:
        """Begin to ask; False when the answer cannot be had."""
        if endpoint.transport == "ipc":
            return self._read_beside(link, endpoint)
        address = endpoint.udp
        if address is None or len(self._questions) >= OPEN_QUESTIONS:
            return False
        nonce = os.urandom(8)
        self._questions[nonce] = (link, address, now + ASK_AGAIN, ASK_AGAIN)
        self._send_question(nonce, address)
        return True

    def _read_beside(self, link: Link, endpoint: Endpoint) -> bool:
        try:
            certificate = certificate_path(endpoint).read_bytes()
            identity = self._trust.identify(certificate, None, None, self._unix_now())
        except (OSError, RemoteProtocolError):
            return False
        self._introduced(link, identity.name, identity.curve_key)
        return True

    def _send_question(self, nonce: bytes, address: UdpAddress) -> None:
        padding = bytes(len(self._trust.certificate) + 64)
        question = write_datagram(FRAMEWORK_SCOPE, WhoIs(nonce, padding), self._limits)
        self._datagrams.send(INTRODUCTION_MAGIC + question, address)

    def received(self, data: bytes, sender: UdpAddress) -> None:
        """Answer a question, or take an answer to ours."""
        _, msg = read_datagram(data[len(INTRODUCTION_MAGIC) :], self._reader)
        if isinstance(msg, WhoIs):
            answer = IAm(msg.nonce, self._me, self._trust.certificate)
            encoded = INTRODUCTION_MAGIC + write_datagram(FRAMEWORK_SCOPE, answer, self._limits)
            if len(encoded) > len(data) + 64:
                raise RemoteProtocolError("question-not-padded", f"{len(data)} bytes")
            self._datagrams.send(encoded, sender)
        elif isinstance(msg, IAm):
            asked = self._questions.pop(msg.nonce, None)
            if asked is None:
                raise RemoteProtocolError("stray-introduction", msg.name)
            identity = self._trust.identify(msg.certificate, msg.name, None, self._unix_now())
            self._introduced(asked[0], identity.name, identity.curve_key)
        else:
            raise RemoteProtocolError("unexpected-datagram", type(msg).__name__)

    def sweep(self, now: float) -> float:
        """Ask again where no answer came; returns when to look next."""
        due = now + 1.0
        for nonce, (link, address, again, pause) in list(self._questions.items()):
            if link.state is not State.INTRODUCING:
                del self._questions[nonce]
                continue
            if again <= now:
                again = now + 2 * pause
                self._questions[nonce] = (link, address, again, 2 * pause)
                self._send_question(nonce, address)
            due = min(due, again)
        return due


def certificate_path(endpoint: Endpoint) -> Path:
    """Where the certificate of a node at an ipc endpoint lies."""
    return Path(endpoint.host + ".certificate")


def remove_certificates(endpoints: Iterable[Endpoint]) -> None:
    """Take away what lay beside the ipc sockets of a node that stops."""
    for endpoint in endpoints:
        if endpoint.transport == "ipc":
            certificate_path(endpoint).unlink(missing_ok=True)
