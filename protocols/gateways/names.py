"""Where a topic's name falls: on the management zone's ring, and on the ring of each zone."""

from __future__ import annotations

from functools import lru_cache

from overlay.errors import LocalProtocolError
from overlay.ids import Vid, key_of
from overlay.patterns import check_pattern, check_topic

HOME_SALT = "topic:"  # a topic and a node of one name have different places
GATEWAY_SALT = "gateway:"  # in a zone whose delegates are also homes, other nodes carry the load
REMEMBERED = 65_536  # names: covers the topics of a simulation


@lru_cache(maxsize=REMEMBERED)
def topic_id(name: str) -> Vid:
    """The topic's id: its home is responsible for it on the management zone's ring."""
    return key_of(HOME_SALT + name)


@lru_cache(maxsize=REMEMBERED)
def gateway_key(name: str) -> Vid:
    """The topic's place in a zone: its gateway is responsible for it on the zone's ring."""
    return key_of(GATEWAY_SALT + name)


@lru_cache(maxsize=REMEMBERED)
def is_topic(name: str) -> bool:
    """Whether a topic may be called so."""
    try:
        check_topic(name)
    except LocalProtocolError:
        return False
    return True


@lru_cache(maxsize=4096)
def is_pattern(text: str) -> bool:
    """Whether that is a pattern of topics."""
    try:
        check_pattern(text)
    except LocalProtocolError:
        return False
    return True
