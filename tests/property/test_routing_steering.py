"""Greedy routing always progresses, and sums are the same in any shape of tree."""

from __future__ import annotations

from functools import reduce
from math import inf

from hypothesis import given
from hypothesis.strategies import (
    DataObject,
    binary,
    booleans,
    data,
    floats,
    integers,
    lists,
    none,
    permutations,
    sampled_from,
    sets,
    text,
)

from overlay.ids import NodeId, Ring, vid_of
from protocols.routing.aggregates import NOTHING, Aggregate, aggregate_of, is_sound
from protocols.routing.steering import apart, next_hop
from tests.unit.routing.machines import FixedLinks

NAMES = [f"m{index}" for index in range(40)]
MEMBERS = sets(sampled_from(NAMES), min_size=2, max_size=24).map(sorted)
VALUES = lists(
    none() | booleans() | integers() | floats() | text(max_size=3) | binary(max_size=3), max_size=12
)


@given(MEMBERS, integers(0, 2**128 - 1), data())
def test_each_hop_is_nearer_until_the_responsible_member(
    members: list[NodeId], key: int, choices: DataObject
) -> None:
    ring = Ring(members)
    target = ring.responsible_for(key)
    links = {
        me: FixedLinks(choices.draw(lists(sampled_from(members), max_size=4))) for me in members
    }
    at = choices.draw(sampled_from(members))
    hops = 0
    while at != target:
        hop = next_hop(at, target, links[at], ring)
        assert hop in members
        assert hop == target or apart(vid_of(hop), vid_of(target)) < apart(
            vid_of(at), vid_of(target)
        )
        at, hops = hop, hops + 1
    assert hops < len(members)


@given(MEMBERS, data())
def test_who_is_lost_is_never_the_next_hop(members: list[NodeId], choices: DataObject) -> None:
    ring = Ring(members)
    me, target = choices.draw(permutations(members))[:2]
    lost = choices.draw(sets(sampled_from(members), max_size=len(members)))
    links = FixedLinks(choices.draw(lists(sampled_from(members), max_size=6)))
    hop = next_hop(me, target, links, ring, lost, direct=choices.draw(booleans()))
    assert hop is None or (hop not in lost and hop != me)
    if target not in lost:
        assert hop is not None


@given(VALUES, data())
def test_sums_do_not_depend_on_the_shape_of_the_tree(
    values: list[object], choices: DataObject
) -> None:
    parts = [aggregate_of(value) for value in values]
    straight = reduce(Aggregate.merged, parts, NOTHING)
    rest = list(choices.draw(permutations(parts)))
    while len(rest) > 1:
        at = choices.draw(integers(0, len(rest) - 2))
        rest[at : at + 2] = [rest[at].merged(rest[at + 1])]
    tree = rest[0] if rest else NOTHING
    assert (tree.count, tree.numbers, tree.least, tree.greatest, tree.sketch) == (
        straight.count,
        straight.numbers,
        straight.least,
        straight.greatest,
        straight.sketch,
    )
    assert is_sound(tree)
    assert abs(tree.total) < inf
    assert tree.distinct <= tree.count
