"""Gateways that die: how far everybody is, and for which of those who stand for a zone to wait.

History is kept for all of them, so that one that was only silent can come back.
"""

from __future__ import annotations

from math import inf

from protocols.topics.messages import LARGEST
from protocols.topics.receivers import Receivers
from protocols.topics.relation import Relation, Seat


class Heirs(Receivers):
    """A stream whose receivers may stand for others, and go on for each other."""

    _silent: tuple[Seat, ...] = ()  # gateways that say nothing, and lack something

    @property
    def floor(self) -> int:
        """All receivers have everything up to here."""
        lowest = self.history.newest
        for relation in self.relations.values():
            if relation.acked < lowest:
                lowest = relation.acked
        for orphan in self.orphans.values():
            lowest = min(lowest, orphan.position)
        return lowest

    @property
    def settled_upto(self) -> int:
        """The same for all who are waited for: upstream it counts, and for who flushes.

        Not for a gateway that says nothing while another one of its zone takes part, who was
        promised all that this one lacks: it acknowledges only what all behind it have. Nor when
        that one left since: up to where all behind it had everything, or wanted no more.
        """
        if not self._silent and not self.orphans:
            return self.floor
        lowest = self.history.newest
        for seat, relation in self.relations.items():
            if relation.acked < lowest:
                excused = self._excused(relation) if seat in self._silent else 0
                lowest = min(lowest, max(relation.acked, excused))
        for zone, orphan in self.orphans.items():
            if orphan.position < lowest and not self._has_heir(zone, orphan.position):
                lowest = min(lowest, max(orphan.position, orphan.excused))
        return lowest

    def _has_heir(self, zone: str, position: int, silent_since: float = -inf) -> bool:
        """Whether somebody who was heard since stands for a zone, and gets all after `position`."""
        return any(
            one.stands_for == zone and _covers(one, position) and one.heard_at > silent_since
            for one in self.relations.values()
        )

    def _bequeath(self, heir: Relation, upto: int) -> None:
        zone = heir.stands_for
        for one in self.relations.values():
            silent = not one.operational or one.heard_at < heir.heard_at
            if one.stands_for == zone and silent and _covers(heir, one.acked):
                one.excused = max(one.excused, upto)
        orphan = self.orphans.get(zone)
        if orphan is not None and _covers(heir, orphan.position):
            self.orphans[zone] = orphan._replace(excused=max(orphan.excused, upto))

    def _check_gateways(self, now: float) -> float:
        """See for which of them nobody has to wait; returns when that may change."""
        due, silent = inf, []
        for seat, relation in self.relations.items():
            if relation.stands_for:
                heard_at = max(relation.heard_at, relation.waits_since)
                silent_at = heard_at + self.core.settings.lost_grace
                if now < silent_at:
                    due = min(due, silent_at)
                elif relation.acked < self.history.newest:
                    silent.append(seat)
        if silent or self._silent:
            before = self.settled_upto
            self._silent = tuple(silent)
            if self.settled_upto != before:
                self.settled(now)
        return due

    def _heard(self, relation: Relation, now: float) -> None:
        super()._heard(relation, now)
        if self._silent:
            self._silent = tuple(seat for seat in self._silent if seat != relation.seat)

    def _excused(self, relation: Relation) -> int:
        """Up to where nobody has to wait for a gateway that is silent; 0: for all that it lacks."""
        # Of two who took part the one that was heard last is waited for, whatever comes.
        silent_since = relation.heard_at if relation.operational else -inf
        if self._has_heir(relation.stands_for, relation.acked, silent_since):
            return LARGEST
        return relation.excused


def _covers(heir: Relation, position: int) -> bool:
    """Whether it was promised all after a position."""
    return heir.operational and heir.begun <= position + 1
