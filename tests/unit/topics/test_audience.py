"""Who may want a topic: read from attributes, invalidated precisely, never raising."""

from __future__ import annotations

import pytest

from overlay.errors import LocalProtocolError
from overlay.ids import vid_of
from protocols.membership.attributes import Value
from protocols.topics.audience import InterestIndex, PatternIndex, read_wants
from protocols.topics.interest import INTEREST_KEYS, OwnInterest
from protocols.topics.names import word_of
from tests.unit.topology.fixed_view import FixedView, Roster

NAMES = [f"n{number}" for number in range(8)]


class Zone:
    """A roster, and the index of its member n0."""

    def __init__(self) -> None:
        self.roster = Roster(NAMES)
        self.index = InterestIndex(FixedView("n0", self.roster))

    def say(self, member: str, attributes: dict[str, str]) -> None:
        held = self.roster.attributes.setdefault(member, {})
        for key in INTEREST_KEYS:
            held.pop(key, None)
        held.update(attributes)
        self.index.refresh(member)

    def subscribe(self, member: str, *names: str, value_bytes: int = 1024) -> None:
        own = OwnInterest(value_bytes)
        for name in names:
            own.subscribe(name)
        self.say(member, own.attributes())


def clockwise(*names: str) -> tuple[str, ...]:
    return tuple(sorted(names, key=vid_of))


def test_words_patterns_and_filters_all_count_once_and_clockwise() -> None:
    zone = Zone()
    zone.subscribe("n1", "a/b")
    zone.subscribe("n2", "a/*", "a/**", "a/b")
    zone.subscribe("n3", "a/b", *(f"t/{number}" for number in range(200)))
    zone.subscribe("n4", "c")
    zone.subscribe("n0", "a/b")
    assert zone.index.interested("a/b") == clockwise("n1", "n2", "n3")
    assert zone.index.count("a/b") == 3
    assert zone.index.interested("a/b/c") == ("n2",)
    assert zone.index.may_want("n3", "t/199")
    assert not zone.index.may_want("n4", "a/b")
    assert not zone.index.may_want("n0", "a/b")
    assert not zone.index.may_want("stranger", "a/b")


def test_an_index_begins_with_what_the_view_knows() -> None:
    roster = Roster(NAMES, topics={"n1": word_of("a"), "n0": word_of("a")})
    assert InterestIndex(FixedView("n0", roster)).interested("a") == ("n1",)


def test_whoever_is_gone_wants_nothing() -> None:
    zone = Zone()
    for member in ("n1", "n2", "n3"):
        zone.subscribe(member, "a", "b/*", *(f"t/{number}" for number in range(200)))
    assert zone.index.count("a") == 3
    zone.index.forget("n1")
    assert zone.index.interested("a") == clockwise("n2", "n3")
    zone.roster.remove("n2")
    zone.index.refresh("n2")
    assert zone.index.interested("a") == zone.index.interested("b/x") == ("n3",)
    zone.roster.add("n2")
    zone.index.refresh("n2")
    assert zone.index.interested("b/x") == clockwise("n2", "n3")


def test_only_audiences_that_changed_are_found_again() -> None:
    zone = Zone()
    zone.subscribe("n1", "a", "b", "c/*")
    kept = {topic: zone.index.interested(topic) for topic in ("a", "b", "c/d", "e")}
    zone.subscribe("n2", "b")
    zone.subscribe("n3", "c/x/*")
    zone.subscribe("n1", "a", "b", "c/d")  # now by its name, no longer by a pattern
    found = {topic: zone.index.interested(topic) for topic in kept}
    assert [topic for topic in kept if found[topic] is not kept[topic]] == ["b"]
    assert found["b"] == clockwise("n1", "n2")


def test_audiences_that_are_remembered_are_bounded() -> None:
    roster = Roster(NAMES, topics={"n1": word_of("a")})
    index = InterestIndex(FixedView("n0", roster), remembered=2)
    first = index.interested("a")
    index.interested("b")
    assert index.interested("a") is first
    index.interested("c")
    index.interested("a")
    assert len(index._audiences) == 2


