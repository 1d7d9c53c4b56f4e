"""Interest under any subscriptions and bounds: never a wrong no, and an index like brute force."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from overlay.ids import FULL_SPACE, vid_of
from overlay.patterns import check_pattern, covers
from protocols.membership.attributes import Value
from protocols.topics.audience import InterestIndex, PatternIndex, Wants, read_wants
from protocols.topics.interest import INTEREST_KEYS, OwnInterest, widen
from tests.unit.topology.fixed_view import FixedView, Roster

WORDS = ("a", "b", "long-word")
TOPICS = ["/".join(levels) for size in range(1, 5) for levels in product(WORDS, repeat=size)]
PATTERNS = [
    pattern
    for size in range(1, 5)
    for pattern in map("/".join, product((*WORDS, "*", "**"), repeat=size))
    if "*" in pattern
]
NAMES = [f"n{number}" for number in range(6)]

topics = st.sampled_from(TOPICS)
patterns = st.sampled_from(PATTERNS)
names = st.one_of(topics, topics, patterns)
value_bytes = st.one_of(st.integers(16, 64), st.sampled_from((100, 1024)))
slices = st.sampled_from((1, 2, 4, 16))
# A number stands for so many topics of one kind at once: what makes lists overflow into filters.
crowds = st.integers(1, 400)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("subscribe"), names),
        st.tuples(st.just("unsubscribe"), names),
        st.tuples(st.just("crowd"), crowds),
        st.tuples(st.just("leave"), crowds),
        st.tuples(st.just("say"), st.none()),
    ),
    max_size=40,
)


def apply(own: OwnInterest, held: dict[str, int], kind: str, argument: object) -> None:
    """One step, for the object and for a plain count of subscriptions."""
    if isinstance(argument, int):
        wanted = [f"crowd/{number}" for number in range(argument)]
        chosen = [name for name in wanted if (name in held) == (kind == "leave")]
    else:
        chosen = [str(argument)] if kind == "subscribe" or argument in held else []
    for name in chosen:
        if kind in ("subscribe", "crowd"):
            assert own.subscribe(name) == (name not in held)
            held[name] = held.get(name, 0) + 1
        else:
            assert own.unsubscribe(name) == (held[name] == 1)
            held[name] -= 1
            if not held[name]:
                del held[name]


def missed(wants: Wants, held: dict[str, int]) -> list[str]:
    """Topics that are wanted, and said not to be."""
    exact = [name for name in held if "*" not in name]
    open_names = [name for name in held if "*" in name]
    matched = [topic for topic in TOPICS if any(covers(name, topic) for name in open_names)]
    return [topic for topic in (*exact, *matched) if not wants.allow(topic)]


@given(steps, value_bytes, slices)
def test_never_a_wrong_no(
    sequence: list[tuple[str, object]], limit: int, slices_at_most: int
) -> None:
    own, held = OwnInterest(limit, slices_at_most), dict[str, int]()
    for kind, argument in (*sequence, ("say", None)):
        if kind != "say":
            apply(own, held, kind, argument)
            continue
        said = own.attributes()
        assert set(said) <= set(INTEREST_KEYS)
        assert all(0 < len(value.encode()) <= limit for value in said.values())
        wants = read_wants(said)
        assert wants.malformed == 0
        assert missed(wants, held) == []
        if not held:
            assert said == {}


@given(steps, value_bytes, slices, st.data())
def test_no_order_of_arrival_hides_what_stays_subscribed(
    sequence: list[tuple[str, object]], limit: int, slices_at_most: int, data: st.DataObject
) -> None:
    """Attributes arrive one by one: whatever was told before and is still wanted stays known."""
    own, held = OwnInterest(limit, slices_at_most), dict[str, int]()
    known: dict[str, str] = {}
    told: dict[str, int] = {}
    for kind, argument in (*sequence, ("say", None)):
        if kind != "say":
            apply(own, held, kind, argument)
            continue
        said = own.attributes()
        staying = {name: 1 for name in told if name in held}
        changed = [key for key in INTEREST_KEYS if said.get(key) != known.get(key)]
        for key in data.draw(st.permutations(changed)):
            known.pop(key, None)
            if key in said:
                known[key] = said[key]
            assert missed(read_wants(known), staying) == []
        assert known == said
        told = dict(held)


@given(st.lists(patterns, max_size=30), st.integers(2, 120))
def test_widening_covers_all_and_fits(wanted: list[str], limit: int) -> None:
    shown = widen(wanted, limit)
    assert len("\n".join(shown).encode()) <= limit
    for pattern in wanted:
        assert any(covers(check_pattern(wide), pattern) for wide in shown)


@given(
    st.lists(st.tuples(st.booleans(), names, st.integers(0, 5)), max_size=60),
    st.lists(topics, min_size=1, max_size=20),
)
def test_a_pattern_index_is_trying_each_pattern(
    changes: list[tuple[bool, str, int]], asked: list[str]
) -> None:
    index: PatternIndex[int] = PatternIndex()
    held: dict[tuple[str, int], None] = {}
    for adding, pattern, value in changes:
        pair = (pattern, value)
        if adding:
            assert index.add(pattern, value) == (pair not in held)
            held[pair] = None
        else:
            assert index.remove(pattern, value) == (pair in held)
            held.pop(pair, None)
        assert len(index) == len(held)
    for topic in asked:
        expected = dict.fromkeys(value for pattern, value in held if covers(pattern, topic))
        assert index.matches(topic) == list(expected)


def said_by(wanted: list[str], limit: int) -> dict[str, str]:
    own = OwnInterest(limit)
    for name in wanted:
        own.subscribe(name)
    return own.attributes()


values = st.one_of(
    st.integers(0, 9),
    st.text(max_size=20),
    st.sampled_from(("0/1:____", "1/2:AAAA", "0/1:?", "a/*\nb/**", "a//b", ",", "x,", "**")),
)
attributes = st.one_of(
    st.dictionaries(st.sampled_from((*INTEREST_KEYS[:4], INTEREST_KEYS[-1])), values),
    st.builds(said_by, st.lists(names, max_size=12), value_bytes),
)
happenings = st.lists(
    st.one_of(
        st.tuples(st.just("says"), st.sampled_from(NAMES), attributes),
        st.tuples(st.just("gone"), st.sampled_from(NAMES[1:]), st.just({})),
        st.tuples(st.just("back"), st.sampled_from(NAMES[1:]), st.just({})),
        st.tuples(st.just("asked"), topics, st.just({})),
    ),
    max_size=40,
)


@given(happenings, st.integers(1, 4), st.lists(topics, min_size=1, max_size=8))
def test_an_index_is_reading_everybody(
    sequence: list[tuple[str, str, dict[str, Value]]], remembered: int, asked: list[str]
) -> None:
    roster = Roster(NAMES)
    index = InterestIndex(FixedView("n0", roster), remembered)
    for kind, name, said in (*sequence, *(("asked", topic, {}) for topic in asked)):
        if kind == "says":
            roster.attributes[name] = said
            index.refresh(name)
        elif kind == "gone":
            roster.remove(name)
            index.forget(name)
        elif kind == "back":
            roster.add(name)
            index.refresh(name)
        else:
            _compare(index, roster, topic=name)


def _compare(index: InterestIndex, roster: Roster, topic: str) -> None:
    expected = [
        member
        for member in roster.ring
        if member != "n0" and read_wants(roster.attributes.get(member, {})).allow(topic)
    ]
    assert index.interested(topic) == tuple(expected)
    assert index.count(topic) == len(expected)
    assert [name for name in roster.ring if index.may_want(name, topic)] == expected
    edges = [vid_of(name) + step for name in NAMES for step in (0, 1)]
    for start, upto in product(edges, repeat=2):
        inside = [
            name
            for name in expected
            if FULL_SPACE.distance(start, vid_of(name)) < FULL_SPACE.distance(start, upto)
        ]
        assert index.anybody_in(start, upto, topic) == bool(inside)
