"""A topic's name, its id and its word."""

from __future__ import annotations

from overlay.ids import key_of, vid_of
from protocols.gateways.interface import topic_id
from protocols.topics.names import WORD_CHARACTERS, hash_of, word_of
from protocols.topology.interface import interests

TOPICS = [f"sensors/{number}/temperature" for number in range(2_000)]


def test_an_id_is_the_salted_hash_of_the_name() -> None:
    assert topic_id("news") == key_of("topic:news")
    assert topic_id("news") != vid_of("news"), "a node of that name sits elsewhere"


def test_a_word_is_short_and_survives_a_list_of_words() -> None:
    words = [word_of(topic) for topic in TOPICS]
    assert {len(word) for word in words} == {WORD_CHARACTERS}
    assert interests({"topics": ",".join(words)}) == frozenset(words)
    assert len(set(words)) == len(TOPICS)


def test_words_stay_what_they_are() -> None:
    """Peers of other versions compare them: pinned like tags of messages."""
    assert word_of("news") == "5mXFmeOTC58"


def test_a_hash_is_the_upper_half_of_the_id() -> None:
    assert hash_of("news") == topic_id("news") >> 64
