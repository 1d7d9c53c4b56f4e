"""Ranges of the ring: who is in one, and how a member splits it among its neighbours."""

from __future__ import annotations

from collections.abc import Container, Iterable
from itertools import takewhile
from typing import NamedTuple

from overlay.ids import FULL_SPACE, NodeId, Ring, Vid, vid_of


class Arc(NamedTuple):
    """The key space from `start` clockwise up to, not including, `upto`: nothing if equal."""

    start: Vid
    upto: Vid

    def holds(self, vid: Vid) -> bool:
        """Whether that place is in it."""
        return FULL_SPACE.distance(self.start, vid) < FULL_SPACE.distance(self.start, self.upto)

    def without(self, vid: Vid) -> tuple[Arc, ...]:
        """What is left of it on both sides of a place."""
        if not self.holds(vid):
            return (self,)
        sides = Arc(self.start, vid), Arc(after(vid), self.upto)
        return tuple(side for side in sides if side.start != side.upto)


class Part(NamedTuple):
    """A part of an arc, and the member inside of it who sees to it."""

    head: NodeId
    arc: Arc


def after(vid: Vid) -> Vid:
    """The next place."""
    return FULL_SPACE.add(vid, 1)


def everybody_but(me: NodeId) -> Arc:
    """The whole ring without that member."""
    return Arc(after(vid_of(me)), vid_of(me))


def members_in(arc: Arc, ring: Ring) -> list[NodeId]:
    """The members in an arc, clockwise."""
    if arc.start == arc.upto or not len(ring):
        return []
    first = ring.responsible_for(arc.start)
    clockwise = [first, *ring.successors(first, len(ring))]
    return list(takewhile(lambda name: arc.holds(vid_of(name)), clockwise))


def split(
    arc: Arc,
    ring: Ring,
    neighbours: Iterable[NodeId],
    lost: Container[NodeId] = (),
    *,
    balanced: bool = False,
) -> list[Part]:
    """Cut an arc into parts that each hold a neighbour, who becomes its head.

    The parts tile the arc, so a member whom only others know is in one of them; none is left when
    nobody is in it who is not `lost`. Where no neighbour sits at the front, the first member is a
    head all the same. `balanced` adds the one in the middle: no part has more than half of them.
    """
    first = _first(arc, ring, lost)
    if first is None:
        return []
    start, width = arc.start, FULL_SPACE.distance(arc.start, arc.upto)
    found = {first: FULL_SPACE.distance(start, vid_of(first))}
    if balanced:
        inside = [name for name in members_in(arc, ring) if name not in lost]
        middle = inside[len(inside) // 2]
        found[middle] = FULL_SPACE.distance(start, vid_of(middle))
    for peer in neighbours:
        distance = FULL_SPACE.distance(start, vid_of(peer))
        if distance < width and peer not in lost and peer in ring:
            found[peer] = distance
    heads = sorted(found, key=found.__getitem__)
    starts = [start, *(vid_of(head) for head in heads[1:])]
    ends = [*starts[1:], arc.upto]
    return [
        Part(head, Arc(begin, end)) for head, begin, end in zip(heads, starts, ends, strict=True)
    ]


def _first(arc: Arc, ring: Ring, lost: Container[NodeId]) -> NodeId | None:
    """The first member in an arc who is not lost."""
    if arc.start == arc.upto or not len(ring):
        return None
    name = ring.responsible_for(arc.start)
    if arc.holds(vid_of(name)) and name in lost:
        return next((name for name in members_in(arc, ring) if name not in lost), None)
    return name if arc.holds(vid_of(name)) else None
