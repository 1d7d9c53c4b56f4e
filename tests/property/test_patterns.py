"""Topic patterns against brute force: regular expressions over every short topic."""

from __future__ import annotations

import re
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from overlay.patterns import covers

# Two words that patterns use, and one that none does: what wildcards leave open must be covered
# for a word that the grant has never heard of.
WORDS = ("a", "b", "x")
TOPICS = ["/".join(levels) for size in range(1, 7) for levels in product(WORDS, repeat=size)]

LEVELS = ("a", "b", "*", "**")

patterns = st.lists(st.sampled_from(LEVELS), min_size=1, max_size=4).map("/".join)
topics = st.sampled_from(TOPICS)


def as_expression(pattern: str) -> re.Pattern[str]:
    """Each level is one letter and a slash, so that `**` is simply any number of pairs."""
    parts = {"*": "./", "**": "(?:./)*"}
    return re.compile("".join(parts.get(level, f"{level}/") for level in pattern.split("/")))


@given(patterns, topics)
def test_matching_is_what_the_regular_expression_says(pattern: str, topic: str) -> None:
    assert covers(pattern, topic) == bool(as_expression(pattern).fullmatch(topic + "/"))


def test_covering_is_inclusion_for_all_pairs_of_short_patterns() -> None:
    """Exhaustive, with a bit for each topic: 340 patterns, 115,600 pairs, about a second."""
    matched = {
        pattern: sum(
            1 << bit
            for bit, topic in enumerate(TOPICS)
            if as_expression(pattern).fullmatch(topic + "/")
        )
        for size in range(1, 5)
        for pattern in map("/".join, product(LEVELS, repeat=size))
    }
    wrong = [
        (grant, request)
        for grant, granted in matched.items()
        for request, wanted in matched.items()
        if covers(grant, request) != (wanted & ~granted == 0)
    ]
    assert wrong == []


@given(patterns)
def test_a_pattern_covers_itself_and_is_covered_by_all(pattern: str) -> None:
    assert covers(pattern, pattern)
    assert covers("**", pattern)


@given(patterns, patterns, patterns)
def test_covering_is_transitive(one: str, two: str, three: str) -> None:
    if covers(one, two) and covers(two, three):
        assert covers(one, three)
