"""Standing in: what a broker advertises for clients that are not there, and for how long."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from overlay.protocol import Effects
from protocols.content.interface import Advertised, EntryId, MobileContent, owner_of
from protocols.mobility.config import MobilitySettings
from protocols.mobility.counts import MobilityCounts

STAND = "stand"  # and the advertisement: its time may be over

Reason: TypeAlias = Literal["kept", "expected", "proxy"]


class Stand:
    """One advertisement that this broker makes for a client."""

    __slots__ = ("is_resting", "offer", "reason", "until")

    def __init__(self, offer: Advertised, reason: Reason, until: float) -> None:
        self.offer = offer
        self.reason: Reason = reason
        self.until = until
        self.is_resting = False  # its time is over, but sources need the anchor


def _replaces(new: Advertised, old: Advertised) -> bool:
    """Whether a stand-in says the newer one; the anchor of a tree does not become a graft on it."""
    if new.graft:
        return new.epoch > old.epoch if old.graft else new.graft > old.epoch
    return new.epoch > old.epoch or (old.graft > 0 and new.epoch == old.epoch)


class Standing:
    """All stand-ins of one broker."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        config: MobilitySettings,
        content: MobileContent,
        counts: MobilityCounts,
    ) -> None:
        self._me = me
        self._effects = effects
        self._config = config
        self._content = content
        self._counts = counts
        self._stands: dict[EntryId, Stand] = {}

    def __len__(self) -> int:
        return len(self._stands)

    def keep(self, client: NodeId, reason: Reason, seconds: float, now: float) -> None:
        """Go on advertising what a client that leaves advertised."""
        for offer in self._content.moving.offers_of(client):
            self.add(offer._replace(hop=self._me), reason, seconds, now)

    def add(self, offer: Advertised, reason: Reason, seconds: float, now: float) -> None:
        """Advertise it for so long, on the tree that this broker is the anchor of, if it is."""
        stand = self._stands.get(offer.id)
        if stand is None:
            if len(self._stands) >= self._config.max_standing:
                self._counts.not_stood_in += 1
                return
            self._counts.stood_in += 1
            stand = self._stands[offer.id] = Stand(offer, reason, now + seconds)
        elif _replaces(offer, stand.offer):
            stand.offer = offer
        if stand.reason != "proxy" or reason == "proxy":
            stand.reason, stand.until = reason, now + seconds
        stand.is_resting = False
        self._content.moving.stand_in(stand.offer)
        self._effects.set_timer((STAND, offer.id), stand.until)

    def came(self, client: NodeId, now: float) -> None:
        """A client is here: what is advertised for it gives way to what it says itself."""
        for offer in self._content.moving.offers_of(client):
            stand = self._stands.get(offer.id)
            if stand is None or stand.reason == "proxy" or offer.epoch < stand.offer.epoch:
                continue
            known = self._content.advertisement(offer.id)
            if offer.graft and known is not None and known.hop == self._me:  # back at its anchor
                stand.until = now
                self.on_timer(offer.id, now)
            else:
                self._end(offer.id)

    def limit(self, entries: Iterable[EntryId], until: float, now: float) -> None:
        """Keep them no longer than that, for whomever they were kept."""
        for entry in entries:
            stand = self._stands.get(entry)
            if stand is not None and stand.reason == "kept":
                stand.until = until
                self.on_timer(entry, now)

    def drop(self, entries: Iterable[EntryId]) -> None:
        """Advertise them no more."""
        for entry in entries:
            if entry in self._stands:
                self._end(entry)

    def end_for(self, client: NodeId) -> None:
        """Advertise nothing more for that client."""
        self.drop([entry for entry in self._stands if owner_of(entry) == client])

    def on_timer(self, entry: EntryId, now: float) -> None:
        """Its time may be over."""
        stand = self._stands.get(entry)
        if stand is None:
            return
        if now < stand.until:
            self._effects.set_timer((STAND, entry), stand.until)
        elif not self._content.moving.is_needed(entry, self._me):
            self._end(entry)
        else:
            if not stand.is_resting:
                stand.is_resting = True
                self._content.moving.rest(entry)
            self._effects.set_timer((STAND, entry), now + 2 * self._config.retry)

    def changed(self, one: Advertised) -> None:
        """An advertisement is known in another way: perhaps in a newer epoch, from elsewhere."""
        stand = self._stands.get(one.id)
        if stand is not None and one.hop != self._me and one.epoch > stand.offer.epoch:
            self._end(one.id)

    def _end(self, entry: EntryId) -> None:
        del self._stands[entry]
        self._effects.cancel_timer((STAND, entry))
        self._content.moving.step_down(entry, self._me)

    def check(self) -> None:
        """The bound holds."""
        if len(self._stands) > self._config.max_standing:
            raise InvariantViolation(f"{self._me} stands in for {len(self._stands)}")
