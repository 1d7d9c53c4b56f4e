"""Between two brokers every message arrives once and in order, or its link counts as lost.

A link may lose frames, double them and let them overtake each other. The courier numbers what goes
to a neighbour, keeps it until it is confirmed, sends it again, and hands over in order. A *series*
ends when either side forgot it: after a restart, or when nothing was confirmed for `patience`. Who
waits for an answer is told then (`lost`). Where the other side says that it knows nothing of a
series, what it did not confirm is sent again in another one: nothing was done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random

import msgspec

from overlay.ids import NodeId
from overlay.protocol import Effects
from protocols.resources.config import ResourcesSettings
from protocols.resources.counts import ResourceCounts
from protocols.resources.messages import Carried, Receipt, Request, RequestId, Slip

RESEND = "resend"
EARLY = 512  # messages ahead of a missing one that are kept
BURST = 64  # messages that are sent again at a time
LONGEST = 2.0  # s between two tries
PAST = 8  # ended series of one neighbour that are recognised
PEERS = 4096  # whose ended series are


class Outgoing(msgspec.Struct):
    """What goes to one neighbour."""

    series: int
    next: int = 1
    unconfirmed: dict[int, Carried] = msgspec.field(default_factory=dict)
    resend_at: float = 0.0
    pause: float = 0.0
    confirmed_at: float = 0.0  # when the oldest unconfirmed one was first sent, or any confirmed


class Incoming(msgspec.Struct):
    """What comes from one neighbour."""

    series: int
    began: float
    expected: int = 1
    early: dict[int, Carried] = msgspec.field(default_factory=dict)


class Courier:
    """Carries messages to neighbours and from them.

    `lost(peer, kept, since, now)`: what the neighbour owed is lost, but for the requests in
    `kept`; and what it asked for before `since` it does not wait for any more.
    """

    def __init__(
        self,
        effects: Effects,
        rng: Random,
        config: ResourcesSettings,
        counts: ResourceCounts,
        lost: Callable[[NodeId, Collection[RequestId], float, float], None],
    ) -> None:
        self._effects = effects
        self._rng = rng
        self._config = config
        self._counts = counts
        self._lost = lost
        self._outgoing: dict[NodeId, Outgoing] = {}
        self._incoming: dict[NodeId, Incoming] = {}
        self._past: dict[NodeId, tuple[int, ...]] = {}
        self._to_confirm: dict[NodeId, None] = {}
        self._timer: float | None = None

    @property
    def unconfirmed(self) -> int:
        """How many messages wait for a confirmation."""
        return sum(len(out.unconfirmed) for out in self._outgoing.values())

    # -- sending ------------------------------------------------------------------------------

    def send(self, to: NodeId, msg: Carried, now: float) -> None:
        """Send it, as often as it takes."""
        out = self._outgoing.get(to)
        if out is None:
            out = self._outgoing[to] = Outgoing(self._rng.getrandbits(60) + 1)
        if not out.unconfirmed:
            out.pause = self._config.resend
            out.resend_at = now + out.pause
            out.confirmed_at = now
        numbered = _slipped(msg, out, out.next)
        out.unconfirmed[out.next] = numbered
        out.next += 1
        self._effects.send(to, numbered)
        self._arm(out.resend_at)

    def on_receipt(self, src: NodeId, msg: Receipt, now: float) -> None:
        """A neighbour confirms, or knows nothing of the series."""
        out = self._outgoing.get(src)
        if out is None or out.series != msg.series:
            return
        if msg.next == 0:
            del self._outgoing[src]
            known = self._incoming.get(src)
            since = now if known is None else known.began
            self._lost_link(src, _requests(out), since, now)
            for msg_again in out.unconfirmed.values():
                self.send(src, msg_again, now)
            return
        before = len(out.unconfirmed)
        for number in list(out.unconfirmed):
            if number >= msg.next:
                break
            del out.unconfirmed[number]
        if len(out.unconfirmed) < before:
            out.confirmed_at = now
            was_slow, out.pause = out.pause > self._config.resend, self._config.resend
            if was_slow and out.unconfirmed:
                self._resend(src, out, now)  # the next of what was lost need not wait as well
            out.resend_at = now + out.pause

    def on_timer(self, now: float) -> None:
        """Send again what is overdue; a neighbour that confirms nothing is lost."""
        self._timer = None
        for peer, out in list(self._outgoing.items()):
            if not out.unconfirmed:
                continue
            silent = now - out.confirmed_at > self._config.patience
            if silent or len(out.unconfirmed) > self._config.max_unconfirmed:
                self._give_up(peer, now)
            elif out.resend_at <= now:
                out.pause = min(out.pause * 2, max(LONGEST, self._config.resend))
                out.resend_at = now + out.pause
                self._resend(peer, out, now)
        waiting = [out.resend_at for out in self._outgoing.values() if out.unconfirmed]
        if waiting:
            self._arm(min(waiting))

    def _resend(self, peer: NodeId, out: Outgoing, now: float) -> None:
        for number in list(out.unconfirmed)[:BURST]:
            self._counts.resent += 1
            self._effects.send(peer, _slipped(out.unconfirmed[number], out, number))

    def _arm(self, at: float) -> None:
        if self._timer is None or at < self._timer:
            self._timer = at
            self._effects.set_timer(RESEND, at)

    # -- receiving ----------------------------------------------------------------------------

    def take(self, src: NodeId, msg: Carried, now: float) -> list[Carried]:
        """What is to be handled now, in order: nothing, this one, or more that waited for it."""
        slip = msg.slip
        known = self._incoming.get(src)
        if known is None or known.series != slip.series:
            if slip.base > 1 or slip.series in self._past.get(src, ()):
                # It goes on with an earlier life of this node, or with what this one forgot.
                self._counts.repeats_dropped += 1
                self._effects.send(src, Receipt(slip.series, 0))
                return []
            if known is not None:
                self._bury(src, known.series)
                out = self._outgoing.get(src)
                self._lost_link(src, {} if out is None else _requests(out), now, now)
            known = self._incoming[src] = Incoming(slip.series, now)
        if not self._to_confirm:
            self._effects.at_tick_end(self._confirm)
        self._to_confirm[src] = None
        if slip.number < known.expected or slip.number in known.early:
            self._counts.repeats_dropped += 1
            return []
        if slip.number > known.expected:
            if slip.number < known.expected + EARLY:
                known.early[slip.number] = msg
            else:
                self._counts.early_dropped += 1
            return []
        ready = [msg]
        known.expected += 1
        while known.expected in known.early:
            ready.append(known.early.pop(known.expected))
            known.expected += 1
        return ready

    def _confirm(self, now: float) -> None:
        for peer in self._to_confirm:
            known = self._incoming.get(peer)
            if known is not None:
                self._effects.send(peer, Receipt(known.series, known.expected))
        self._to_confirm.clear()

    # -- losing -------------------------------------------------------------------------------

    def forget(self, peer: NodeId) -> None:
        """A neighbour is gone: what was under way either way is lost."""
        self._outgoing.pop(peer, None)
        known = self._incoming.pop(peer, None)
        if known is not None:
            self._bury(peer, known.series)

    def _give_up(self, peer: NodeId, now: float) -> None:
        del self._outgoing[peer]
        self._lost_link(peer, (), now, now)

    def _lost_link(
        self, peer: NodeId, kept: Collection[RequestId], since: float, now: float
    ) -> None:
        self._counts.links_lost += 1
        self._lost(peer, kept, since, now)

    def _bury(self, peer: NodeId, series: int) -> None:
        past = (*self._past.pop(peer, ()), series)
        self._past[peer] = past[-PAST:]
        if len(self._past) > PEERS:
            del self._past[next(iter(self._past))]


def _requests(out: Outgoing) -> dict[RequestId, Request]:
    """Those that no life of the neighbour has confirmed."""
    return {one.id: one for one in out.unconfirmed.values() if isinstance(one, Request)}


def _slipped(msg: Carried, out: Outgoing, number: int) -> Carried:
    """The message with its place in the series; `base` is what is unconfirmed now."""
    base = next(iter(out.unconfirmed), number)
    return msgspec.structs.replace(msg, slip=Slip(out.series, number, base))
