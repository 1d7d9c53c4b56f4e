"""What a node may do; the authority signs it as a part of the node's certificate."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from overlay.errors import LocalProtocolError
from overlay.patterns import check_pattern, check_topic, covers

EVERY = "*"
"""Stands for every zone or every role."""

MAX_ENTRIES = 64  # of each kind: a certificate travels in datagrams and must stay small
MAX_WORD = 64

Entries: TypeAlias = Annotated[tuple[str, ...], msgspec.Meta(max_length=MAX_ENTRIES)]


class Rights(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Zones to join, roles to play, topics to publish and to subscribe to, and use of the DHT.

    Fields are append-only: the certificate holds them as a MessagePack array, and an older
    node ignores what it does not know.
    """

    zones: Entries = ()
    roles: Entries = ()  # broker, bdn, supervisor, collector, …; a plain peer needs none
    publish: Entries = ()  # topic patterns
    subscribe: Entries = ()  # topic patterns
    dht_read: bool = False
    dht_write: bool = False

    def __post_init__(self) -> None:
        for kind, words in (("zone", self.zones), ("role", self.roles)):
            _check_entries(kind, words)
            for word in words:
                _check_word(kind, word)
        for kind, patterns in (("publish", self.publish), ("subscribe", self.subscribe)):
            _check_entries(kind, patterns)
            for pattern in patterns:
                check_pattern(pattern)

    def may_join(self, zone: str) -> bool:
        """Tell whether the node may be a member of that zone."""
        return zone in self.zones or EVERY in self.zones

    def may_be(self, role: str) -> bool:
        """Tell whether the node may act as a broker, bdn, supervisor, …"""
        return role in self.roles or EVERY in self.roles

    def may_publish(self, topic: str) -> bool:
        """Tell whether the node may publish to that one topic; a malformed topic it may not."""
        try:
            check_topic(topic)
        except LocalProtocolError:
            return False
        return any(covers(grant, topic) for grant in self.publish)

    def may_subscribe(self, pattern: str) -> bool:
        """Tell whether a single grant covers every topic that the pattern can match."""
        try:
            check_pattern(pattern)
        except LocalProtocolError:
            return False
        return any(covers(grant, pattern) for grant in self.subscribe)

    def may_read_dht(self) -> bool:
        """Tell whether the node may get values from the ring."""
        return self.dht_read

    def may_write_dht(self) -> bool:
        """Tell whether the node may put values into the ring."""
        return self.dht_write


def _check_entries(kind: str, entries: tuple[str, ...]) -> None:
    if len(entries) > MAX_ENTRIES:
        raise LocalProtocolError(f"{len(entries)} {kind} entries: at most {MAX_ENTRIES}, use '*'")


def _check_word(kind: str, word: str) -> None:
    if not word or len(word) > MAX_WORD or not word.isprintable() or any(map(str.isspace, word)):
        raise LocalProtocolError(
            f"{kind} {word[:MAX_WORD]!a}: give 1 to {MAX_WORD} printable characters, no spaces"
        )


ALL_RIGHTS = Rights(
    zones=(EVERY,),
    roles=(EVERY,),
    publish=("**",),
    subscribe=("**",),
    dht_read=True,
    dht_write=True,
)
"""What every node of an insecure overlay has."""
