"""Ledgers: what one node keeps for another, line by line, and how two copies are told apart.

A line has a key, the topic and perhaps the gateway that it is about, and a stake. The digest is
the exclusive or of all lines' hashes, so a change costs the same whatever the ledger holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple

from overlay.ids import NodeId
from protocols.gateways.messages import DIGEST_BYTES, MAX_PARTIES, Line, Party

PUBLISHES = 1
SUBSCRIBES = 2

PART = "\0"  # between topic and gateway in a key: neither can hold it


class Book(IntEnum):
    """What ledgers are about; each book has one ledger for each pair of nodes."""

    DECLARATIONS = 0  # member -> gateway: what I do with topics
    REGISTRATIONS = 1  # gateway -> delegate: what my zone does with topics that I stand for
    INTERESTS = 2  # delegate -> home: the same of all gateways of my zone
    REPLICAS = 3  # home -> its ring successor: everything that I know as a home
    ROSTERS = 4  # home -> gateway: the other gateways of your topics
    EXISTING = 5  # home -> delegate: topics with publishers that your zone's patterns cover
    PROSPECTS = 6  # delegate -> gateway to be: the same, where you would be the gateway


ABOUT_OTHERS = (Book.INTERESTS, Book.REPLICAS, Book.ROSTERS)
"""Books whose lines name a gateway; the lines of others are about the sender."""


class Stake(NamedTuple):
    """What a line says: who publishes and subscribes, and where, if not the sender itself."""

    flags: int
    party: Party | None = None


OWN_STAKES = tuple(Stake(flags) for flags in range(4))  # shared by all ledgers


def key_for(topic: str, gateway: NodeId = "") -> str:
    """The key of a line."""
    return f"{topic}{PART}{gateway}" if gateway else topic


def topic_of(key: str) -> str:
    """The topic of a line."""
    return key.partition(PART)[0]


def line_hash(key: str, stake: Stake) -> int:
    """The same in every process."""
    party = stake.party
    place = "" if party is None else f"{party.zone}{PART}{PART.join(party.endpoints)}"
    text = f"{key}{PART}{stake.flags}{PART}{place}"
    return int.from_bytes(blake2b(text.encode(), digest_size=DIGEST_BYTES).digest(), "big")


def packed(digest: int) -> bytes:
    """A digest as it travels."""
    return digest.to_bytes(DIGEST_BYTES, "big")


class Sheet(NamedTuple):
    """Lines that fit into one message, and the parties that they refer to."""

    lines: tuple[Line, ...]
    parties: tuple[Party, ...]
    last: str  # the key of the last line


def sheets(lines: Iterable[tuple[str, Stake]], *, most: int, most_bytes: int) -> Iterator[Sheet]:
    """Cut keys and stakes into sheets of bounded size, but of at least one line each."""
    taken: list[Line] = []
    parties: dict[Party, int] = {}
    room = most_bytes
    last = ""
    for key, stake in lines:
        topic = topic_of(key)
        size = len(topic.encode()) + 6
        new = stake.party is not None and stake.party not in parties
        if stake.party is not None and new:
            size += 140 + sum(len(endpoint) + 3 for endpoint in stake.party.endpoints)
        if taken and (len(taken) >= most or size > room or (new and len(parties) >= MAX_PARTIES)):
            yield Sheet(tuple(taken), tuple(parties), last)
            taken, parties, room = [], {}, most_bytes
        index = -1 if stake.party is None else parties.setdefault(stake.party, len(parties))
        taken.append(Line(topic, stake.flags, index))
        room -= size
        last = key
    if taken:
        yield Sheet(tuple(taken), tuple(parties), last)


def read_lines(lines: Sequence[Line], parties: Sequence[Party]) -> Iterator[tuple[str, Stake]]:
    """The keys and stakes of a message whose indices were checked."""
    for line in lines:
        if line.party < 0:
            yield line.topic, OWN_STAKES[line.flags]
        else:
            party = parties[line.party]
            yield key_for(line.topic, party.gateway), Stake(line.flags, party)
