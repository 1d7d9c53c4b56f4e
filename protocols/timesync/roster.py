"""Whom one node asks for the time: seniors, random voters, servers and NTP."""

from __future__ import annotations

from random import Random

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from overlay.protocol import UdpAddress
from protocols.membership.interface import MembershipView
from protocols.timesync.abroad import LEADERS, Abroad
from protocols.timesync.config import TimeSettings
from protocols.timesync.messages import UNSYNCHRONISED
from protocols.timesync.seniority import Order
from protocols.timesync.source import Kind, Source

VOTERS_BURST = 4  # polls: a vote needs no more than an interval


class Roster:
    """The sources by key; members come and go, what the user named stays."""

    def __init__(
        self,
        me: NodeId,
        rng: Random,
        config: TimeSettings,
        members: MembershipView | None,
        servers: tuple[UdpAddress, ...],
        abroad: Abroad,
    ) -> None:
        self._me = me
        self._rng = rng
        self._config = config
        self._order = None if members is None else Order(members)
        self._members = members
        self._abroad = abroad
        self.relays: dict[NodeId, None] = {}  # our delegates, who tell us of zones that lead ours
        self._rotated_at = 0.0
        self.sources: dict[str, Source] = {}
        for server in config.ntp:
            self.sources[server] = Source(server, Kind.NTP, None, config)
        for address in servers:
            key = f"{address.host}:{address.port}"
            self.sources[key] = Source(key, Kind.SERVER, address, config)
        self._first = list(self.sources.values())

    @property
    def lacks_sources(self) -> bool:
        """Whether more members would be asked if there were any."""
        return self._count() < self._config.sources

    def _count(self) -> int:
        return sum(source.kind is Kind.MEMBER for source in self.sources.values())

    def revise(self, now: float, *, synchronised: bool) -> tuple[list[Source], list[str]]:
        """Follow the view; returns the new sources and the keys of those that are dropped."""
        new, self._first = self._first, []
        gone = self._follow_leaders(new)
        if self._order is None or self._members is None:
            return new, gone
        relays = self._abroad.relays() if self._order.is_first_committee else []
        self.relays = {name: None for name in relays if self._order.rank(name) is not None}
        seniors = list(dict.fromkeys((*self._order.seniors(), *self.relays)))
        seniors = seniors[: self._config.sources]
        strangers = [
            key
            for key, source in self.sources.items()
            if source.kind is Kind.MEMBER and self._order.rank(source.name) is None
        ]
        for key in strangers:
            del self.sources[key]
        gone += strangers
        gone += self._make_room(seniors, now)
        for name in seniors:
            known = self.sources.get(name)
            if known is None:
                new.append(self._member(name, self._config.burst))
            elif known.votes_only:
                known.votes_only = False
                known.hurry(self._config.burst, anew=True)
                new.append(known)
        missing = self._config.sources - self._count()
        if missing > 0:
            # Who knows no time yet may have to take it from any of them: so they are asked often.
            burst = VOTERS_BURST if synchronised else self._config.burst
            for name in self._order.others(self._rng, missing, tuple(self.sources)):
                new.append(self._member(name, burst, votes_only=True))
        return new, [key for key in gone if key not in self.sources]

    def _follow_leaders(self, new: list[Source]) -> list[str]:
        """Ask the delegates of leading zones, as they are now; the keys of others are returned."""
        wanted = self._abroad.leaders()
        leading = [key for key, one in self.sources.items() if one.kind is Kind.LEADER]
        gone = [key for key in leading if key not in wanted]
        for key in gone:
            del self.sources[key]
        for place, name in enumerate(wanted):
            if name not in self.sources:
                source = Source(name, Kind.LEADER, None, self._config, name=name)
                self.sources[name] = source
                new.append(source)
            self.sources[name].place = place
        return gone

    def _make_room(self, seniors: list[NodeId], now: float) -> list[str]:
        """Drop voters for new seniors, and now and then one for another."""
        members = [source for source in self.sources.values() if source.kind is Kind.MEMBER]
        voters = [source.key for source in members if source.name not in seniors]
        for key in voters:
            self.sources[key].votes_only = True
        room = self._config.sources - len(members)
        excess = sum(name not in self.sources for name in seniors) - room
        if excess <= 0 and voters and now - self._rotated_at >= self._config.rotate:
            self._rotated_at = now
            excess = 1
        dropped = self._rng.sample(voters, max(0, min(excess, len(voters))))
        for key in dropped:
            del self.sources[key]
        return dropped

    def _member(self, name: NodeId, burst: int, *, votes_only: bool = False) -> Source:
        self.sources[name] = source = Source(
            name,
            Kind.MEMBER,
            None,
            self._config,
            name=name,
            votes_only=votes_only,
            burst=burst,
        )
        return source

    def ordered(self) -> list[Source]:
        """The most senior first."""
        return sorted(self.sources.values(), key=lambda one: one.sort_key(self._rank(one)))

    def _rank(self, source: Source) -> tuple[int, int, NodeId] | None:
        return None if self._order is None else self._order.rank(source.name)

    def is_senior(self, source: Source) -> bool:
        """Whether this node may follow it: then it never follows this node."""
        if source.kind is Kind.NTP:
            return True
        mine = None if self._order is None else self._order.rank(self._me)
        rank = self._rank(source)
        if rank is None or mine is None:
            # A stranger: nobody knows its place, only whose time it has.
            stranger = source.kind is Kind.SERVER and source.claim is not None
            return stranger and source.claim is not None and source.claim.root != self._me
        return rank < mine

    def misses_seniors(self) -> bool:
        """Whether seniors live whom this node would follow, and none of them is heard."""
        seniors = [source for source in self.sources.values() if self._is_senior_member(source)]
        return bool(seniors) and not any(source.answers for source in seniors)

    def _is_senior_member(self, source: Source) -> bool:
        return source.kind is Kind.MEMBER and self.is_senior(source)

    def somebody_knows(self) -> bool:
        """Whether a source answers that knows the time, or is senior and may know it soon."""
        return any(
            source.answers
            and source.claim is not None
            and (source.claim.stratum < UNSYNCHRONISED or self.is_senior(source))
            for source in self.sources.values()
        )

    def hears_more(self) -> bool:
        """Whether a source that knows the time, or was just asked, will soon have a vote."""
        return any(source.is_pending for source in self.sources.values())

    def check_invariants(self) -> None:
        """No more members than are allowed, and never this node itself."""
        leading = sum(source.kind is Kind.LEADER for source in self.sources.values())
        if self._count() > self._config.sources or leading > LEADERS or self._me in self.sources:
            raise InvariantViolation(f"{self._me} asks {list(self.sources)} for the time")
