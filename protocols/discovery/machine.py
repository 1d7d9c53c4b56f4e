"""The requester: asks, collects, chooses a target set, pings it, and tells who is nearest."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from random import Random
from typing import ClassVar

import msgspec

from overlay.errors import InvariantViolation, LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId
from overlay.intervals import Interval
from overlay.protocol import (
    ContactLearned,
    DatagramHandler,
    Effects,
    Event,
    Message,
    Origin,
    OverlayProtocol,
    UdpAddress,
)
from overlay.tracing import Level, Trace, flow_number
from overlay.tracing.kinds import DISCOVERY_BEGAN, DISCOVERY_PING, DISCOVERY_RESPONSE
from protocols.discovery.asking import Asking
from protocols.discovery.choosing import decide, rank, with_pings
from protocols.discovery.collecting import Round
from protocols.discovery.config import DiscoverySettings
from protocols.discovery.events import (
    BrokerFound,
    BrokerMoved,
    Candidate,
    NoBrokerFound,
    Phases,
)
from protocols.discovery.interface import (
    Clock,
    MayBe,
    anybody,
)
from protocols.discovery.messages import Ping, Pong, Request, RequestAck, Response
from protocols.discovery.pinging import Pinging
from protocols.discovery.staying import Staying
from protocols.discovery.timing import common_offset

STEP = "step"  # ask again
END = "end"  # of collecting, or of pinging
PING = "ping"
WATCH = "watch"
TARGETS = b"targets"  # the last target set, on disk (§7)
KEPT_TARGETS = 20
COLLECTING_SHARE = 0.8  # of the timeout; the rest is for pings


class RequesterCounts(msgspec.Struct):
    """How often what happened, since the start."""

    asked: int = 0
    found: int = 0
    failed: int = 0
    requests: int = 0  # datagrams, retransmissions too
    responses: int = 0
    late: int = 0  # after the target set was chosen, or of an earlier discovery
    surplus: int = 0  # past max_responses
    pings: int = 0
    pongs: int = 0


class Requester(OverlayProtocol):
    """Finds the nearest broker, once or again and again; one discovery at a time."""

    name: ClassVar[str] = "discovery"
    messages: ClassVar[tuple[type[Message], ...]] = (Request, RequestAck, Response, Ping, Pong)
    emits: ClassVar[tuple[type[Event], ...]] = (
        BrokerFound,
        NoBrokerFound,
        BrokerMoved,
        ContactLearned,
    )

    config: DiscoverySettings

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: DiscoverySettings,
        *,
        here: Callable[[], tuple[str, ...]] = tuple,
        clock: Clock | None = None,
        moment: Callable[[], float] | None = None,
        may_be: MayBe = anybody,
    ) -> None:
        """`clock` is of a node that has overlay time; a visitor learns it from the answers.

        `moment` reads the node's clock in the middle of a tick, where time passes in one.
        """
        super().__init__(me, effects, rng, config)
        self.counts = RequesterCounts()
        self._clock = clock
        self._moment = moment
        self._may_be = may_be
        self._asking = Asking(me, effects, config, self.counts, here)
        self._known: dict[NodeId, UdpAddress] = {}  # the last target set
        self._round: Round | None = None
        self._ranked: list[Candidate] = []
        self._pinging: Pinging | None = None
        self._collected_at = 0.0
        self._choosing = 0.0  # s that it took
        self._staying = Staying(config)
        self._watching = False

    def datagram_handlers(self) -> Mapping[type[Message], DatagramHandler]:
        """Everything comes as datagrams."""
        return {
            RequestAck: self._on_ack,
            Response: self._on_response,
            Pong: self._on_pong,
        }

    # -- commands -------------------------------------------------------------------------------

    def discover(self, now: float) -> bytes:
        """Begin; BrokerFound or NoBrokerFound with this id follows within `timeout`."""
        if self._round is not None:
            raise LocalProtocolError("a discovery is under way: wait for its end")
        config = self.config
        self._asking.check(self._known)
        collect_until = now + COLLECTING_SHARE * config.timeout
        round_ = Round(self.rng.randbytes(16), now, collect_until, now + config.timeout)
        self._round = round_
        self.counts.asked += 1
        if self.effects.tracing:
            self.effects.trace(Trace(DISCOVERY_BEGAN, stream=flow_number(round_.id)))
        self._asking.begin(round_, self._known, now)
        self.effects.set_timer(END, collect_until)
        self.effects.set_timer(STEP, now + self._asking.pause(round_))
        return round_.id

    def watch(self, now: float) -> None:
        """Look around now and every `every` seconds; BrokerMoved tells which broker to use."""
        self._watching = True
        if self._round is None:
            self.discover(now)

    def unwatch(self, now: float) -> None:
        """Stay where we are."""
        self._watching = False
        self.effects.cancel_timer(WATCH)

    @property
    def current(self) -> Candidate | None:
        """In continuous mode the broker to use."""
        return self._staying.current

    @property
    def known(self) -> tuple[NodeId, ...]:
        """The last target set, the best first."""
        return tuple(self._known)

    # -- collecting -----------------------------------------------------------------------------

    def _on_ack(self, origin: Origin, msg: RequestAck, now: float) -> None:
        round_ = self._collecting(msg.id)
        if round_ is None:
            return
        if not (self._may_be(origin.name, "bdn") or self._may_be(origin.name, "broker")):
            raise RemoteProtocolError("discovery-no-right", "only brokers and BDNs acknowledge")
        self._asking.answered(round_, origin, msg, self._known, now)
        self._finish_if_complete(round_, now)

    def _on_response(self, origin: Origin, msg: Response, now: float) -> None:
        round_ = self._collecting(msg.id)
        if round_ is None:
            return
        if not self._may_be(origin.name, "broker"):
            raise RemoteProtocolError("discovery-no-right", "only brokers answer")
        if origin.name not in round_.heard and len(round_.heard) >= self.config.max_responses:
            self.counts.surplus += 1
            return
        self.counts.responses += 1
        round_.take(origin, msg, origin.arrived_at)
        if self.effects.tracing:
            self.effects.trace(
                Trace(
                    DISCOVERY_RESPONSE,
                    origin.name,
                    stream=flow_number(round_.id),
                    duration=origin.arrived_at - round_.began,
                )
            )
        self._finish_if_complete(round_, now)

    def _collecting(self, request: bytes) -> Round | None:
        round_ = self._round
        if round_ is None or round_.id != request or self._pinging is not None:
            self.counts.late += 1
            return None
        return round_

    def _finish_if_complete(self, round_: Round, now: float) -> None:
        if round_.is_complete(self.config.max_responses):
            self._choose(round_, now)

    def _step(self, round_: Round, now: float) -> None:
        if self._asking.step(round_, self._known, now):
            self.effects.set_timer(STEP, now + self._asking.pause(round_))
        else:
            self._choose(round_, now)

    # -- choosing and pinging -------------------------------------------------------------------

    def _choose(self, round_: Round, now: float) -> None:
        """Rank what was heard and ping the best."""
        self.effects.cancel_timer(STEP)
        self._collected_at = now
        began = self._reading(now)
        self._ranked = self._rank(round_, now)
        current = self._staying.current
        if current is not None and all(one.name != current.name for one in self._ranked):
            self._ranked.append(current)  # it is compared, even if its response was lost
        targets = self._targets(0)
        self._choosing = self._reading(now) - began
        self._ping(round_, targets, now)

    def _rank(self, round_: Round, now: float) -> list[Candidate]:
        words = round_.words()
        if not words:
            return []
        own = None
        if self._clock is not None:
            here = self._clock(now)
            own = Interval(here.time - now - here.error, here.time - now + here.error)
        return rank(round_.heard.values(), self.config, common_offset(words, own))

    def _reading(self, now: float) -> float:
        """What the clock shows: signing a ping takes longer than some round trips differ."""
        return now if self._moment is None else self._moment()

    def _targets(self, start: int) -> list[Candidate]:
        """The next so many of the ranking; our own broker is in the first set in any case."""
        chosen = self._ranked[start : start + self.config.targets]
        current = self._staying.current
        if start == 0 and current is not None:
            chosen += [
                one for one in self._ranked[self.config.targets :] if one.name == current.name
            ]
        return chosen

    def _ping(self, round_: Round, targets: list[Candidate], now: float) -> None:
        self._pinging = Pinging(
            [(one.name, one.address) for one in targets],
            self.config,
            self.rng,
            now,
            round_.deadline,
        )
        self._send_pings(self._pinging, now)

    def _send_pings(self, pinging: Pinging, now: float) -> None:
        for target in pinging.next_round():
            self.counts.pings += 1
            self.effects.cast(target.address, pinging.ping(target, self._reading(now)))
        self.effects.set_timer(PING, now + pinging.pause())
        self.effects.set_timer(END, pinging.ends_at())

    def _on_pong(self, origin: Origin, msg: Pong, now: float) -> None:
        pinging, round_ = self._pinging, self._round
        if pinging is None or round_ is None:
            self.counts.late += 1
        elif not pinging.answered(origin.name, msg.nonce, origin.arrived_at):
            raise RemoteProtocolError("pong-not-asked", f"of {origin.name!a}")
        else:
            self.counts.pongs += 1
            if self.effects.tracing >= Level.ALL:
                took = pinging.targets[origin.name].round_trips[-1]
                number = flow_number(round_.id)
                self.effects.trace(Trace(DISCOVERY_PING, origin.name, stream=number, duration=took))
            end = pinging.ends_at()
            if end <= now:
                self._decide(round_, pinging, now)
            else:
                self.effects.set_timer(END, end)

    def _decide(self, round_: Round, pinging: Pinging, now: float) -> None:
        """All is measured that will be."""
        measured = [with_pings(one, pinging.targets.get(one.name)) for one in self._ranked]
        decided = decide(measured, self.config)
        if decided and decided[0].ping_least is not None:
            self._end_well(round_, decided, now)
            return
        self._ranked = measured
        rest = [one for one in measured if not one.pinged]
        if rest and now + self.config.ping_slack < round_.deadline:
            self._ping(round_, rest[: self.config.targets], now)
        else:
            count = f"{len(measured)} broker{'s' if len(measured) > 1 else ''}"
            self._fail(round_, f"{count} answered, but none of them a ping", decided, now)

    # -- ends -----------------------------------------------------------------------------------

    def _end_well(self, round_: Round, decided: list[Candidate], now: float) -> None:
        self.counts.found += 1
        self._remember(decided)
        last = max((one.arrived_at for one in round_.heard.values()), default=now)
        phases = Phases(
            waiting=self._collected_at - round_.began,
            choosing=self._choosing,
            pinging=now - self._collected_at - self._choosing,
            last_response=last - round_.began,
        )
        found = BrokerFound(
            round_.id,
            decided[0],
            tuple(decided),
            phases,
            tuple(round_.sources),
            round_.attempt + 1,
            len(round_.heard),
        )
        self._forget_round()
        self.effects.emit(ContactLearned(found.winner.name, found.winner.endpoints))
        self.effects.emit(found)
        if self._watching:
            moved = self._staying.consider(found)
            if moved is not None:
                self.effects.emit(moved)
            self.effects.set_timer(WATCH, now + self.config.every)

    def _fail(self, round_: Round, reason: str, decided: list[Candidate], now: float) -> None:
        self.counts.failed += 1
        self._forget_round()
        self.effects.emit(NoBrokerFound(round_.id, reason, tuple(decided)))
        if self._watching:
            self.effects.set_timer(WATCH, now + self.config.every)

    def _forget_round(self) -> None:
        self._round = self._pinging = None
        self._ranked = []
        for key in (STEP, PING, END):
            self.effects.cancel_timer(key)

    def _remember(self, decided: list[Candidate]) -> None:
        """Keep the target set for a time when no BDN answers (§7)."""
        alive = [one for one in decided if one.ping_least is not None][:KEPT_TARGETS]
        known = {one.name: one.address for one in alive}
        if known != self._known:
            self._known = known
            kept = [(name, *address) for name, address in known.items()]
            self.effects.store(TARGETS, msgspec.msgpack.encode(kept), TARGETS)

    # -- life -----------------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Recall the last target set; one that cannot be read is as good as none."""
        try:
            rows = msgspec.msgpack.decode(
                kept.get(TARGETS, b"\x90"), type=list[tuple[str, str, int]]
            )
        except msgspec.MsgspecError:
            rows = []
        self._known = {name: UdpAddress(host, port) for name, host, port in rows[:KEPT_TARGETS]}

    def on_timer(self, key: Hashable, now: float) -> None:
        """Ask or ping again, or end what has its time."""
        round_ = self._round
        if key == WATCH:
            if self._watching and round_ is None:
                self.discover(now)
        elif round_ is None:
            return
        elif key == STEP:
            self._step(round_, now)
        elif self._pinging is None:
            if round_.heard:
                self._choose(round_, now)
            else:
                self._fail(round_, self._asking.why_nobody(round_, self._known), [], now)
        elif key == END:
            self._decide(round_, self._pinging, now)
        else:
            self._send_pings(self._pinging, now)

    def check_invariants(self) -> None:
        """Every discovery ends once; what is kept is bounded."""
        counts = self.counts
        if counts.asked != counts.found + counts.failed + (self._round is not None):
            raise InvariantViolation(f"{self.me}: a discovery has no end or two: {counts}")
        if self._pinging is not None and self._round is None:
            raise InvariantViolation(f"{self.me}: pings without a discovery")
        if self._round is not None and len(self._round.heard) > self.config.max_responses:
            raise InvariantViolation(f"{self.me}: {len(self._round.heard)} responses are kept")
        if len(self._known) > KEPT_TARGETS:
            raise InvariantViolation(f"{self.me}: remembers {len(self._known)} brokers")
