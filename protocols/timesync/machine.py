"""The time service of one node: polls, serves, votes, and steers overlay time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from random import Random
from typing import ClassVar, NamedTuple

from overlay.errors import InvariantViolation, RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import (
    DatagramHandler,
    Effects,
    Event,
    EventHandler,
    Message,
    Origin,
    OverlayProtocol,
    UdpAddress,
)
from overlay.rates import RateLimit
from overlay.tracing import Trace
from overlay.tracing.kinds import CLOCK_READ
from protocols.membership.events import MemberFailed, MemberJoined, MemberLeft
from protocols.membership.interface import MembershipView
from protocols.timesync.abroad import Abroad
from protocols.timesync.config import TimeSettings
from protocols.timesync.counts import TimeCounts
from protocols.timesync.events import FalsetickerFound, TimeSynchronised
from protocols.timesync.filtering import Sample, Verdict
from protocols.timesync.messages import FARTHEST, MAX_RATE, PADDING, TimeReply, TimeRequest
from protocols.timesync.roster import Roster
from protocols.timesync.source import Claim, Kind, Source
from protocols.timesync.steering import Standing, Steering
from protocols.zones.interface import ZoneDirectory

REVIEW = "review"
REVIEW_FIRST = 0.25  # s, while this node has no time
REVIEW_SOON = 0.05  # s after a member came or went
MOST_OPEN = 256  # requests: more than a burst of all sources leaves unanswered
SPACING = 0.02  # s: sources are polled one after the other, not in one packet train


class Asked(NamedTuple):
    """A request that has no answer yet."""

    source: str
    at: float


class Exchange(NamedTuple):
    """The four timestamps of one answer of an NTP server, and what it says of itself."""

    asked: float  # by our clock
    received: float  # by the server's
    sent: float
    heard: float  # by ours
    error: float  # its root delay / 2 and root dispersion
    stratum: int


class TimeSync(OverlayProtocol):
    """Overlay time on one node."""

    name: ClassVar[str] = "timesync"
    messages: ClassVar[tuple[type[Message], ...]] = (TimeRequest, TimeReply)
    emits: ClassVar[tuple[type[Event], ...]] = (TimeSynchronised, FalsetickerFound)

    config: TimeSettings

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: TimeSettings,
        *,
        members: MembershipView | None = None,
        where: Callable[[NodeId], UdpAddress | None],
        servers: tuple[UdpAddress, ...] = (),
        zones: ZoneDirectory | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """`clock` reads the node's clock in the middle of a tick, where time passes in one.

        Without `zones` the time is that of one zone; without `members`, that of leading zones.
        """
        super().__init__(me, effects, rng, config)
        self.counts = TimeCounts()
        self._members = members
        self._where = where
        self._clock = clock
        self._roster = Roster(me, rng, config, members, servers, Abroad(me, zones))
        self._steering = Steering(me, config, self._roster, self.counts, effects.emit)
        self._open: dict[int, Asked] = {}  # the oldest first
        self._started = 0.0
        self._rates = RateLimit(config.source_rate, config.source_rate, config.serve_rate)

    def datagram_handlers(self) -> Mapping[type[Message], DatagramHandler]:
        """One handler for each message of the table in the package's docstring."""
        return {TimeRequest: self._on_request, TimeReply: self._on_reply}

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """Members come and go, and sources with them."""
        if self._members is None:
            return {}
        return dict.fromkeys((MemberJoined, MemberFailed, MemberLeft), self._on_member)

    # -- what others ask ----------------------------------------------------------------------

    def overlay_time(self, local: float) -> float:
        """Overlay time when the node's clock shows `local`: never less than it said before."""
        return self._steering.discipline.time(local)

    def reading(self, local: float) -> tuple[float, float] | None:
        """What overlay time adds to the node's clock, and its error; None while it is unknown."""
        if not self.is_synchronised:
            return None
        standing = self._steering.standing(local)
        return standing.offset, standing.error

    def standing(self, now: float) -> Standing:
        """How well this node knows the time, and from whom."""
        return self._steering.standing(now)

    @property
    def sources(self) -> list[Source]:
        """Whom it asks, the most senior first."""
        return self._roster.ordered()

    @property
    def is_synchronised(self) -> bool:
        """Whether overlay time is more than this node's clock."""
        return self._steering.synchronised

    # -- time ---------------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Begin to look for sources."""
        self._started = now
        self._steering.start(now)
        self._review(now)

    def on_timer(self, key: Hashable, now: float) -> None:
        """Poll a source, or look who is there."""
        if key == REVIEW:
            self._review(now)
        elif isinstance(key, tuple) and key[1] in self._roster.sources:
            self._poll(self._roster.sources[key[1]], now)

    def _on_member(self, event: MemberJoined | MemberFailed | MemberLeft, now: float) -> None:
        joined = isinstance(event, MemberJoined)
        if self._roster.lacks_sources if joined else event.member in self._roster.sources:
            self.effects.set_timer(REVIEW, now + REVIEW_SOON)

    def _review(self, now: float) -> None:
        new, gone = self._roster.revise(now, synchronised=self.is_synchronised)
        for key in gone:
            self.effects.cancel_timer(("poll", key))
        for place, source in enumerate(new):
            if source.kind is not Kind.NTP:  # the driver's side polls those
                self.effects.set_timer(("poll", source.key), now + SPACING * (place + 1))
        self._give_up_waiting(now)
        self._steering.vote(now)
        self._found(now)
        pause = self.config.review if self.is_synchronised else REVIEW_FIRST
        self.effects.set_timer(REVIEW, now + pause)

    def _found(self, now: float) -> None:
        """Where nobody knows the time the senior one begins with its own clock."""
        if self.is_synchronised:
            return
        waited = now - self._started
        patience = self.config.found_after * (3 if self.config.ntp else 1)
        if waited >= 3 * patience or (waited >= patience and not self._roster.somebody_knows()):
            self._steering.found(now)

    def _poll(self, source: Source, now: float) -> None:
        pause = source.polled()
        self.effects.set_timer(("poll", source.key), now + pause * self.rng.uniform(0.95, 1.05))
        address = source.address or self._where(source.name)
        if address is None:
            return
        self._give_up_waiting(now)
        while len(self._open) >= MOST_OPEN:
            del self._open[next(iter(self._open))]
            self.counts.lost += 1
        request = self.rng.getrandbits(63)
        self.counts.polls += 1
        self._open[request] = Asked(source.key, self._moment(now))
        self.effects.cast(address, TimeRequest(request, PADDING))

    def _give_up_waiting(self, now: float) -> None:
        while self._open:
            request, asked = next(iter(self._open.items()))
            if abs(now - asked.at) <= self.config.timeout:
                return
            del self._open[request]
            self.counts.lost += 1

    def _moment(self, now: float) -> float:
        """The node's clock at this very moment: a tick may have lasted since `now`."""
        return now if self._clock is None else self._clock()

    # -- datagrams ----------------------------------------------------------------------------

    def _on_request(self, origin: Origin, msg: TimeRequest, now: float) -> None:
        if not self._rates.admits(origin.address.host, now):
            self.counts.not_served += 1
            return
        self.counts.served += 1
        sent = self._moment(now)
        told = self._steering.claim(sent)
        self.effects.cast(
            origin.address,
            TimeReply(
                msg.id,
                origin.arrived_at,
                sent,
                told.offset,
                told.rate,
                told.error,
                told.stratum,
                told.root,
                told.led,
            ),
        )

    def _on_reply(self, origin: Origin, msg: TimeReply, now: float) -> None:
        asked = self._open.get(msg.id)
        if asked is None:
            self.counts.late += 1
            return
        source = self._roster.sources.get(asked.source)
        if source is None:
            del self._open[msg.id]
            self.counts.late += 1
            return
        if source.name and source.name != origin.name:
            raise RemoteProtocolError("time-not-asked", f"{source.name} was asked")
        del self._open[msg.id]
        if origin.arrived_at - asked.at > self.config.timeout:
            self.counts.late += 1
            return
        source.name = origin.name
        told = (msg.sent, msg.offset, msg.rate, msg.error, msg.stratum, msg.root)
        claim = Claim(*told, now, msg.led)
        if self.effects.tracing:
            self._trace_exchange(origin, msg, asked.at)
        self._take(source, asked.at, msg.received, msg.sent, origin.arrived_at, claim, now)

    def _trace_exchange(self, origin: Origin, msg: TimeReply, asked: float) -> None:
        there, back = msg.received - asked, msg.sent - origin.arrived_at
        self.effects.trace(
            Trace(CLOCK_READ, origin.name, value=(there + back) / 2, duration=there - back)
        )

    def take_ntp(self, server: str, answer: Exchange, now: float) -> None:
        """An NTP server of the settings answered; `server` as they name it."""
        source = self._roster.sources.get(server)
        if source is None or source.kind is not Kind.NTP:
            return
        claim = Claim(answer.sent, 0.0, 0.0, answer.error, answer.stratum, server, now)
        times = (answer.asked, answer.received, answer.sent, answer.heard)
        self._take(source, *times, claim, now)

    def miss_ntp(self, server: str, now: float) -> None:
        """An NTP server was asked and did not answer."""
        source = self._roster.sources.get(server)
        if source is not None:
            source.missed += 1

    def _take(
        self,
        source: Source,
        asked: float,
        received: float,
        sent: float,
        heard: float,
        claim: Claim,
        now: float,
    ) -> None:
        held, took = sent - received, heard - asked
        numbers = (received, sent, claim.offset, claim.error)
        if not all(abs(number) <= FARTHEST for number in numbers) or abs(claim.rate) > MAX_RATE:
            raise RemoteProtocolError("time-impossible", "a number that is no time")
        if held < 0 or held > took + 2e-6 or took < 0:
            raise RemoteProtocolError("time-impossible", f"held for {held} s of {took}")
        middle = (asked + heard) / 2
        sample = Sample(middle, (received + sent) / 2 - middle, max(0.0, took - held))
        self.counts.samples += 1
        verdict = source.take(sample, claim)
        if verdict is Verdict.ODD:
            self.counts.odd += 1
        elif verdict is Verdict.RESTARTED:
            self.counts.restarts += 1
        if verdict is not Verdict.TAKEN and source.kind is not Kind.NTP:
            source.hurry(4, anew=verdict is Verdict.RESTARTED)
            self.effects.set_timer(("poll", source.key), now + self.config.burst_every)
        self._steering.vote(now)

    # -- checks -------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """Everything is bounded, and nobody is followed who may not be."""
        if len(self._open) > MOST_OPEN:
            raise InvariantViolation(f"{self.me}: {len(self._open)} open time requests")
        self._roster.check_invariants()
        self._steering.check_invariants()
