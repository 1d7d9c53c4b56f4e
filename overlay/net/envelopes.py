"""What is inside of datagrams: signed on the way out, checked and read on the way in."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.limits import Limits
from overlay.net.introduction import INTRODUCTION_MAGIC, Introductions
from overlay.net.tallies import Tallies
from overlay.net.trust import Trust
from overlay.net.udp import Datagrams
from overlay.protocol import Group, Message, Origin, Scope, UdpAddress
from overlay.security.identity import Identity
from overlay.wire.datagrams import read_datagram, write_datagram
from overlay.wire.reader import BatchReader

READERS = 4096  # identities kept to seal for, about 1 KB each

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
        learn: Callable[[Identity], None],
        clock: Callable[[], float],
    ) -> None:
        self.introductions: Introductions  # set by the driver, once there are sockets
        self.tallies: Tallies | None = None  # counts what passes, while it is traced
        self._me = me
        self._trust = trust
        self._reader = reader
        self._limits = limits
        self._deliver = deliver
        self._refuse = refuse
        self._learn = learn
        self._clock = clock
        self._readers: OrderedDict[NodeId, Identity] = OrderedDict()  # who was heard last is last

    def cast(
        self,
        datagrams: Datagrams,
        address: UdpAddress | Group,
        scope: Scope,
        msg: Message,
        reader: NodeId = "",
    ) -> None:
        """Sign and send one; sealed if a datagram of the reader has shown its certificate."""
        body = write_datagram(scope, msg, self._limits)
        sealed_for = self._readers.get(reader) if reader else None
        data = self._trust.signer.sign(
            body, time.time(), with_certificate=True, seal_for=sealed_for
        )
        if self.tallies is not None:
            self.tallies.cast(address, scope, msg, len(data))
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
            self._remember(identity)
            scope, msg = read_datagram(body, self._reader)
        except RemoteProtocolError as error:
            if error.reason == "certificate-wrong-overlay":  # as common here as it is odd on a link
                error = RemoteProtocolError("datagram-wrong-overlay", error.detail)
            self._refuse(sender.host, error, 1)
            return
        if self.tallies is not None:
            self.tallies.heard(identity.name, scope, msg, len(data))
        self._deliver(Origin(sender, identity.name, now, interface), scope, msg, now)

    def _remember(self, identity: Identity) -> None:
        """Keep whom we may seal for; an insecure node has no key, and nothing is sealed for it."""
        if not identity.curve_key:
            return
        if self._readers.get(identity.name) is not identity:
            self._readers[identity.name] = identity
            self._learn(identity)  # its rights, and the key of its links
            if len(self._readers) > READERS:
                self._readers.popitem(last=False)
        self._readers.move_to_end(identity.name)
