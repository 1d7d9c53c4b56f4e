"""Who can be heard on the network: beacons as they come, and what mDNS knows when it is asked.

Beacons of a quiet zone are minutes apart, and nobody answers those of another overlay. But each
zone's delegates, and who is alone, are registered with mDNS, which answers everybody.
"""

from __future__ import annotations

import selectors
import socket
import time
from contextlib import ExitStack, suppress
from typing import NamedTuple

from nodes.settings import NodeConfig
from overlay.errors import OverlayError
from overlay.ids import NodeId
from overlay.limits import Limits
from overlay.net.groups import Membership
from overlay.security.plain import PLAIN_MAGIC, read_plain
from overlay.wire.datagrams import read_datagram
from overlay.wire.reader import BatchReader
from protocols.beacon.config import BeaconSettings
from protocols.beacon.messages import Announcement, Answer, Presence, Query

MOST = 4096  # datagrams that are looked at


class Heard(NamedTuple):
    """A node that said something; nobody has proven anything."""

    name: NodeId
    host: str  # that it was heard from; empty: by mDNS
    overlay: str
    authority: bytes  # empty: insecure
    zone: str
    ahead: float | None = None  # s that its clock is ahead of ours; None: it told no time

    @property
    def authority_word(self) -> str:
        """`insecure`, or how the fingerprint of its authority begins."""
        return f"authority {self.authority.hex()[:8]}" if self.authority else "insecure"


def listen(config: NodeConfig, seconds: float) -> tuple[Heard, ...]:
    """Listen so long; the last word of each node counts."""
    settings = config.section(BeaconSettings)
    if not settings.enabled or seconds <= 0:
        return ()
    found: dict[tuple[str, str, bytes], Heard] = {}
    until = time.monotonic() + seconds
    with ExitStack() as open_, _browsing(found), selectors.DefaultSelector() as ready:
        indices = [index for index, _ in socket.if_nameindex()]
        for group in settings.groups().values():
            family = socket.AF_INET6 if ":" in group.host else socket.AF_INET
            with suppress(OSError):  # the checks of ports and multicast tell about it
                joined = Membership(group, open_.enter_context(_datagrams(family)))
                joined.join(indices)
                ready.register(joined.socket, selectors.EVENT_READ, joined)
        count = 0
        while count < MOST and (left := until - time.monotonic()) > 0:
            if not ready.get_map():
                time.sleep(left)  # mDNS alone
                break
            for key, _ in ready.select(left):
                count += 1
                with suppress(BlockingIOError, OverlayError):
                    arrival = key.data.receive()
                    if arrival is not None:
                        one = read_beacon(arrival.data, arrival.sender.host, time.time())
                        found[one.name, one.overlay, one.authority] = one
    return tuple(found.values())


def _datagrams(family: socket.AddressFamily) -> socket.socket:
    return socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)


_READER = BatchReader((Query, Answer, Announcement), Limits())


def read_beacon(data: bytes, host: str, now: float) -> Heard:
    """What a beacon says; RemoteProtocolError when it is none."""
    if data[:1] == bytes((PLAIN_MAGIC,)):
        _, name, body = read_plain(data)
        who = _presence(body)
        return Heard(name, host, who.overlay, who.authority, who.zone)
    from overlay.security.certificate import read_identity
    from overlay.security.datagram import SIGNATURE, DatagramSettings, read_head

    _, certificate, stamp, body_at = read_head(data, DatagramSettings().max_bytes)
    who = _presence(data[body_at:-SIGNATURE])
    name = read_identity(certificate).name
    return Heard(name, host, who.overlay, who.authority, who.zone, stamp / 1e6 - now)


def _presence(body: bytes) -> Presence:
    _, beacon = read_datagram(body, _READER)
    who: Presence = beacon.who
    return who


class _browsing:
    """Ask mDNS while the block runs; where it is not to be had, nothing is found."""

    def __init__(self, found: dict[tuple[str, str, bytes], Heard]) -> None:
        self._found = found
        self._zeroconf: object = None

    def __enter__(self) -> None:
        from zeroconf import Error, ServiceBrowser, Zeroconf

        from nodes.mdns import SERVICE

        with suppress(OSError, Error):
            self._zeroconf = zeroconf = Zeroconf()
            ServiceBrowser(zeroconf, SERVICE, handlers=[self._on_change])

    def _on_change(
        self, zeroconf: object, service_type: str, name: str, state_change: object
    ) -> None:
        """In the browser's own thread."""
        from zeroconf import ServiceInfo, Zeroconf

        from nodes.mdns import ASK_FOR, read_texts

        assert isinstance(zeroconf, Zeroconf)
        info = ServiceInfo(service_type, name)
        if not info.load_from_cache(zeroconf) and not info.request(zeroconf, ASK_FOR):
            return
        read = read_texts(info.properties)
        if read is not None:
            node, who = read
            heard = Heard(node, "", who.overlay, who.authority, who.zone)
            self._found.setdefault((node, who.overlay, who.authority), heard)

    def __exit__(self, *_: object) -> None:
        from zeroconf import Zeroconf

        if isinstance(self._zeroconf, Zeroconf):
            self._zeroconf.close()
