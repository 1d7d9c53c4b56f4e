"""The broker that a client comes to: it asks the previous one, lets trees begin, sounds them."""

from __future__ import annotations

from overlay.ids import NodeId
from overlay.protocol import Effects
from protocols.content.interface import Advertised, MobileContent
from protocols.mobility.config import MobilitySettings
from protocols.mobility.counts import MobilityCounts
from protocols.mobility.events import ClientMovedIn
from protocols.mobility.leaving import Leaving
from protocols.mobility.messages import (
    GRAFTING,
    HandedOver,
    Handover,
    MoveIn,
    Root,
    TreeReady,
)
from protocols.mobility.proxies import ProxySets
from protocols.mobility.sounding import Sounding
from protocols.mobility.standing import Standing

ARRIVE = "arrive"  # and a client: somebody has not answered
TRANSIT = "transit"  # and a client that left before it was handed over
ANCHOR = "anchor"  # and a client: it has stayed, and its trees may be rooted here


class Arrival:
    """A client that came, until its trees stand."""

    __slots__ = ("complete", "deadline", "is_handed_over", "is_ready", "move", "sounding")

    def __init__(self, move: MoveIn, deadline: float) -> None:
        self.move = move
        self.deadline = deadline
        self.is_handed_over = False
        self.sounding = -1  # trees that are asked; negative: not yet begun
        self.complete = True
        self.is_ready = False


