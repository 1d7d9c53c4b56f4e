"""What a topic's name is called in attributes: a part of its id, as a number or as a short word."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from functools import lru_cache

from overlay.ids import VID_BITS
from protocols.gateways.interface import topic_id

HASH_BITS = 64
WORD_CHARACTERS = 11  # 64 bits in base64, without its padding
REMEMBERED_NAMES = 16_384  # covers a simulation of 10,000 topics, whose nodes then share the words


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
