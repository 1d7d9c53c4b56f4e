"""Reliable requests on disk: acknowledged once they are safe, taken up again after a restart."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

import msgspec

from overlay.ids import NodeId
from protocols.colony.core import Core
from protocols.colony.messages import Ack, ServiceRequest

PREFIX = b"request/"
RECOVER = "recover"  # individuals had time to log in again

_encode = msgspec.msgpack.Encoder().encode


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """A request as a broker got it."""

    sender: NodeId
    request: ServiceRequest


_decode = msgspec.msgpack.Decoder(Kept).decode


class Keeper:
    """Stores requests and acknowledges them; after a restart it hands them out again."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.take_up: Callable[[NodeId, ServiceRequest, float], None]
        self._kept: dict[bytes, Kept] = {}  # of an earlier life, to be taken up
        self._safe: dict[tuple[NodeId, int], None] = {}  # acknowledged; copies are so at once

    @staticmethod
    def key(sender: NodeId, request: ServiceRequest) -> bytes:
        """Where it is kept."""
        return PREFIX + f"{request.serial}/{sender}".encode()

    def keep(self, sender: NodeId, request: ServiceRequest) -> bytes:
        """Store it; the Ack follows when it is on disk."""
        key = self.key(sender, request)
        if (sender, request.serial) in self._safe:
            self._core.effects.send(sender, Ack(request.serial))
        else:
            token = ("kept", sender, request.serial)
            self._core.effects.store(key, _encode(Kept(sender, request)), token)
        return key

    def on_stored(self, token: Hashable) -> None:
        """It is on disk."""
        match token:
            case ("kept", str(sender), int(serial)):
                self._safe[sender, serial] = None
                if len(self._safe) > self._core.settings.remembered:
                    del self._safe[next(iter(self._safe))]
                self._core.effects.send(sender, Ack(serial))

    def forget(self, key: bytes) -> None:
        """It is over."""
        self._core.effects.store(key, None, ("forgotten",))

    # -- after a restart --------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Read what an earlier life kept; it waits until individuals are here again."""
        for key, value in kept.items():
            if key.startswith(PREFIX):
                try:
                    self._kept[key] = _decode(value)
                except msgspec.DecodeError:  # of an older version of this program
                    self.forget(key)
        if self._kept:
            settings = self._core.settings
            self._core.timers.set(RECOVER, now + min(2 * settings.beat, settings.lease))

    def on_recover_timer(self, now: float) -> None:
        """Search for it again; its time counts anew, as nobody knows how long the node was dead."""
        kept, self._kept = self._kept, {}
        for one in kept.values():
            self._core.counts.recovered += 1
            self._safe[one.sender, one.request.serial] = None
            self.take_up(one.sender, one.request, now)
