"""Asking members whether they are there: directly, through helpers, and urgently."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from overlay.protocol import Message
from protocols.membership.attributes import Attribute
from protocols.membership.core import Core
from protocols.membership.messages import Ack, IndirectAck, Ping, PingRequest
from protocols.membership.records import Record, State
from protocols.membership.watching import Watcher

PROBE = "probe"  # the alarm of the next probe
WAIT = "wait"  # ("wait", sequence): no answer to a probe so far
RELAY = "relay"  # ("relay", sequence): no answer to a ping for somebody else
MAX_RELAYS = 256  # pings under way for others: more means that somebody floods us
CROWD = 8  # asked through helpers at once on a hint; more means that the network broke, not they
DEAF = 3  # times that others are asked for help if no helper reports at all; then I accuse
JITTER = 0.1  # of the period, so that the probes of a zone never march in step
CALM_AFTER = 10.0  # s without news; then partners are asked seldom, and share a tick with the ring
CALM_TURNS = 3  # periods from one partner to the next, in a calm zone

Verdict = Callable[[bool, float], None]
Heard = Callable[[NodeId, int, float], None]


class Probe:
    """One question under way."""

    __slots__ = (
        "abrupt", "claim", "deaf", "direct", "few", "helpers", "life", "repeated", "reports",
        "target", "urgent", "verdict",
    )  # fmt: skip

    def __init__(self, target: NodeId, urgent: bool, abrupt: bool) -> None:
        self.target = target
        self.urgent = urgent
        self.abrupt = abrupt
        self.repeated = 0.0  # when it was asked again, through helpers too
        self.helpers: list[NodeId] = []  # who did not report yet
        self.reports = 0  # of helpers that did
        self.few = False  # one helper is enough: others ask, too
        self.deaf = 0  # times that none of the helpers did
        self.direct = True  # still in its first stage
        self.life: int | None = None  # which life must answer; None: any
        self.verdict: Verdict | None = None  # whom to tell instead of accusing
        self.claim: Record | None = None  # that it is dead: to be believed instead of accusing


class Prober(Watcher):
    """Watches the ring successor, and partners in turn."""

    def __init__(self, core: Core, heard: Heard) -> None:
        self._core = core
        self._heard = heard  # told of everybody who sends a digest
        self._round: list[NodeId] = []  # who is still to be probed in this round, last first
        self._turn = 0
        self._calm_from = 0.0  # if nothing happens until then
        self._calm_version = -1  # the view's version for which that holds
        self._near: list[NodeId] = []  # who that is
        self._seen = -1  # the view's version for which that holds
        self._sequence = 0
        self._probes: dict[int, Probe] = {}
        self._by_target: dict[NodeId, int] = {}
        self._through_helpers = 0  # how many of the probes are in their second stage
        self._relays: dict[int, tuple[NodeId, int, NodeId]] = {}  # requester, its sequence, target

    def start(self) -> None:
        """Probe from now on."""
        self._core.alarms.set(PROBE, self._core.rng.random() * self._core.settings.probe_period / 2)

    # -- whom to ask ----------------------------------------------------------------------------

    def on_probe_alarm(self, now: float) -> None:
        """Ask the ring successor once in a period, and a partner: seldom in a calm zone."""
        core, version = self._core, self._core.table.version
        if version != self._calm_version:
            self._calm_version = version
            self._calm_from = now + CALM_AFTER
        calm = now >= self._calm_from
        pause = core.settings.probe_period / (1 if calm else 2)
        core.alarms.set(PROBE, pause * (1 + JITTER * (2 * core.rng.random() - 1)))
        self._turn += 1
        if calm or self._turn % 2:
            self._ask(self._successor(), now)
        if self._turn % CALM_TURNS == 0 if calm else self._turn % 2 == 0:
            self._ask(self._next_of_round(), now)

    def _ask(self, target: NodeId | None, now: float) -> None:
        if target is not None and target not in self._by_target:
            self._begin(Probe(target, urgent=False, abrupt=False), now)

    def _successor(self) -> NodeId | None:
        """Everybody has one predecessor that watches it, so nobody is unwatched for a period."""
        table = self._core.table
        if table.version != self._seen:
            self._seen = table.version
            self._near = table.ring().successors(self._core.me, 1)
        return self._near[0] if self._near else None

    def _next_of_round(self) -> NodeId | None:
        table = self._core.table
        for _ in range(2):
            while self._round:
                name = self._round.pop()
                if name in table and name != self._core.me:
                    return name
            self._round = self._core.partners.round()
        return None

    def member_doubted(self, claim: Record, fresh: bool, now: float) -> None:
        """Tell it what is said of it, and see whether it answers; my link to it may be lost.

        From memory without helpers at first: halves that meet again doubt all, who mostly live.
        """
        under_way = self._by_target.get(claim.name)
        if under_way is None:
            if len(self._probes) < MAX_RELAYS:
                probe = Probe(claim.name, urgent=fresh, abrupt=False)
                probe.claim = claim if fresh else None
                self._begin(probe, now, claim)
                known = self._core.table.record(claim.name)
                if fresh and known is not None and known.abrupt:  # several have asked it by now
                    patience = self._core.settings.abrupt_min * self._core.health.factor
                    self._core.alarms.set((WAIT, self._by_target[claim.name]), patience)
            elif fresh:
                self._core.believe(claim, now)
        elif fresh:
            probe = self._probes[under_way]
            if probe.claim is None or probe.claim.incarnation <= claim.incarnation:
                probe.claim = claim
            if probe.abrupt:
                self._give_up(under_way, now)
            else:
                self.verify(claim.name, now)

    def member_gone(self, record: Record, now: float) -> None:
        """Others found out first."""
        under_way = self._by_target.get(record.name)
        if under_way is not None and self._probes[under_way].verdict is None:
            self._forget(under_way)

    def _give_up(self, sequence: int, now: float) -> None:
        """Others have judged, and my own link to it is lost: that is enough."""
        claim = self._probes[sequence].claim
        if claim is not None and self._probes[sequence].verdict is None:
            self._forget(sequence)
            self._core.believe(claim, now)

    def verify(self, name: NodeId, now: float, abrupt: bool = False) -> None:
        """Ask directly and through helpers at once: there is a hint that it may be gone.

        When many are hinted at, a few at a time are asked through helpers, and the others directly:
        all members do so, and most are found dead by one of them before their turn here.
        """
        under_way = self._by_target.get(name)
        if under_way is None:
            self._begin(Probe(name, urgent=True, abrupt=abrupt), now)
            return
        probe = self._probes[under_way]
        probe.abrupt = probe.abrupt or abrupt
        if probe.direct and self._through_helpers < CROWD:
            self._second_stage(under_way, probe)
        if abrupt:
            self._give_up(under_way, now)

    def link_lost(self, name: NodeId, closed: bool, was_open: bool, now: float) -> None:
        """A link broke, or an attempt to open one failed: a hint, unless others ask already.

        Then they hear at once that I do not reach it, and it is no question of mine: else all who
        help would ask others to help them, and a zone try in vain to link with each of its dead.
        """
        asked = [number for number, relay in self._relays.items() if relay[2] == name]
        for number in asked:
            self._report(number, reached=False, life=0)
        known = self._core.table.record(name)
        suspected = known is not None and known.state == State.SUSPECT
        if was_open or name in self._by_target or not (asked or suspected):
            self.verify(name, now, abrupt=closed)

    def witness(self, name: NodeId, now: float) -> None:
        """See for myself what others suspect: there is time, and a suspect may be overloaded."""
        if name not in self._by_target:
            probe = Probe(name, urgent=False, abrupt=False)
            probe.few = True
            self._begin(probe, now)

    def confront(self, name: NodeId, life: int, verdict: Verdict, now: float) -> bool:
        """Ask whether that life of a name still answers; false when it is being asked already."""
        under_way = self._by_target.get(name)
        if under_way is not None:
            if self._probes[under_way].verdict is not None:
                return False
            self._forget(under_way)
        probe = Probe(name, urgent=True, abrupt=False)
        probe.life = life
        probe.verdict = verdict
        self._begin(probe, now)
        return True

    def check(self) -> None:
        """Nobody is probed twice at once, and what is done for others stays bounded."""
        if len(self._probes) != len(self._by_target):
            raise InvariantViolation(f"{self._core.me}: a member is probed twice at once")
        if len(self._relays) > MAX_RELAYS:
            raise InvariantViolation(f"{self._core.me}: too many pings for others are under way")

    def audit(self) -> None:
        """Every probe ends, by an answer or by its alarm, and those with helpers are counted."""
        alarms = self._core.alarms
        waiting = [(WAIT, sequence) for sequence in self._probes]
        waiting += [(RELAY, sequence) for sequence in self._relays]
        if not all(key in alarms for key in waiting):
            raise InvariantViolation(f"{self._core.me}: a probe would never end")
        if self._through_helpers != sum(not probe.direct for probe in self._probes.values()):
            raise InvariantViolation(f"{self._core.me}: miscounts its probes through helpers")

    # -- asking ---------------------------------------------------------------------------------

    def _begin(self, probe: Probe, now: float, told: Record | None = None) -> None:
        self._core.counts.probes += 1
        sequence = self._next_sequence()
        self._probes[sequence] = probe
        self._by_target[probe.target] = sequence
        self._core.effects.send(probe.target, self.ping(sequence, probe.target, told))
        if probe.urgent and self._through_helpers < CROWD:
            self._second_stage(sequence, probe, repeat=False)
        else:
            self._wait_directly(sequence)

    def _wait_directly(self, sequence: int) -> None:
        core = self._core
        core.alarms.set((WAIT, sequence), core.settings.probe_timeout * core.health.factor)

    def _next_sequence(self) -> int:
        self._sequence += 1
        return self._sequence

    def ping(self, sequence: int, target: NodeId, told: Record | None = None) -> Ping:
        """A ping with news; whoever is not held to be alive is told so, and can refute."""
        core = self._core
        news, attributes = self._news_for(target, told)
        return Ping(sequence, core.table.digest, news, attributes)

    def _news_for(
        self, target: NodeId, told: Record | None = None
    ) -> tuple[tuple[Record, ...], tuple[Attribute, ...]]:
        core = self._core
        news, attributes = core.rumours.take(core.settings.packet_bytes)
        known = told or core.table.record(target)
        if known is not None and known.state != State.ALIVE and known not in news:
            news = (known, *news)
        return news, attributes

    def _second_stage(self, sequence: int, probe: Probe, repeat: bool = True) -> None:
        """Ask through helpers, and once more directly, since the first ping may be lost."""
        core = self._core
        probe.direct = False
        self._through_helpers += 1
        if repeat:
            core.effects.send(probe.target, Ping(sequence, core.table.digest))
        self._ask_helpers(sequence, probe)

    def _ask_helpers(self, sequence: int, probe: Probe) -> None:
        core = self._core
        count = min(core.settings.helpers, 1) if probe.few else core.settings.helpers
        helpers = core.partners.draw(count, probe.target, *probe.helpers)
        probe.helpers += helpers
        probe.repeated = core.clock.steady
        if helpers:
            core.effects.send(helpers, PingRequest(sequence, probe.target))
        core.alarms.set((WAIT, sequence), core.settings.indirect_timeout * core.health.factor)

    def on_wait_alarm(self, sequence: Hashable, now: float) -> None:
        """No answer so far."""
        assert isinstance(sequence, int)
        probe = self._probes.get(sequence)
        if probe is None:
            return
        if not probe.direct:
            self._unanswered(sequence, probe, now)
        elif probe.urgent and self._through_helpers >= CROWD:  # its turn will come
            self._wait_directly(sequence)
        else:
            self._second_stage(sequence, probe)

    def _unanswered(self, sequence: int, probe: Probe, now: float) -> None:
        if probe.helpers:  # not even they answer: perhaps it is my fault
            self._core.health.worse()
            if self._is_deaf(probe):
                probe.deaf += 1
                self._ask_helpers(sequence, probe)
                return
        self._forget(sequence)
        self._core.counts.unanswered += 1
        if probe.verdict is not None:
            probe.verdict(False, now)
        elif probe.claim is not None:
            self._core.believe(probe.claim, now)
        else:
            self._core.accuse(probe.target, probe.abrupt, now)

    def _is_deaf(self, probe: Probe) -> bool:
        """Whether I heard of nobody since I asked, so that it is more likely me than the member."""
        judged = probe.abrupt or probe.claim is not None or probe.verdict is not None
        return not judged and not probe.reports and probe.deaf < DEAF

    def _forget(self, sequence: int) -> None:
        probe = self._probes.pop(sequence)
        del self._by_target[probe.target]
        self._through_helpers -= not probe.direct
        self._core.alarms.cancel((WAIT, sequence))

    # -- answers --------------------------------------------------------------------------------

    def on_ping(self, src: NodeId, ping: Ping, now: float) -> None:
        """Answer, after reading the news: if it accuses me, the answer refutes it."""
        core = self._core
        try:
            if ping.news or ping.attributes:
                core.learn(src, ping.news, ping.attributes, now)
        finally:
            if not core.silent:
                news, attributes = self._news_for(src)
                core.effects.send(
                    src,
                    Ack(ping.sequence, core.myself.life, core.table.digest, news, attributes),
                )
                self._heard(src, ping.digest, now)

    def on_ack(self, src: NodeId, ack: Ack, now: float) -> None:
        """Settle the probe it answers; a stray one brings its news and nothing else."""
        probe = self._probes.get(ack.sequence)
        if probe is not None and probe.target == src:
            self._answered(ack.sequence, probe, ack.life, now)
        else:
            relay = self._relays.get(ack.sequence)
            if relay is not None and relay[2] == src:
                self._report(ack.sequence, reached=True, life=ack.life)
        if ack.news or ack.attributes:
            self._core.learn(src, ack.news, ack.attributes, now)
        self._heard(src, ack.digest, now)

    def _answered(self, sequence: int, probe: Probe, life: int, now: float) -> None:
        if probe.life is not None and probe.life != life:
            return  # a namesake answered: that says nothing about the life in question
        self._forget(sequence)
        self._core.health.better()
        if probe.verdict is not None:
            probe.verdict(True, now)

    def on_ping_request(self, src: NodeId, request: PingRequest, now: float) -> None:
        """Ping for a peer that cannot reach somebody."""
        core = self._core
        if request.target == core.me:
            core.effects.send(src, IndirectAck(request.sequence, True, core.myself.life))
            return
        if request.target not in core.table or len(self._relays) >= MAX_RELAYS:
            core.counts.relays_refused += 1
            core.effects.send(src, IndirectAck(request.sequence, False))
            return
        sequence = self._next_sequence()
        self._relays[sequence] = (src, request.sequence, request.target)
        core.effects.send(request.target, self.ping(sequence, request.target))
        core.alarms.set((RELAY, sequence), core.settings.probe_timeout)

    def on_relay_alarm(self, sequence: Hashable) -> None:
        """It does not answer me either; saying so proves that I am here."""
        assert isinstance(sequence, int)
        if sequence in self._relays:
            self._report(sequence, reached=False, life=0)

    def _report(self, sequence: int, *, reached: bool, life: int) -> None:
        requester, theirs, _ = self._relays.pop(sequence)
        self._core.alarms.cancel((RELAY, sequence))
        report: Message = IndirectAck(theirs, reached, life)
        self._core.effects.send(requester, report)

    def on_indirect_ack(self, src: NodeId, report: IndirectAck, now: float) -> None:
        """A helper reports."""
        probe = self._probes.get(report.sequence)
        if probe is None or src not in probe.helpers:
            return
        if report.reached:
            self._answered(report.sequence, probe, report.life, now)
            return
        probe.reports += 1
        probe.helpers.remove(src)
        if not probe.helpers:  # none is left to wait for but the member itself
            settings, health = self._core.settings, self._core.health
            deadline = probe.repeated + settings.probe_timeout * health.factor
            if deadline <= now:
                self._unanswered(report.sequence, probe, now)
            else:
                self._core.alarms.set((WAIT, report.sequence), deadline - now)