def test_anybody_in_a_part_of_the_ring() -> None:
    zone = Zone()
    zone.subscribe("n1", "a")
    zone.subscribe("n0", "a")
    at, me = vid_of("n1"), vid_of("n0")
    assert zone.index.anybody_in(me + 1, me, "a")
    assert zone.index.anybody_in(at, at + 1, "a")
    assert zone.index.anybody_in(at - 1, at + 1, "a")
    assert not zone.index.anybody_in(at - 1, at, "a")
    assert not zone.index.anybody_in(at + 1, at, "a"), "all the others want nothing"
    assert not zone.index.anybody_in(at, at, "a"), "an arc of nothing"
    assert not zone.index.anybody_in(me + 1, me, "b")


def test_a_slice_that_has_not_come_yet_may_hold_anything() -> None:
    own = OwnInterest()
    topics = [f"t/{number}" for number in range(3_000)]
    for topic in topics:
        own.subscribe(topic)
    said = own.attributes()
    for missing in [key for key in said if key != "topics"]:
        wants = read_wants({key: value for key, value in said.items() if key != missing})
        assert all(wants.allow(topic) for topic in topics)
        others = sum(wants.allow(f"other/{number}") for number in range(1_000))
        assert 200 < others < 350, "a quarter is unknown, the rest is said no to"


GOOD_SLICE = "0/1:" + "_" * 8


@pytest.mark.parametrize(
    ("attributes", "malformed"),
    [
        ({"topics": 7}, 1),
        ({"topics": True, "patterns": 1.5}, 2),
        ({"patterns": ""}, 1),
        ({"patterns": "a/*\nb//c"}, 1),
        ({"patterns": "a*"}, 1),
        ({"patterns": "x" * 300}, 1),
        ({"topics.bloom": "0/1:!!!!"}, 1),
        ({"topics.bloom": 5, "topics.bloom.1": "nonsense"}, 2),
        ({"topics": ",", "topics.bloom": "nonsense"}, 1),
        ({"topics": "news, sport,,music"}, 0),
    ],
)
def test_what_cannot_be_read_says_nothing_and_is_counted(
    attributes: dict[str, Value], malformed: int
) -> None:
    zone = Zone()
    zone.roster.attributes["n1"] = attributes
    for _ in range(3):
        zone.index.refresh("n1")
        zone.index.refresh("n2")
    assert zone.index.malformed == malformed, "once, not at each look"
    assert zone.index.interested("a/b") == ()
    assert not zone.index.may_want("n1", "a/b")


def test_what_can_be_read_counts_beside_what_cannot() -> None:
    zone = Zone()
    zone.say("n1", {"topics": word_of("a"), "topics.bloom": "nonsense", "patterns": "b/*"})
    zone.say("n2", {"topics": word_of("a"), "topics.bloom": GOOD_SLICE, "patterns": "//"})
    assert zone.index.interested("a") == clockwise("n1", "n2")
    assert zone.index.interested("b/c") == clockwise("n1", "n2"), "the slice of n2 is full"
    assert zone.index.malformed == 2


# -- patterns -------------------------------------------------------------------------------------


def test_a_pattern_index_finds_values_in_the_order_of_adding() -> None:
    index: PatternIndex[int] = PatternIndex()
    for value, pattern in enumerate(["a/**", "a/b", "*/b", "**", "c/**", "**/b/**", "a/*/c"]):
        assert index.add(pattern, value)
    assert index.matches("a/b") == [0, 1, 2, 3, 5]
    assert index.matches("a") == [0, 3]
    assert index.matches("a/b/c") == [0, 3, 5, 6]
    assert index.matches("d") == [3]


def test_a_pattern_index_holds_a_pair_once_and_names_a_value_once() -> None:
    index: PatternIndex[str] = PatternIndex()
    assert [index.add("a/*", "x"), index.add("a/*", "x"), index.add("**", "x")] == [
        True,
        False,
        True,
    ]
    assert len(index) == 2
    assert index.matches("a/b") == ["x"]
    assert index.remove("a/*", "x")
    assert index.matches("a/b") == ["x"]
    assert [index.remove("a/*", "x"), index.remove("b", "x"), index.remove("**", "y")] == [
        False
    ] * 3
    assert index.remove("**", "x")
    assert index.matches("a/b") == []
    assert not index._root.next, "no level is left behind"


def test_a_pattern_index_refuses_malformed_patterns() -> None:
    with pytest.raises(LocalProtocolError):
        PatternIndex[int]().add("a//b", 1)
