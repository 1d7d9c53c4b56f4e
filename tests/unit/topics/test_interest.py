"""What a node says of its subscriptions: words, a filter, patterns and wider patterns."""

from __future__ import annotations

import pytest

from overlay.errors import LocalProtocolError
from overlay.patterns import MAX_BYTES, check_pattern, covers
from protocols.membership.attributes import check_attribute
from protocols.membership.config import MembershipSettings
from protocols.topics.audience import read_wants
from protocols.topics.interest import BLOOM_KEYS, INTEREST_KEYS, OwnInterest, widen
from protocols.topics.names import word_of

WORDS_THAT_FIT = 85  # 12 bytes each in 1,024


def subscribed(*names: str, value_bytes: int = 1024, slices: int = 4) -> OwnInterest:
    own = OwnInterest(value_bytes, slices)
    for name in names:
        own.subscribe(name)
    return own


def many(count: int) -> list[str]:
    return [f"t/{number}" for number in range(count)]


def test_nothing_says_nothing() -> None:
    assert OwnInterest().attributes() == {}


def test_a_few_topics_are_words_and_patterns_are_lines() -> None:
    own = subscribed("news", "a/*", "sport", "b/**")
    assert own.attributes() == {
        "topics": f"{word_of('news')},{word_of('sport')}",
        "patterns": "a/*\nb/**",
    }


def test_the_last_of_several_subscriptions_ends_the_interest() -> None:
    own = OwnInterest()
    assert [own.subscribe("news"), own.subscribe("news")] == [True, False]
    assert [own.subscribe("a/*"), own.subscribe("a/*")] == [True, False]
    assert len(own) == 2
    assert own.attributes() == {"topics": word_of("news"), "patterns": "a/*"}
    assert [own.unsubscribe("news"), own.unsubscribe("a/*")] == [False, False]
    assert own.attributes() == {"topics": word_of("news"), "patterns": "a/*"}
    assert [own.unsubscribe("news"), own.unsubscribe("a/*")] == [True, True]
    assert own.attributes() == {}
    assert "news" not in own


@pytest.mark.parametrize("name", ["", "a//b", "a*", "a\nb", "x" * 257])
def test_a_malformed_name_is_refused(name: str) -> None:
    own = OwnInterest()
    with pytest.raises(LocalProtocolError):
        own.subscribe(name)
    assert len(own) == 0
    assert not own.changed


def test_what_was_not_subscribed_cannot_end() -> None:
    with pytest.raises(LocalProtocolError, match="nobody here subscribed to 'a'"):
        OwnInterest().unsubscribe("a")


@pytest.mark.parametrize(("value_bytes", "slices"), [(15, 4), (1024, 3), (1024, 0), (1024, 32)])
def test_bounds_that_hold_nothing_are_refused(value_bytes: int, slices: int) -> None:
    with pytest.raises(LocalProtocolError):
        OwnInterest(value_bytes, slices)


def test_words_that_do_not_fit_become_a_filter_beside_those_that_do() -> None:
    own = subscribed(*many(WORDS_THAT_FIT))
    assert list(own.attributes()) == ["topics"]
    own.subscribe("one more")
    said = own.attributes()
    assert list(said) == ["topics", "topics.bloom"]
    assert said["topics"] == ",".join((*map(word_of, many(WORDS_THAT_FIT)), ""))
    assert len(said["topics.bloom"]) == len("0/1:") + 96 * 4 // 3
    own.unsubscribe("t/7")
    assert list(own.attributes()) == ["topics"]


def test_ten_thousand_topics_fit_into_the_attributes_of_a_member() -> None:
    own = subscribed(*many(10_000), *(f"sensors/{number}/*" for number in range(1_000)))
    said = own.attributes()
    settings = MembershipSettings()
    for key, value in said.items():
        check_attribute(key, value, settings)
        assert key in INTEREST_KEYS
    assert list(said) == ["topics", *BLOOM_KEYS[:4], "patterns"]
    assert sum(len(key) + len(value) for key, value in said.items()) < settings.member_bytes
    wants = read_wants(said)
    assert all(wants.allow(topic) for topic in many(10_000))
    assert wants.allow("sensors/999/x")


