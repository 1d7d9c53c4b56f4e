"""Ring and key space against brute force, on spaces small enough to walk step by step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from overlay.ids import KeySpace, Ring, vid_of

BITS = 6
SIZE = 1 << BITS
SPACE = KeySpace(BITS)

points = st.integers(0, SIZE - 1)
places = st.sets(points, min_size=1)


def ring_of(members: set[int]) -> Ring:
    return Ring([str(place) for place in sorted(members)], space=SPACE, place=int)


def walk(start: int, step: int = 1) -> list[int]:
    """Every point once, beginning at `start`."""
    return [(start + step * count) % SIZE for count in range(SIZE)]


@given(points, points)
def test_distance_counts_the_steps(a: int, b: int) -> None:
    assert SPACE.distance(a, b) == walk(a).index(b)
    assert SPACE.add(a, SPACE.distance(a, b)) == b
    assert SPACE.add(b, -SPACE.distance(a, b)) == a


@given(points, points, points)
def test_between_is_what_a_walk_from_after_to_upto_meets(key: int, after: int, upto: int) -> None:
    path = walk((after + 1) % SIZE)
    assert SPACE.between(key, after, upto) == (key in path[: path.index(upto) + 1])


@given(places, points)
def test_responsible_is_the_first_member_met(members: set[int], key: int) -> None:
    expected = next(point for point in walk(key) if point in members)
    assert ring_of(members).responsible_for(key) == str(expected)


@given(places, points)
def test_a_node_is_responsible_exactly_for_what_follows_its_predecessor(
    members: set[int], key: int
) -> None:
    ring = ring_of(members)
    owner = ring.responsible_for(key)
    before = (ring.predecessors(owner, 1) or [owner])[0]
    assert SPACE.between(key, int(before), int(owner))


@given(places, points, st.integers(0, SIZE + 1))
def test_neighbours_are_the_others_in_the_order_of_a_walk(
    members: set[int], origin: int, k: int
) -> None:
    ring = ring_of(members)
    clockwise = [str(point) for point in walk(origin)[1:] if point in members]
    backwards = [str(point) for point in walk(origin, -1)[1:] if point in members]
    assert ring.successors(str(origin), k) == clockwise[:k]
    assert ring.predecessors(str(origin), k) == backwards[:k]


@given(places, points)
def test_fingers_are_the_textbooks(members: set[int], origin: int) -> None:
    ring = ring_of(members)
    expected: dict[str, None] = {}
    for exponent in range(BITS):
        reach = walk((origin + (1 << exponent)) % SIZE)[: SIZE - (1 << exponent)]
        met = [str(point) for point in reach if point in members]  # stops short of the origin
        expected.update(dict.fromkeys(met[:1]))
    assert ring.fingers(str(origin)) == list(expected)


@given(st.lists(st.tuples(st.booleans(), points)))
def test_edits_in_any_order_equal_a_ring_built_at_once(edits: list[tuple[bool, int]]) -> None:
    ring = ring_of(set())
    members: set[int] = set()
    for joins, point in edits:
        if joins:
            assert ring.add(str(point)) == (point not in members)
            members.add(point)
        else:
            assert ring.remove(str(point)) == (point in members)
            members.discard(point)
        assert (str(point) in ring) == (point in members)
    assert list(ring) == list(ring_of(members))
    assert len(ring) == len(members)


@given(st.sets(st.text(min_size=1, max_size=8, alphabet="abcdef"), min_size=2, max_size=200))
def test_greedy_hops_over_fingers_reach_the_owner_in_logarithmic_steps(names: set[str]) -> None:
    ring = Ring(sorted(names))
    at, *_, wanted = ring
    key = vid_of(wanted)
    hops = 0
    while at != wanted:
        left = ring.space.distance(vid_of(at), key)
        near = [f for f in ring.fingers(at) if ring.space.distance(vid_of(at), vid_of(f)) <= left]
        assert near, "the successor is always a finger"
        at = near[-1]
        hops += 1
    assert hops <= 32  # each hop at least halves the distance; log2(200) is under 8 on average
    assert len(ring.fingers(at)) <= 40
