"""Covering: which advertisement stands for another, and which subscriptions need not be told."""

from __future__ import annotations

from typing import NamedTuple

from overlay.errors import InvariantViolation
from overlay.predicates import Constraint, ConstraintIndex, advertisement_covers, covers
from protocols.content.interface import Advertised, EntryId
from protocols.content.srt import Srt


def is_senior(one: Advertised, other: Advertised) -> bool:
    """Whether the first was advertised before the other; all brokers agree on it."""
    return (one.epoch, one.id) < (other.epoch, other.id)


def stands_over(one: Advertised, other: Advertised) -> bool:
    """Whether the first covers the other; of two that determine the same the senior one does.

    What every broker must know is covered by nothing, and covers nothing: so a table of resources,
    all of them `whole`, costs no comparisons.
    """
    return (
        not one.whole
        and not other.whole
        and one.id != other.id
        and advertisement_covers(one.constraint, other.constraint)
        and (is_senior(one, other) or not advertisement_covers(other.constraint, one.constraint))
    )


class AdvertisementCovers:
    """The cover of each advertisement: the senior one of those over it that have nothing over them.

    All brokers that know the same advertisements find the same covers, in whatever order they
    learned of them.
    """

    def __init__(self, srt: Srt) -> None:
        self._srt = srt
        self._cover: dict[EntryId, EntryId] = {}
        self._covered: dict[EntryId, dict[EntryId, None]] = {}
        self.touched: dict[EntryId, None] = {}  # stand for others, or fewer, than the reader knows

    def cover_of(self, entry: EntryId) -> Advertised | None:
        """What stands for it; None: it stands for itself."""
        cover = self._cover.get(entry)
        return None if cover is None else self._srt.get(cover)

    def covered_by(self, entry: EntryId) -> list[EntryId]:
        """Those that it stands for."""
        return list(self._covered.get(entry, ()))

    def added(self, new: Advertised) -> dict[EntryId, None]:
        """The SRT has a new one: which others have another cover now."""
        if new.whole:
            return {}
        cover = self._find(new)
        self._set(new.id, cover)
        changed: dict[EntryId, None] = {}
        if cover is not None:
            return changed  # what is over the new one is over all that the new one is over
        for other in self._below(new):
            before = self.cover_of(other.id)
            if before is None or not stands_over(new, before):
                after = new.id if before is None or is_senior(new, before) else before.id
            else:
                after = self._find(other) or new.id
            self._change(other.id, after, changed)
        return changed

    def removed(self, old: Advertised) -> dict[EntryId, None]:
        """The SRT has it no more: which others have another cover now."""
        if old.whole:
            return {}
        self._set(old.id, None)
        changed: dict[EntryId, None] = {}
        freed: list[Advertised] = []
        for entry in self.covered_by(old.id):
            orphan = self._srt.get(entry)
            assert orphan is not None
            after = self._find(orphan)
            self._change(entry, after, changed)
            if after is None:
                freed.append(orphan)
        for one in freed:  # each of them may stand for others, as the senior
            for other in self._below(one):
                before = self.cover_of(other.id)
                if before is None or is_senior(one, before):
                    self._change(other.id, one.id, changed)
        return changed

    def _find(self, below: Advertised) -> EntryId | None:
        """The cover, from the definition; whoever is over one of those over it is one of them."""
        index = self._srt.index(below.model)
        if index is None:
            return None
        found = (self._srt.get(entry) for entry in index.advertisement_covering(below.constraint))
        above = [one for one in found if one is not None and stands_over(one, below)]
        above.sort(key=lambda one: (one.epoch, one.id))
        for one in above:
            if not any(stands_over(other, one) for other in above):
                return one.id
        return None

    def _below(self, one: Advertised) -> list[Advertised]:
        index = self._srt.index(one.model)
        assert index is not None
        found = (self._srt.get(entry) for entry in index.advertisement_covered_by(one.constraint))
        return [other for other in found if other is not None and stands_over(one, other)]

    def _change(self, entry: EntryId, cover: EntryId | None, changed: dict[EntryId, None]) -> None:
        if self._cover.get(entry) != cover:
            self._set(entry, cover)
            changed[entry] = None

    def _set(self, entry: EntryId, cover: EntryId | None) -> None:
        before = self._cover.pop(entry, None)
        if before is not None:
            self.touched[before] = None
            del self._covered[before][entry]
            if not self._covered[before]:
                del self._covered[before]
        if cover is not None:
            self.touched[cover] = None
            self._cover[entry] = cover
            self._covered.setdefault(cover, {})[entry] = None

    def check(self) -> None:
        """Each cover is the one of the definition."""
        for one in self._srt:
            if self._cover.get(one.id) != self._find(one):
                raise InvariantViolation(f"{one.id} has the cover {self._cover.get(one.id)}")


class Wish(NamedTuple):
    """A subscription that a neighbour must get, itself or by another one that covers it."""

    constraint: Constraint
    model: str


class SubscriptionCovers:
    """What one neighbour was told of subscriptions, and what others of them cover (figure 3)."""

    def __init__(self) -> None:
        self._wishes: dict[EntryId, Wish] = {}
        self._told: dict[str, ConstraintIndex[EntryId]] = {}
        self._suppressed: dict[str, ConstraintIndex[EntryId]] = {}

    def __contains__(self, entry: object) -> bool:
        return entry in self._wishes

    def ids(self) -> list[EntryId]:
        """Everything wished for."""
        return list(self._wishes)

    def wish(self, entry: EntryId) -> Wish | None:
        """What was wished for under that id."""
        return self._wishes.get(entry)

    def is_told(self, entry: EntryId) -> bool:
        """Whether the neighbour has it itself."""
        wish = self._wishes.get(entry)
        return wish is not None and entry in self._told.get(wish.model, ())

    def want(self, entry: EntryId, wish: Wish) -> bool:
        """Add one that is not there; true: it must be told, since nothing told covers it."""
        self._wishes[entry] = wish
        told = self._told.setdefault(wish.model, ConstraintIndex())
        if told.covering(wish.constraint):
            self._suppressed.setdefault(wish.model, ConstraintIndex()).add(entry, wish.constraint)
            return False
        told.add(entry, wish.constraint)
        return True

    def unwant(self, entry: EntryId) -> list[EntryId]:
        """Take one out; those that it alone had covered must be told."""
        wish = self._wishes.pop(entry)
        told = self._told[wish.model]
        suppressed = self._suppressed.get(wish.model)
        if entry not in told:
            assert suppressed is not None
            suppressed.remove(entry)
            return []
        told.remove(entry)
        restored: list[EntryId] = []
        if suppressed:
            for other in suppressed.covered_by(wish.constraint):
                if not told.covering(suppressed[other]):
                    told.add(other, suppressed.remove(other))
                    restored.append(other)
        return restored

    def check(self) -> None:
        """Everything suppressed is covered by something told."""
        for entry, wish in self._wishes.items():
            told = self._told[wish.model]
            if entry not in told and not any(covers(told[one], wish.constraint) for one in told):
                raise InvariantViolation(f"{entry} is suppressed, and nothing covers it")