def test_a_filter_follows_the_number_of_topics() -> None:
    own = subscribed(*many(3_000))
    assert len(own.attributes()) == 1 + 4
    for topic in many(3_000)[100:]:
        own.unsubscribe(topic)
    assert [len(value) for value in own.attributes().values()] == [1020, 4 + 192 * 4 // 3]


def test_a_filter_forgets_what_ended() -> None:
    own = subscribed(*many(1_000))
    own.attributes()  # from here on the filter is changed, not made anew
    for topic in many(400):
        own.unsubscribe(topic)
    wants = read_wants(own.attributes())
    assert all(wants.allow(topic) for topic in many(1_000)[400:])
    assert sum(wants.allow(topic) for topic in many(400)) < 20


@pytest.mark.parametrize(("value_bytes", "fits"), [(35, True), (34, False)])
def test_three_words_fit_to_the_byte(value_bytes: int, fits: bool) -> None:
    said = subscribed("a", "b", "c", value_bytes=value_bytes).attributes()
    assert ("topics.bloom" not in said) == fits
    assert len(said["topics"]) == (35 if fits else 24)


@pytest.mark.parametrize(("value_bytes", "shown"), [(19, 3), (18, 1)])
def test_three_patterns_fit_to_the_byte(value_bytes: int, shown: int) -> None:
    own = subscribed("a/bb/*", "a/c/*", "a/dd/*", value_bytes=value_bytes)
    assert len(own.attributes()["patterns"].split("\n")) == shown


def changes(own: OwnInterest, *names: str) -> list[bool]:
    """Whether there may be news after each of these subscriptions."""
    told = []
    for name in names:
        own.attributes()
        own.subscribe(name)
        told.append(own.changed)
    return told


def test_only_the_first_subscription_is_news() -> None:
    assert changes(OwnInterest(), "a", "a", "b/*", "b/*") == [True, False, True, False]


def test_what_was_said_is_the_callers_own() -> None:
    own = subscribed(*many(2_000))
    own.attributes().clear()
    assert list(own.attributes()) == ["topics", *BLOOM_KEYS[:4]]


# -- patterns -------------------------------------------------------------------------------------


def test_widening_merges_the_deepest_level_that_saves_the_most() -> None:
    patterns = [f"a/b/{number}/*" for number in range(10)] + ["a/c/*", "d/e/f/g/*"]
    assert list(widen(patterns, 40)) == ["a/c/*", "d/e/f/g/*", "a/b/**"]
    assert list(widen(patterns, 16)) == ["d/e/f/g/*", "a/**"]
    assert list(widen([f"{number}/*" for number in range(10)], 16)) == ["**"]


def test_widening_leaves_what_fits() -> None:
    assert list(widen(["a/*", "b/*"], 7)) == ["a/*", "b/*"]
    assert list(widen(["a/*", "b/*"], 6)) == ["**"]
    assert list(widen([], 16)) == []


def test_widening_never_makes_a_pattern_that_is_too_long() -> None:
    longest = "x" * (MAX_BYTES - 4)
    patterns = [f"{longest}/*/{letter}" for letter in "ab"]
    assert {len(pattern) for pattern in patterns} == {MAX_BYTES}
    (wide,) = widen(patterns, 400)
    assert check_pattern(wide) == f"{longest}/**"


def test_a_new_pattern_joins_the_wide_ones() -> None:
    own = subscribed(*(f"a/{number}/*" for number in range(100)), value_bytes=64)
    assert own.attributes() == {"patterns": "a/**"}
    own.subscribe("a/100/*")
    own.subscribe("b/*")
    assert own.attributes() == {"patterns": "a/**\nb/*"}


def test_patterns_become_narrow_again_when_most_are_gone() -> None:
    names = [f"a/{number}/*" for number in range(100)]
    own = subscribed(*names, value_bytes=64)
    own.attributes()
    for name in names[20:]:
        own.unsubscribe(name)
    own.subscribe("b/*")
    assert own.attributes() == {"patterns": "b/*\na/**"}
    for name in names[2:20]:
        own.unsubscribe(name)
    assert own.attributes() == {"patterns": "a/0/*\na/1/*\nb/*"}


def test_a_pattern_of_all_the_bytes_there_are_is_widened_to_fit() -> None:
    name = "ä/" * 80 + "*"
    with pytest.raises(LocalProtocolError):  # too many levels: the framework's limit
        subscribed(name)
    name = "/".join(["ä" * 20] * 6) + "/*"
    (wide,) = subscribed(name, value_bytes=64).attributes().values()
    assert len(wide.encode()) <= 64
    assert covers(wide, name)
    assert wide != "**"
