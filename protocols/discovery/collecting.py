"""One request under way: who was asked, who answered, and whether anybody is still awaited.

Whoever takes a request on says to whom it was handed: a BDN in its RequestAck, a broker in its
Response. So the requester knows by name (by digest) who will answer, and stops as soon as all of
them did, without a guess about time.
"""

from __future__ import annotations

import msgspec

from overlay.ids import NodeId
from overlay.protocol import Origin, UdpAddress
from protocols.discovery.choosing import Heard
from protocols.discovery.credentials import digest_of, split_digests
from protocols.discovery.messages import DIGEST_BYTES, MOST_DIGESTS, RequestAck, Response
from protocols.discovery.timing import Word

MOST_AWAITED = 10_000  # digests kept; more are counted as unnamed


class Asked(msgspec.Struct):
    """A BDN or a broker that the request was sent to."""

    address: UdpAddress
    what: str  # "bdn HOST:PORT", "known NAME", "via NAME"
    name: NodeId = ""  # once it is known
    tries: int = 0  # since it answered last
    challenges: int = 0
    cookie: bytes = b""
    accepted: int = -1  # the last attempt that it took on
    total: int = 0  # brokers that it handed the request to
    refused: str = ""


class Round:
    """Everything about one discovery until its target set is chosen."""

    def __init__(self, request: bytes, now: float, collect_until: float, deadline: float) -> None:
        self.id = request
        self.began = now
        self.collect_until = collect_until
        self.deadline = deadline
        self.attempt = 0
        self.first_attempt = 0  # of those that the present sources got
        self.sent_at: dict[int, float] = {0: now}  # of each attempt
        self.asked: dict[UdpAddress, Asked] = {}
        self.sources: dict[str, None] = {}  # for people
        self.by_group = False
        self.heard: dict[NodeId, Heard] = {}
        self.late = 0  # responses past max_responses
        self.fruitless = 0
        self.lossy = False  # somebody answered only a later attempt
        self._awaited: dict[bytes, None] = {}
        self._heard_digests: dict[bytes, None] = {}
        self._unnamed = 0
        self._told: dict[UdpAddress, Word] = {}  # the time, in acknowledgements
        self._news = False
        self._slowest_ack = 0.0

    # -- what arrives -----------------------------------------------------------------------------

    def hear_time(self, who: UdpAddress, ack: RequestAck, now: float) -> None:
        """A BDN or broker told the time; the first that each tells is the closest bound."""
        if ack.sent_at is not None and who in self.asked and who not in self._told:
            asked = self.sent_at.get(ack.attempt, self.began)
            self._told[who] = Word(asked, ack.sent_at, ack.error, now)

    def take_ack(self, asked: Asked, ack: RequestAck, now: float) -> None:
        """A BDN or broker took the request on."""
        self._slowest_ack = max(self._slowest_ack, now - self.sent_at.get(ack.attempt, self.began))
        asked.tries, asked.refused = 0, ""
        asked.accepted = max(asked.accepted, ack.attempt)
        asked.total = ack.total
        self._await(ack.injected)
        self._unnamed = max(self._unnamed, ack.total - len(ack.injected) // DIGEST_BYTES)

    def take(self, origin: Origin, response: Response, now: float) -> None:
        """A broker answered; a second answer of it changes nothing."""
        name = origin.name
        self._await(response.forwarded)
        asked = self.asked.get(origin.address)
        if asked is not None and response.alone:  # it will not acknowledge what it cannot hand on
            asked.accepted, asked.tries = max(asked.accepted, response.attempt), 0
        if name in self.heard:
            return
        elapsed = now - self.sent_at.get(response.attempt, self.began)
        self.heard[name] = Heard(name, origin.address, response, elapsed, now)
        self._heard_digests[digest_of(name)] = None
        self._news = True
        self.lossy |= response.attempt > self.first_attempt

    def _await(self, digests: bytes) -> None:
        for digest in split_digests(digests):
            if len(self._awaited) < MOST_AWAITED:
                self._awaited[digest] = None

    def words(self) -> list[Word]:
        """All that was told of the time: by each broker, whose time counts, and by each BDN."""
        return [*(one.word for one in self.heard.values()), *self._told.values()]

    # -- what is known ----------------------------------------------------------------------------

    @property
    def missing(self) -> int:
        """Brokers that were handed the request and did not answer."""
        named = sum(digest not in self._heard_digests for digest in self._awaited)
        if not self._unnamed:
            return named
        return max(named, len(self._awaited) + self._unnamed - len(self.heard))

    @property
    def accepted(self) -> list[Asked]:
        """Who took the request on."""
        return [one for one in self.asked.values() if one.accepted >= 0]

    @property
    def unanswered(self) -> list[Asked]:
        """Who may still be about to take it on."""
        return [one for one in self.asked.values() if one.accepted < 0 and not one.refused]

    def is_complete(self, enough: int) -> bool:
        """Whether no further response is wanted, or none can come."""
        if len(self.heard) >= enough:
            return True
        if self.by_group or not self.heard or self.unanswered:
            return False  # nobody knows who hears multicast: silence must tell
        return bool(self.accepted) and self.missing == 0

    @property
    def slowest(self) -> float:
        """From an attempt to an answer to it, at most so far."""
        return max((self._slowest_ack, *(one.elapsed for one in self.heard.values())))

    def take_news(self) -> bool:
        """Whether somebody answered since the last time."""
        news, self._news = self._news, False
        return news

    def heard_digests(self) -> bytes:
        """Those who need not answer again, as many as a request has room for."""
        return b"".join(list(self._heard_digests)[:MOST_DIGESTS])

    def next_attempt(self, most: int, now: float) -> None:
        """Ask anew."""
        if self.attempt < most:
            self.attempt += 1
            self.sent_at[self.attempt] = now
