"""How often what happened, since the start: `overlay status` shows it."""

from __future__ import annotations

import msgspec


class TopicsCounts(msgspec.Struct):
    """Counters of one node's topics."""

    published: int = 0  # messages
    chunks: int = 0  # in which they left
    delivered: int = 0  # messages to subscriptions of this node
    replayed: int = 0  # of them to subscriptions that began later than others of this node
    recalls: int = 0  # requests for what came before that this node answered
    duplicates: int = 0  # messages that came once more
    resent: int = 0  # chunks
    suppressed: int = 0  # requests for what was just sent again
    repairs: int = 0  # chunks that this node sent for somebody else's stream
    acks: int = 0
    nacks: int = 0
    asked: int = 0
    forwarded: int = 0  # chunks handed on in a tree
    relayed: int = 0  # chunks between zones
    started_over: int = 0  # relays that began again for who had been served by another one
    gaps: int = 0  # messages that are gone
    skipped: int = 0  # messages that an unordered or ordered stream lost
    dropped: int = 0  # messages for subscriptions that do not read
    held_back: int = 0  # chunks that found no room
    stray: int = 0  # messages about streams that are not known here
    refused_publishers: int = 0  # by a subscription's policy
    failed_subscribers: int = 0
