"""The subscription routing table: advertisements, who offers them, and the chosen last hop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from overlay.predicates import Constraint, ConstraintIndex
from protocols.content.interface import Advertised, EntryId

_NOBODY: Mapping[NodeId, Advertised] = MappingProxyType({})


def preference(offer: Advertised) -> tuple[int, int, tuple[NodeId, ...], NodeId]:
    """The least is chosen: the newest epoch, the shortest path, the first in the order of names.

    It depends on nothing that happened before, so that all ways to one placement end alike.
    """
    return -offer.epoch, len(offer.path), offer.path, offer.hop


def says_the_same(one: Advertised, other: Advertised) -> bool:
    """Whether only epoch and way differ."""
    return (one.model, one.constraint, one.whole) == (other.model, other.constraint, other.whole)


class Srt:
    """All offers of advertisements, by id and hop, and the choice for each id."""

    def __init__(self, me: NodeId, *, stands_in: bool = True) -> None:
        self._me = me
        self._stands_in = stands_in  # a broker does; a client's own offers are all that it has
        self._offers: dict[EntryId, dict[NodeId, Advertised]] = {}
        self._chosen: dict[EntryId, Advertised] = {}
        self._by_model: dict[str, ConstraintIndex[EntryId]] = {}
        self.withheld: dict[NodeId, None] = {}  # clients whose offers do not count yet

    def __len__(self) -> int:
        return len(self._chosen)

    def __iter__(self) -> Iterator[Advertised]:
        return iter(self._chosen.values())

    def get(self, entry: EntryId) -> Advertised | None:
        """The chosen offer."""
        return self._chosen.get(entry)

    def offers(self, entry: EntryId) -> Mapping[NodeId, Advertised]:
        """What each hop says of it; also who offers a way through this broker."""
        return self._offers.get(entry, _NOBODY)

    def has_way(self, one: Advertised, hop: NodeId) -> bool:
        """Whether a hop has a way of its own to that publisher; an older epoch's is none."""
        offer = self.offers(one.id).get(hop)
        return offer is not None and offer.epoch >= one.epoch

    def all_offers(self) -> Iterator[Advertised]:
        """Everything that any hop says."""
        return (offer for offers in self._offers.values() for offer in offers.values())

    def intersecting(self, constraint: Constraint, model: str) -> list[Advertised]:
        """The chosen advertisements that intersect a subscription."""
        index = self._by_model.get(model)
        return (
            []
            if index is None
            else [self._chosen[entry] for entry in index.intersecting(constraint)]
        )

    def index(self, model: str) -> ConstraintIndex[EntryId] | None:
        """The chosen advertisements of a model."""
        return self._by_model.get(model)

    def put(self, offer: Advertised) -> None:
        """A hop offers it; `choose` says what changed."""
        self._offers.setdefault(offer.id, {})[offer.hop] = offer

    def remove(self, entry: EntryId, hop: NodeId) -> Advertised | None:
        """A hop offers it no more."""
        offers = self._offers.get(entry)
        gone = None if offers is None else offers.pop(hop, None)
        if not offers:
            self._offers.pop(entry, None)
        return gone

    def best(self, entry: EntryId) -> Advertised | None:
        """The offer to choose; one that may use a tree gives way to one that has it.

        This node's own one for an absent client uses a tree, or is nothing.
        """
        usable = [
            offer
            for offer in self.offers(entry).values()
            if self._me not in offer.path
            and not self.is_withheld(offer)
            and not (offer.graft and offer.hop == self._me and self._stands_in)
        ]
        if not usable:
            return None
        best = min(usable, key=preference)
        if best.graft:
            trees = [
                one
                for one in usable
                if not one.graft and one.epoch >= best.graft and says_the_same(one, best)
            ]
            if trees:
                return min(trees, key=preference)
        return best

    def is_withheld(self, offer: Advertised) -> bool:
        """Whether it is of a client that has not been handed over."""
        return not offer.path and offer.hop in self.withheld

    def unchoose(self, entry: EntryId) -> None:
        """It is in the table no more."""
        index = self._by_model[self._chosen.pop(entry).model]
        index.remove(entry)

    def choose(self, offer: Advertised) -> None:
        """It is in the table, and was not."""
        self._by_model.setdefault(offer.model, ConstraintIndex()).add(offer.id, offer.constraint)
        self._chosen[offer.id] = offer

    def reroute(self, offer: Advertised) -> None:
        """It is in the table with another last hop, path or note."""
        self._chosen[offer.id] = offer

    def check(self) -> None:
        """Each choice is the best of its offers."""
        for entry, offers in self._offers.items():
            if not offers or self.best(entry) != self._chosen.get(entry):
                raise InvariantViolation(f"{self._me}: {entry} has a better offer")
        for entry in self._chosen:
            if entry not in self._offers:
                raise InvariantViolation(f"{self._me}: nobody offers {entry}")