class Arriving:
    """All clients that moved in here, and are still here."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        config: MobilitySettings,
        content: MobileContent,
        counts: MobilityCounts,
        standing: Standing,
        sounding: Sounding,
        leaving: Leaving,
        proxies: ProxySets,
    ) -> None:
        self._me = me
        self._effects = effects
        self._config = config
        self._content = content
        self._counts = counts
        self._standing = standing
        self._sounding = sounding
        self._leaving = leaving
        self._proxies = proxies
        self._arrivals: dict[NodeId, Arrival] = {}
        self._transits: dict[NodeId, Arrival] = {}

    def __len__(self) -> int:
        return len(self._arrivals)

    def moved_in(self, client: NodeId, msg: MoveIn, now: float) -> None:
        """A client comes, or asks again."""
        arrival = self._arrivals.get(client)
        if arrival is not None and arrival.move.number == msg.number:
            arrival.move = msg
            if arrival.is_ready:
                self._tell_ready(client, arrival)
            else:
                self._proceed(client, arrival, now)
            return
        if arrival is not None and msg.number < arrival.move.number:
            self._counts.strays += 1  # of an earlier move: late
            return
        if arrival is None and len(self._arrivals) >= self._config.max_arrivals:
            self._counts.not_taken += 1
            return
        arrival = self._arrivals[client] = Arrival(msg, now + self._config.patience)
        self._effects.emit(ClientMovedIn(client, msg.previous))
        if msg.algorithm == "proxy":
            self._proxies.begin(client, msg.proxies, now)
        if msg.handing == "lossless" and msg.previous:
            self._content.moving.withhold(client)
        else:
            arrival.is_handed_over = True
        self._effects.set_timer((ARRIVE, client), now + self._config.retry)
        if msg.previous not in ("", self._me):
            self._ask(client, msg)
        self._proceed(client, arrival, now)

    def handed_over(self, msg: HandedOver, now: float) -> None:
        """Nothing is under way at the previous broker."""
        transit = self._transits.get(msg.client)
        if transit is not None and transit.move.number == msg.number:
            self._passed(msg.client, now)
            return
        arrival = self._arrivals.get(msg.client)
        if arrival is None or arrival.move.number != msg.number:
            self._counts.strays += 1
            return
        arrival.is_handed_over = True
        self._proceed(msg.client, arrival, now)

    def came_by(self, client: NodeId) -> int:
        """The number of the move by which a client came here; 0 if it did not move."""
        arrival = self._arrivals.get(client)
        return 0 if arrival is None else arrival.move.number

    def passes(self, client: NodeId, now: float) -> bool:
        """Whether a client leaves before it was handed over: who asks for it must wait for that."""
        arrival = self._arrivals.get(client)
        if arrival is None or arrival.is_handed_over or arrival.move.previous == self._me:
            return False
        self._transits[client] = arrival
        self._effects.set_timer((TRANSIT, client), now + self._config.retry)
        return True

    def ask_for_transit(self, client: NodeId, now: float) -> None:
        """The broker before the last one has not answered."""
        transit = self._transits.get(client)
        if transit is None:
            return
        if now >= transit.deadline:
            self._counts.not_handed_over += 1
            self._passed(client, now)
        else:
            self._ask(client, transit.move)
            self._effects.set_timer((TRANSIT, client), now + self._config.retry)

    def _passed(self, client: NodeId, now: float) -> None:
        del self._transits[client]
        self._effects.cancel_timer((TRANSIT, client))
        self._leaving.passed(client, now)
        arrival = self._arrivals.get(client)
        if arrival is not None:
            self._proceed(client, arrival, now)

    def told(self, client: NodeId, now: float) -> None:
        """A client's ledger was read."""
        if self._leaving.is_flushed(client):
            self._standing.came(client, now)
        self._proxies.renew(client, now)
        if self._config.reanchor:
            self._effects.set_timer((ANCHOR, client), now + self._config.reanchor)
        arrival = self._arrivals.get(client)
        if arrival is not None:
            self._proceed(client, arrival, now)

    def stayed(self, client: NodeId) -> None:
        """It has been here for long: its trees are built anew from here, unless it has proxies."""
        if client in self._content.clients() and not self._proxies.of(client):
            self._content.moving.anchor(client)

    def chose(self, client: NodeId, proxies: tuple[NodeId, ...]) -> None:
        """A client at its first broker has these proxies."""
        arrival = self._arrivals.get(client)
        if arrival is not None and arrival.is_ready:
            number = arrival.move.number
            self._effects.send(client, TreeReady(number, True, proxies=proxies, stands=False))

    def rooted(self, one: Advertised) -> None:
        """A tree begins here: its publisher must know, or it would use an older one some day."""
        arrival = self._arrivals.get(one.hop)
        if arrival is not None and arrival.move.algorithm in GRAFTING:
            number = arrival.move.number
            roots = (Root(one.id, one.epoch),)
            self._effects.send(one.hop, TreeReady(number, True, roots=roots, stands=False))

    def gone(self, client: NodeId) -> None:
        """It is here no more."""
        self._effects.cancel_timer((ANCHOR, client))
        self._proxies.end(client)
        if self._arrivals.pop(client, None) is not None:
            self._effects.cancel_timer((ARRIVE, client))
            self._content.moving.admit(client)

    def on_timer(self, client: NodeId, now: float) -> None:
        """Ask again, or go on without an answer."""
        arrival = self._arrivals.get(client)
        if arrival is None or arrival.is_ready:
            return
        if now >= arrival.deadline:
            if client not in self._content.clients():
                self.gone(client)
                return
            if not arrival.is_handed_over:
                self._counts.not_handed_over += 1
                arrival.is_handed_over = True
                arrival.complete = False
        elif not arrival.is_handed_over and arrival.move.previous != self._me:
            self._ask(client, arrival.move)
        self._proceed(client, arrival, now)
        if not arrival.is_ready:
            self._effects.set_timer((ARRIVE, client), now + self._config.retry)

    def _ask(self, client: NodeId, msg: MoveIn) -> None:
        self._effects.send(msg.previous, Handover(client, msg.number, msg.algorithm, msg.handing))

    def _proceed(self, client: NodeId, arrival: Arrival, now: float) -> None:
        """Do what can be done by now."""
        move = arrival.move
        if not arrival.is_handed_over:
            if move.previous != self._me or not self._leaving.is_flushed(client):
                return
            arrival.is_handed_over = True
        self._content.moving.admit(client)
        if self._leaving.is_flushed(client):
            self._standing.came(client, now)
        if arrival.sounding >= 0 or not self._content.moving.has_read(
            client, move.series, move.stamp
        ):
            return
        if move.handing == "best-effort":
            self._ready(client, arrival)
            return
        entries = [one.id for one in self._content.moving.offers_of(client)]
        arrival.sounding = len(entries)
        if not entries:
            self._ready(client, arrival)

        def sounded(complete: bool, when: float) -> None:
            arrival.sounding -= 1
            arrival.complete &= complete
            if not arrival.sounding:
                self._ready(client, arrival)

        for entry in entries:
            self._sounding.begin(entry, sounded, now)

    def _ready(self, client: NodeId, arrival: Arrival) -> None:
        if self._arrivals.get(client) is not arrival or arrival.is_ready:
            return
        arrival.is_ready = True
        arrival.sounding = max(arrival.sounding, 0)
        self._counts.incomplete += not arrival.complete
        self._effects.cancel_timer((ARRIVE, client))
        if arrival.move.handing != "best-effort" or arrival.move.algorithm == "proxy":
            self._tell_ready(client, arrival)

    def _tell_ready(self, client: NodeId, arrival: Arrival) -> None:
        proxies = self._proxies.of(client)
        self._effects.send(client, TreeReady(arrival.move.number, arrival.complete, proxies))
