"""Reliable requests on disk: acknowledged once they are safe, taken up again after a restart."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

import msgspec

from overlay.ids import NodeId
from protocols.colony.core import Core
from protocols.colony.messages import Ack, ServiceRequest

PREFIX = b"request/"
LED = b"led"  # there were individuals, who will come again

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
        self._led = False
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

    def led(self) -> None:
        """An individual is here: a next life should wait for it."""
        if not self._led:
            self._led = True
            self._core.effects.store(LED, b"1", ("forgotten",))

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Take up what an earlier life kept; its time counts anew: nobody knows how long it was.

        Nothing reliable is rejected before individuals had time to log in again.
        """
        self._led = LED in kept
        if kept:
            self._core.unsettled = now + self._core.settings.lease
        for key, value in kept.items():
            if not key.startswith(PREFIX):
                continue
            try:
                one = _decode(value)
            except msgspec.DecodeError:  # of an older version of this program
                self.forget(key)
                continue
            self._core.counts.recovered += 1
            self._safe[one.sender, one.request.serial] = None
            self.take_up(one.sender, one.request, now)
