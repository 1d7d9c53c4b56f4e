"""What is inside of datagrams: signed on the way out, checked and read on the way in."""

from __future__ import annotations

import time
from collections.abc import Callable

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.limits import Limits
from overlay.net.introduction import INTRODUCTION_MAGIC, Introductions
from overlay.net.trust import Trust
from overlay.net.udp import Datagrams
from overlay.protocol import Group, Message, Origin, Scope, UdpAddress
from overlay.security.identity import Identity
from overlay.wire.datagrams import read_datagram, write_datagram
from overlay.wire.reader import BatchReader

Deliver = Callable[[Origin, Scope, Message, float], None]
Refuse = Callable[[str, RemoteProtocolError, int], None]


class Envelopes:
    """Writes and opens the datagrams of one node."""

    def __init__(
        self,
        me: NodeId,
        trust: Trust,
        reader: BatchReader,
        limits: Limits,
        deliver: Deliver,
        refuse: Refuse,
        clock: Callable[[], float],
        vouched: Callable[[Identity], None],
    ) -> None:
        self.introductions: Introductions  # set by the driver, once there are sockets
        self._me = me
        self._trust = trust
        self._reader = reader
        self._limits = limits
        self._deliver = deliver
        self._refuse = refuse
        self._clock = clock
        self._vouched = vouched  # told whose certificate was verified: a link needs its key

    def cast(
        self, datagrams: Datagrams, address: UdpAddress | Group, scope: Scope, msg: Message
    ) -> None:
        """Sign and send one."""
        body = write_datagram(scope, msg, self._limits)
        data = self._trust.signer.sign(body, time.time(), with_certificate=True)
        if isinstance(address, Group):
            datagrams.cast(data, address)
        else:
            datagrams.send(data, address)

    def received(self, data: bytes, sender: UdpAddress, interface: str) -> None:
        """Hand it to the protocol that it is for; a bad one is counted."""
        now = self._clock()
        try:
            if data[:1] == INTRODUCTION_MAGIC:
                self.introductions.received(data, sender)
                return
            identity, body = self._trust.opener.open(data, time.time())
            if identity.name == self._me:
                return  # our own multicast comes back
            if identity.curve_key:
                self._vouched(identity)
            scope, msg = read_datagram(body, self._reader)
        except RemoteProtocolError as error:
            if error.reason == "certificate-wrong-overlay":  # as common here as it is odd on a link
                error = RemoteProtocolError("datagram-wrong-overlay", error.detail)
            self._refuse(sender.host, error, 1)
            return
        self._deliver(Origin(sender, identity.name, now, interface), scope, msg, now)
