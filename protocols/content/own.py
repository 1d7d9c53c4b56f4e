"""What this node itself advertises and wants: names, bounds, epochs and sequence numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from overlay.predicates import Constraint, Item, check_item, determines
from overlay.protocol import Effects
from protocols.content.config import ContentSettings
from protocols.content.interface import Advertised, EntryId, Subscribed, entry_id
from protocols.content.messages import MAX_MODEL, MAX_NAME, MAX_NOTE, Publication

EPOCH = b"epoch"  # the key under which a bound of all epochs is kept
EPOCHS_PER_SECOND = 1000
EPOCHS_KEPT = 60 * EPOCHS_PER_SECOND  # so far ahead of what is used: a write each minute at most


class Epochs:
    """Numbers that grow with each advertisement, also from one life of the node to the next.

    The node's clock is Unix time; it may be set back between two lives, so a bound is kept.
    """

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._last = self._kept = 0

    def start(self, kept: Mapping[bytes, bytes]) -> None:
        """Go on after those of an earlier life."""
        if kept.get(EPOCH, b"").isdigit():
            self._last = self._kept = int(kept[EPOCH])

    def next(self, now: float) -> int:
        """Later than any before."""
        self._last = max(self._last + 1, int(now * EPOCHS_PER_SECOND))
        if self._last > self._kept:
            self._kept = self._last + EPOCHS_KEPT
            self._effects.store(EPOCH, str(self._kept).encode(), EPOCH)
        return self._last


class OwnAdvertisement:
    """One advertisement of this node, and how far it has published."""

    __slots__ = ("offer", "root", "sequence")

    def __init__(self, offer: Advertised, sequence: int) -> None:
        self.offer = offer
        self.root = offer.epoch  # of the tree that it has, as far as is known here
        self.sequence = sequence  # goes on in the next epoch


class OwnEntries:
    """The entries of this node's applications."""

    def __init__(self, me: NodeId, effects: Effects, config: ContentSettings) -> None:
        self._me = me
        self._config = config
        self._advertised: dict[EntryId, OwnAdvertisement] = {}
        self._subscribed: dict[EntryId, None] = {}
        self.epochs = Epochs(effects)
        self.alone = False  # nothing covers what is advertised here, and it covers nothing

    def advertise(
        self, name: str, constraint: Constraint, model: str, whole: bool, note: bytes, now: float
    ) -> Advertised:
        """The offer to make; with the epoch of before when it says nothing new."""
        entry = self._checked(name, model)
        if len(note) > MAX_NOTE:
            raise LocalProtocolError(f"a note of {len(note)} bytes: at most {MAX_NOTE}")
        before = self._advertised.get(entry)
        most = self._config.client_advertisements
        if before is None and len(self._advertised) >= most:
            raise LocalProtocolError(
                f"{most} advertisements: withdraw some, or raise content.client_advertisements"
            )
        said = (constraint, model, whole or self.alone, note)
        if before is not None and before.offer[2:6] == said:
            return before.offer
        offer = Advertised(entry, self.epochs.next(now), *said, self._me)
        sequence = 0 if before is None else before.sequence
        self._advertised[entry] = OwnAdvertisement(offer, sequence)
        return offer

    def unadvertise(self, name: str) -> EntryId:
        """The id of what is advertised no more."""
        entry = entry_id(self._me, name)
        if self._advertised.pop(entry, None) is None:
            raise LocalProtocolError(f"{name!a} is not advertised by {self._me}")
        return entry

    def again(self, now: float, *, graft: bool, epoch: int = 0) -> Iterator[Advertised]:
        """Everything in a new epoch, for another broker; with `graft` it may use the old trees."""
        for own in self._advertised.values():
            new = epoch if epoch > own.offer.epoch else self.epochs.next(now)
            if not graft:
                own.root = new
            own.offer = own.offer._replace(epoch=new, graft=own.root if graft else 0)
            yield own.offer

    def subscribe(self, name: str, constraint: Constraint, model: str) -> Subscribed:
        """The row to add."""
        entry = self._checked(name, model)
        most = self._config.client_subscriptions
        if entry not in self._subscribed and len(self._subscribed) >= most:
            raise LocalProtocolError(
                f"{most} subscriptions: end some, or raise content.client_subscriptions"
            )
        self._subscribed[entry] = None
        return Subscribed(entry, constraint, model, self._me)

    def unsubscribe(self, name: str) -> EntryId:
        """The id of what is wanted no more."""
        entry = entry_id(self._me, name)
        if entry not in self._subscribed:
            raise LocalProtocolError(f"{name!a} is not subscribed to by {self._me}")
        del self._subscribed[entry]
        return entry

    def publish(self, name: str, item: Item) -> Publication:
        """The publication, with the next sequence number."""
        entry = entry_id(self._me, name)
        own = self._advertised.get(entry)
        if own is None:
            raise LocalProtocolError(
                f"{name!a} is not advertised by {self._me}: advertise it first"
            )
        checked = check_item(item)
        if not determines(own.offer.constraint, checked):
            raise LocalProtocolError(
                f"the advertisement {name!a} does not determine the item:"
                f" it is {own.offer.constraint}"
            )
        own.sequence += 1
        return Publication(entry, own.offer.epoch, own.sequence, checked, own.offer.model)

    def rooted(self, entry: EntryId, epoch: int) -> None:
        """Its tree is that of this epoch."""
        own = self._advertised.get(entry)
        if own is not None:
            own.root = max(own.root, min(epoch, own.offer.epoch))

    def epoch(self, entry: EntryId) -> int | None:
        """The epoch in which it is advertised now."""
        own = self._advertised.get(entry)
        return None if own is None else own.offer.epoch

    def _checked(self, name: str, model: str) -> EntryId:
        if not name or len(name.encode()) > MAX_NAME:
            raise LocalProtocolError(f"a name of {len(name)} characters: give 1 to {MAX_NAME}")
        if len(model) > MAX_MODEL:
            raise LocalProtocolError(f"a model of {len(model)} characters: at most {MAX_MODEL}")
        return entry_id(self._me, name)
