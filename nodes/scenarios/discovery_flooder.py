"""A node that floods others with requests and advertisements, each one well-formed."""

from __future__ import annotations

from typing import ClassVar

from overlay.host import Host
from overlay.protocol import Message, OverlayProtocol, UdpAddress
from protocols.discovery.messages import Advertisement, Ping, Request


class Flooder(OverlayProtocol):
    """Sends as fast as it is told to, and reads nothing."""

    name: ClassVar[str] = "flooder"
    messages: ClassVar[tuple[type[Message], ...]] = (Request, Advertisement, Ping)

    def flood(self, address: UdpAddress, count: int, now: float) -> None:
        """That many of each kind."""
        for number in range(count):
            self.effects.cast(address, Request(self.rng.randbytes(16), padding=bytes(600)))
            self.effects.cast(address, Advertisement(self.me, number, 60.0))
            self.effects.cast(address, Ping(self.rng.randbytes(8), now))


def add_flooder(host: Host) -> None:
    """The recipe of such a node."""
    host.add(Flooder, None)
