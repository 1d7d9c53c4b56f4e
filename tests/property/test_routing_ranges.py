"""Splitting ranges covers each member exactly once, on any ring, over any links, by any views."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import ceil, log2

from hypothesis import given
from hypothesis.strategies import DataObject, data, integers, lists, sampled_from, sets

from overlay.ids import NodeId, Ring, vid_of
from protocols.routing.arcs import Arc, everybody_but, members_in, split

NAMES = [f"m{index}" for index in range(40)]
MEMBERS = sets(sampled_from(NAMES), min_size=1, max_size=24).map(sorted)
PLACES = integers(0, 2**128 - 1)


class Zone:
    """Members who each have a view and links of their own; some are dead, and nobody knows."""

    def __init__(
        self,
        views: dict[NodeId, Ring],
        links: dict[NodeId, list[NodeId]],
        dead: list[NodeId],
        *,
        balanced: bool = False,
    ) -> None:
        self.views = views
        self.links = links
        self.dead = dead
        self.balanced = balanced
        self.got: Counter[NodeId] = Counter()
        self.depth = 0

    def broadcast(self, origin: NodeId) -> None:
        self.got[origin] += 1
        self._hand_on(origin, everybody_but(origin), 0, ())

    def _hand_on(self, me: NodeId, arc: Arc, hops: int, lost: tuple[NodeId, ...]) -> None:
        parts = split(arc, self.views[me], self.links[me], lost, balanced=self.balanced)
        for part in parts:
            assert part.arc.holds(vid_of(part.head))
            if part.head in self.views and part.head not in self.dead:
                self._take(part.head, part.arc, hops + 1)
            else:  # it never answers: cut its arc anew
                self._hand_on(me, part.arc, hops, (*lost, part.head))

    def _take(self, me: NodeId, arc: Arc, hops: int) -> None:
        self.got[me] += 1
        self.depth = max(self.depth, hops)
        for side in arc.without(vid_of(me)):
            self._hand_on(me, side, hops, ())


def some_links(choices: DataObject, members: list[NodeId]) -> dict[NodeId, list[NodeId]]:
    """Links as they come: of one way, or none at all."""
    return {
        me: choices.draw(lists(sampled_from(members), max_size=6, unique=True)) for me in members
    }


@given(MEMBERS, data())
def test_each_member_gets_it_once(members: list[NodeId], choices: DataObject) -> None:
    ring = Ring(members)
    zone = Zone(dict.fromkeys(members, ring), some_links(choices, members), [])
    zone.broadcast(choices.draw(sampled_from(members)))
    assert zone.got == Counter(members)


@given(MEMBERS, data())
def test_with_stale_views_nobody_gets_it_twice(members: list[NodeId], choices: DataObject) -> None:
    """Views lack members, and hold some who are dead or never were."""
    views = {}
    for me in members:
        unknown = choices.draw(sets(sampled_from(NAMES), max_size=4)) - {me}
        ghosts = choices.draw(sets(sampled_from(NAMES), max_size=4))
        views[me] = Ring(sorted({*members, *ghosts} - unknown))
    dead = choices.draw(lists(sampled_from(members), max_size=4, unique=True))
    zone = Zone(views, some_links(choices, members), dead)
    origin = choices.draw(sampled_from(members))
    zone.broadcast(origin)
    assert set(zone.got.values()) == {1}
    assert set(zone.got) <= {*members}
    alive = [name for name in members if name not in dead]
    known = [name for name in alive if all(name in views[me] for me in alive)]
    assert set(known) - {origin} <= set(zone.got)


@given(MEMBERS, data())
def test_halving_bounds_the_depth_without_any_link(
    members: list[NodeId], choices: DataObject
) -> None:
    ring = Ring(members)
    zone = Zone(dict.fromkeys(members, ring), {name: [] for name in members}, [], balanced=True)
    zone.broadcast(choices.draw(sampled_from(members)))
    assert zone.got == Counter(members)
    assert zone.depth <= ceil(log2(len(members))) + 1


@given(MEMBERS, PLACES, PLACES, data())
def test_parts_tile_the_arc(
    members: list[NodeId], start: int, upto: int, choices: DataObject
) -> None:
    ring = Ring(members)
    arc = Arc(start, upto)
    neighbours = choices.draw(lists(sampled_from(members), max_size=6))
    lost = choices.draw(lists(sampled_from(members), max_size=3))
    parts = split(arc, ring, neighbours, lost)
    inside = members_in(arc, ring)
    if not parts:
        assert all(name in lost for name in inside)
        return
    assert parts[0].arc.start == start
    assert parts[-1].arc.upto == upto
    for one, two in pairwise(parts):
        assert one.arc.upto == two.arc.start
    assert not {part.head for part in parts} & {*lost}


@given(MEMBERS, PLACES, PLACES)
def test_members_in_an_arc_are_those_whose_place_it_holds(
    members: list[NodeId], start: int, upto: int
) -> None:
    arc = Arc(start, upto)
    inside = members_in(arc, Ring(members))
    assert sorted(inside) == [name for name in members if arc.holds(vid_of(name))]
    distances = [(vid_of(name) - start) % 2**128 for name in inside]
    assert distances == sorted(distances)


@given(PLACES, PLACES, PLACES, PLACES)
def test_an_arc_without_a_place_lacks_only_that(
    start: int, upto: int, place: int, other: int
) -> None:
    arc = Arc(start, upto)
    sides = arc.without(place)
    assert not any(side.holds(place) for side in sides)
    if other != place:
        assert sum(side.holds(other) for side in sides) == arc.holds(other)
