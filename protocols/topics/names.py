"""What a topic's name hashes to: its place in the key space, and its short word in attributes."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from functools import lru_cache

from overlay.ids import VID_BITS, Vid, key_of

SALT = "topic:"  # a topic and a node of one name have different places
HASH_BITS = 64
WORD_CHARACTERS = 11  # 64 bits in base64, without its padding
REMEMBERED_NAMES = 16_384  # covers a simulation of 10,000 topics, whose nodes then share the words


@lru_cache(maxsize=REMEMBERED_NAMES)
def topic_id(name: str) -> Vid:
    """Where a topic falls in the key space: every node computes the same place unasked."""
    return key_of(SALT + name)


def hash_of(topic: str) -> int:
    """The upper 64 bits of the topic's id: what summaries of interest are made from."""
    return topic_id(topic) >> (VID_BITS - HASH_BITS)


@lru_cache(maxsize=REMEMBERED_NAMES)
def word_of(topic: str) -> str:
    """The topic in lists of interest: 11 characters of base64url, never a comma or a space.

    Two topics of one word are taken for each other: somebody may get what it does not want,
    and nobody misses anything.
    """
    packed = hash_of(topic).to_bytes(HASH_BITS // 8, "big")
    return urlsafe_b64encode(packed).decode().rstrip("=")
