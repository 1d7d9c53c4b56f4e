"""What members are interested in: words in one of their attributes, separated by commas."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

TOPICS = "topics"
"""The attribute that lists a member's topics."""

NOTHING: frozenset[str] = frozenset()


@lru_cache(maxsize=16_384)
def _words(value: str) -> frozenset[str]:
    return frozenset(filter(None, (word.strip() for word in value.split(","))))


def interests(attributes: Mapping[str, object], key: str = TOPICS) -> frozenset[str]:
    """The words of that attribute; none when it is missing or no text."""
    value = attributes.get(key)
    return _words(value) if isinstance(value, str) and value else NOTHING
