"""A peer that proved who it is over one connection, whichever side opened it."""

from __future__ import annotations

from overlay.security.identity import Identity
from overlay.wire.frames import Hello, Welcome
from overlay.wire.pieces import Reassembly


class Session:
    """What is known of one connection: `routing_id` is empty where our own DEALER holds it."""

    __slots__ = (
        "certificate",
        "confirmed",
        "departed",
        "fd",
        "frames",
        "heard_at",
        "host",
        "identity",
        "leaving",
        "life",
        "name",
        "opened_at",
        "reassembly",
        "routing_id",
        "second_began",
        "small_this_second",
        "user",
        "version",
    )

    def __init__(
        self,
        routing_id: bytes,
        user: str,
        fd: int,
        identity: Identity,
        first_word: Hello | Welcome,
        version: int,
        now: float,
    ) -> None:
        self.routing_id = routing_id
        self.user = user
        self.fd = fd
        self.identity = identity
        self.name = identity.name
        self.certificate = first_word.certificate
        self.life = first_word.life
        self.version = version  # that both sides speak
        self.opened_at = self.heard_at = self.second_began = now
        self.frames = 0
        self.small_this_second = 0
        self.confirmed = False  # the monitor was read since: its events are about this session
        self.leaving = False  # it said Goodbye: a disconnect is no news
        self.departed = False  # and that it does not come back soon
        self.reassembly: Reassembly | None = None
        self.host = ""  # where it called from; empty when it came by ipc

    @property
    def in_use(self) -> bool:
        """Whether more came than Hello: else the peer may have given up, since we took too long."""
        return self.frames > 0
