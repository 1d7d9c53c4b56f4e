"""Reliable discovery (§3, left to future work): sent again until it is acknowledged."""

from __future__ import annotations

from collections.abc import Callable

from overlay.ids import NodeId
from overlay.protocol import Message
from protocols.colony.core import Core
from protocols.colony.messages import Ack, ServiceRequest

RESEND = "resend"


class Parcel:
    """A message that is not acknowledged yet."""

    __slots__ = ("delivered", "due", "expires", "msg", "pause", "to")

    def __init__(
        self,
        to: NodeId,
        msg: Message,
        due: float,
        pause: float,
        expires: float,
        delivered: Callable[[float], None] | None,
    ) -> None:
        self.to = to
        self.msg = msg
        self.due = due
        self.pause = pause
        self.expires = expires
        self.delivered = delivered


class Courier:
    """Keeps what was sent reliably, by its serial, until an Ack or until its time is over."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._open: dict[int, Parcel] = {}

    def __len__(self) -> int:
        return len(self._open)

    def send(
        self,
        to: NodeId,
        serial: int,
        msg: Message,
        expires: float,
        now: float,
        delivered: Callable[[float], None] | None = None,
    ) -> None:
        """Send it now, and again; `delivered` is called once, also when its time is over."""
        pause = self._core.settings.resend
        self._open[serial] = Parcel(to, msg, now + pause, pause, expires, delivered)
        self._core.effects.send(to, msg)
        self._core.timers.hasten(RESEND, now + pause)

    def on_ack(self, src: NodeId, msg: Ack, now: float) -> None:
        """It is safe."""
        parcel = self._open.get(msg.serial)
        if parcel is not None and parcel.to == src:
            self._end(msg.serial, now)

    def forget_requests(self, to: NodeId, now: float) -> None:
        """Ask it no more; answers still go there, as a client may only have moved."""
        gone = [
            serial
            for serial, parcel in self._open.items()
            if parcel.to == to and isinstance(parcel.msg, ServiceRequest)
        ]
        for serial in gone:
            self._end(serial, now)

    def on_timer(self, now: float) -> None:
        """Send again what is due."""
        for serial, parcel in list(self._open.items()):
            if parcel.expires <= now:
                self._end(serial, now)
            elif parcel.due <= now:
                parcel.pause = min(2 * parcel.pause, self._core.settings.resend_most)
                parcel.due = now + parcel.pause
                self._core.counts.resent += 1
                self._core.effects.send(parcel.to, parcel.msg)
        if self._open:
            due = min(min(one.due, one.expires) for one in self._open.values())
            self._core.timers.set(RESEND, due)

    def _end(self, serial: int, now: float) -> None:
        parcel = self._open.pop(serial)
        if parcel.delivered is not None:
            parcel.delivered(now)
