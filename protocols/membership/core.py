"""The heart of a zone's membership: who may say what about whom, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from random import Random

import msgspec

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import ContactLearned, Effects, Event, Scope
from protocols.membership.attributes import Attribute, Value, by_owner
from protocols.membership.clock import Alarms, SteadyClock
from protocols.membership.config import MembershipSettings
from protocols.membership.counts import MembershipCounts
from protocols.membership.events import (
    AttributesChanged,
    MemberFailed,
    MemberJoined,
    MemberLeft,
    MemberRefuted,
    MemberSuspected,
    NameTaken,
)
from protocols.membership.health import LocalHealth
from protocols.membership.horizon import Horizon
from protocols.membership.messages import MAX_NEWS, Gossip
from protocols.membership.partners import Partners
from protocols.membership.records import (
    MAX_INCARNATION,
    Record,
    State,
    accused,
    ended,
    is_good_name,
    supersedes,
)
from protocols.membership.rumours import Rumours
from protocols.membership.sharing import Sharing
from protocols.membership.table import MemberTable
from protocols.membership.tracing import ViewTracer
from protocols.membership.watching import Watcher

GOSSIP = "gossip"  # the alarm that sends news
TWIN_PROOFS = 3  # times an older life must overtake us before we believe that it lives
MAX_ATTRIBUTE_NEWS = 4096
REGOSSIP = 8  # changes by one reconciliation that are passed on: more is a merge, not missed news

MayJoin = Callable[[NodeId, Scope], bool]


class Source(Enum):
    """How a peer came to tell something, which decides how far it is believed."""

    NEWS = "fresh: passed on at once"
    MEMORY = "a reconciliation: that somebody died is verified before it is believed"
    WELCOME = "the answer to my Join, which alone may show clocks far ahead of mine"


class Core:
    """Holds the view and applies claims to it; `now` is steady time throughout."""

    def __init__(
        self,
        zone: Scope,
        me: NodeId,
        effects: Effects,
        rng: Random,
        settings: MembershipSettings,
        may_join: MayJoin,
    ) -> None:
        self.me = me
        self.zone = zone
        self.effects = effects
        self.rng = rng
        self.settings = settings
        self.may_join = may_join
        self.table = MemberTable(zone, me)
        self.health = LocalHealth(settings.health_max)
        self.alarms = Alarms(effects, settings.probe_timeout, self.health.worse)
        self.clock = SteadyClock(settings.probe_period, self.health.worse, self.alarms.rearm)
        self.alarms.follow(self.clock)
        self.horizon = Horizon(self.clock)
        self.counts = MembershipCounts()
        self.rumours = Rumours(settings.max_members, MAX_ATTRIBUTE_NEWS, self.counts)
        self._sharing = Sharing(self.table, self.horizon, settings)
        self.partners = Partners(self.table, rng, settings.partners)
        self.watchers: list[Watcher] = [self.partners, ViewTracer(effects, self.table)]
        self.is_ripe: Callable[[Record, float], bool] = lambda _known, _now: True
        self.silent = True  # before the start, after leaving, and when the name is taken
        self.myself = Record(me, 0, State.ALIVE, 0, 0)
        self._overtaken = 0

    # -- my own life ----------------------------------------------------------------------------

    def begin(self, incarnation: int, endpoints: Sequence[str], now: float) -> None:
        """Become a member, so far alone."""
        life = self.rng.getrandbits(63)
        self.myself = Record(self.me, incarnation, State.ALIVE, life, incarnation, tuple(endpoints))
        self.horizon.trust(incarnation)
        self.silent = False
        self._put_myself(now)
        self._sharing.begin(incarnation)

    def raise_floor(self, floor: int, now: float) -> None:
        """An earlier life had come that far: begin above it, and version attributes anew."""
        self.horizon.trust(floor)
        if floor < self.myself.incarnation:
            return
        born = min(floor + 1, MAX_INCARNATION)
        self.myself = msgspec.structs.replace(self.myself, incarnation=born, born=born)
        self._put_myself(now)
        self.spread(self.myself)
        self._spread_attributes(self.me, self._sharing.begin(born), spread=True)

    def reassert(self, above: int, now: float) -> None:
        """Prove that this life goes on: an incarnation higher than what was claimed."""
        incarnation = min(max(above, self.myself.incarnation) + 1, MAX_INCARNATION)
        self.myself = msgspec.structs.replace(self.myself, incarnation=incarnation)
        self._put_myself(now)
        self.spread(self.myself)

    def readdress(self, endpoints: Sequence[str], now: float) -> None:
        """Tell everybody where this node can be reached from now on."""
        self.myself = msgspec.structs.replace(self.myself, endpoints=tuple(endpoints))
        self.reassert(self.myself.incarnation, now)

    def _put_myself(self, now: float) -> None:
        self.table.put(self.myself, now)
        self.effects.store(b"incarnation", str(self.myself.incarnation).encode(), "incarnation")

    def farewell(self, now: float) -> None:
        """Leave: tell enough members at once that all will hear of it."""
        if self.silent:
            return
        left = ended(self.myself, State.LEFT)
        near = self.table.ring().successors(self.me, 1) + self.table.ring().predecessors(self.me, 1)
        several = self.partners.draw(2 * self.settings.gossip_fanout)
        receivers = list(dict.fromkeys(near + several))
        if receivers:
            self.effects.send(receivers, Gossip((left,)))
        self.fall_silent()

    def fall_silent(self) -> None:
        """Say and hear nothing any more."""
        self.silent = True
        self.alarms.cancel_all()

    def yield_name(self, reason: str) -> None:
        """Somebody else is called like this: stop."""
        self.fall_silent()
        self.emit(NameTaken(self.zone, self.me, reason))

    def emit(self, event: Event) -> None:
        """Tell siblings and the application."""
        self.effects.emit(event)

    # -- news out -------------------------------------------------------------------------------

    @property
    def repeats(self) -> int:
        """How often this member passes one piece of news on."""
        digits = len(str(len(self.table)))  # log10 n, rounded up: cheap, and as good
        return max(1, round(self.settings.gossip_repeats * digits))

    def spread(self, record: Record) -> None:
        """Pass a state on, soon."""
        self.rumours.states.push(record.name, record, self.repeats)
        self.wake_gossip()

    def wake_gossip(self) -> None:
        """See to it that news leaves, in company of what else comes up in a moment."""
        if GOSSIP not in self.alarms:
            self.alarms.set(GOSSIP, self.settings.gossip_delay)

    def gossip(self) -> None:
        """The alarm rang: send one packet of news to a few members."""
        receivers = self.partners.receivers(self.settings.gossip_fanout)
        if not receivers:
            return
        states, attributes = self.rumours.take(self.settings.packet_bytes, len(receivers))
        if states or attributes:
            self.effects.send(receivers, Gossip(states, attributes))
        if self.rumours:
            self.alarms.set(GOSSIP, self.settings.gossip_period)

    # -- news in --------------------------------------------------------------------------------

    def learn(
        self,
        src: NodeId,
        news: tuple[Record, ...],
        attributes: tuple[Attribute, ...],
        now: float,
        source: Source = Source.NEWS,
    ) -> None:
        """Apply what a peer says; claims that break a rule change nothing and are counted."""
        if len(news) > MAX_NEWS or len(attributes) > MAX_NEWS:
            raise RemoteProtocolError("member-list-too-long", f"{len(news)} members")
        spread = source is Source.NEWS or (source is Source.MEMORY and len(news) <= REGOSSIP)
        refusal = ""
        for record in news:
            if self.silent:  # an earlier one said that my name is taken
                return
            refusal = self._claim(src, record, now, source, spread) or refusal
        for member, updates in by_owner(attributes).items() if attributes else ():
            taken, objection = self._sharing.take(member, updates)
            self._spread_attributes(member, taken, spread or member == self.me)
            refusal = objection or refusal
        if refusal:
            raise RemoteProtocolError(refusal, f"from {src} in zone {self.zone!r}")

    def _claim(self, src: NodeId, claim: Record, now: float, source: Source, spread: bool) -> str:
        """Apply one claim; returns why it was refused, or nothing."""
        if claim.name == self.me:
            return self._claim_about_me(src, claim, now)
        known = self.table.record(claim.name)
        if known == claim:
            self.rumours.states.echo(claim.name)
            return ""
        if known is not None and not supersedes(claim, known):
            return self._old_claim(src, known, claim, now, source, spread)
        if known is None or claim.incarnation != known.incarnation or claim.life != known.life:
            objection = self._objection(claim, known, source)
            if objection:
                return objection
        elif claim.state == State.SUSPECT:
            return self._more_accusers(known, claim, now, spread)
        else:
            claim = _shared(ended(known, claim.state), claim)
        if source is Source.MEMORY and not claim.present:
            if known is None:
                return ""  # neither of us needs to remember it
            if claim.state == State.DEAD and known.present and claim.life == known.life:
                self._doubt(claim, now, fresh=False)
                return ""
        elif claim.state == State.DEAD and self._is_surprising(known, claim, now):
            self._doubt(claim, now, fresh=True)
            return ""
        self._apply(known, claim, now, spread)
        return ""

    def _is_surprising(self, known: Record | None, claim: Record, now: float) -> bool:
        """Whether a verdict comes without the suspicion that goes before it.

        Then it comes from afar: from the other side of a partition that has just healed, or it
        waited somewhere. All who judge by it would remove a member that never had the time to
        refute, so each sees for itself first.
        """
        return (
            known is not None
            and known.present
            and known.life == claim.life
            and self.me not in known.accusers
            and not self.is_ripe(known, now)
        )

    def _doubt(self, claim: Record, now: float, *, fresh: bool) -> None:
        for watcher in self.watchers:
            watcher.member_doubted(claim, fresh, now)

    def believe(self, claim: Record, now: float) -> None:
        """The doubted verdict is true: it did not answer me either."""
        known = self.table.record(claim.name)
        if known is None or not known.present or known.life != claim.life:
            return
        if claim.incarnation == known.incarnation:
            claim = _shared(ended(known, State.DEAD), claim)
        if claim.incarnation >= known.incarnation:
            self._apply(known, claim, now, spread=True)

    def _old_claim(
        self, src: NodeId, known: Record, claim: Record, now: float, source: Source, spread: bool
    ) -> str:
        """The claim replaces nothing; it may still add accusers, or show that the peer lags."""
        if claim.incarnation == known.incarnation and claim.state == known.state == State.SUSPECT:
            return self._more_accusers(known, claim, now, spread)
        if not known.present and claim.present and src != claim.name and source is Source.NEWS:
            # The peer missed the verdict; if that was wrong, the accused will say so.
            self.effects.send(src, Gossip((known,)))
        return ""

    def _more_accusers(self, known: Record, claim: Record, now: float, spread: bool) -> str:
        if not all(map(is_good_name, claim.accusers)):
            return "bad-name"
        limit = self.settings.confirmations + 1
        merged = accused(known, claim.accusers, claim.abrupt, limit)
        if merged is not known:
            merged = _shared(merged, claim)
            # Everybody must hear of a suspicion, but only its accusers of each confirmation; if
            # links closed there are many accusers at one moment, and gossip is the fastest way.
            self._apply(known, merged, now, spread and _is_urgent(known, merged))
            complete = len(merged.accusers) == limit > len(known.accusers)
            if complete and not merged.abrupt and self.me in merged.accusers:
                self._tell_accusers(merged, merged)
        return ""

    def _objection(self, claim: Record, known: Record | None, source: Source) -> str:
        """Why a claim about a new life or incarnation cannot be true."""
        if known is None and not is_good_name(claim.name):
            return "bad-name"
        if not all(map(is_good_name, claim.accusers)):
            return "bad-name"
        if claim.born > claim.incarnation:
            return "bad-incarnation"
        if source is Source.WELCOME:
            self.horizon.trust(claim.incarnation)
        elif claim.incarnation > self.horizon.limit:
            return "far-future-incarnation"
        if (known is None or known.life != claim.life) and not self.may_join(claim.name, self.zone):
            return "zone-not-allowed"
        appears = claim.present and (known is None or not known.present)
        if appears and len(self.table) >= self.settings.max_members:
            return "too-many-members"
        return ""

    def _claim_about_me(self, src: NodeId, claim: Record, now: float) -> str:
        mine = self.myself
        if claim.incarnation < mine.incarnation or claim == mine:
            if claim.state != State.ALIVE and claim.life == mine.life and src in self.table:
                # Many may accuse at once, and each decides for itself: none must wait for gossip.
                self.effects.send(src, Gossip((mine,)))
            return ""
        if claim.incarnation > self.horizon.limit:
            return "far-future-incarnation"
        if claim.life == mine.life:
            if claim.incarnation == mine.incarnation and claim.state == State.ALIVE:
                return ""
            if claim.state != State.ALIVE:
                self.counts.defended += 1
                self.health.worse()  # others could not reach me: perhaps it is my fault
                self.reassert(claim.incarnation, now)
                self._tell_accusers(claim, self.myself)  # the verdict is theirs
                return ""
        elif claim.seniority < mine.seniority and claim.state == State.ALIVE:
            # Only that life itself can have gone above mine. Old memories may do so too, but each
            # only once, and I go above them all.
            self._overtaken += 1
            if self._overtaken >= TWIN_PROOFS:
                self.yield_name(
                    f"another node of zone {self.zone!r} is called {self.me!r} and was there first"
                )
                return ""
        self.reassert(claim.incarnation, now)
        return ""

    def _apply(self, known: Record | None, claim: Record, now: float, spread: bool) -> None:
        """Take a claim that won, and tell everybody who must know."""
        self.table.put(claim, now)
        if spread:
            self.spread(claim)
        else:
            self.rumours.states.update(claim.name, claim)
            if self.rumours:  # perhaps there was nobody to tell so far
                self.wake_gossip()
        moved = known is None or known.endpoints != claim.endpoints
        if moved and claim.present and claim.endpoints:
            self.emit(ContactLearned(claim.name, claim.endpoints))
        before = known if known is not None and known.present else None
        if not claim.present:
            self._depart(before, claim, now)
            return
        if before is not None and before.life != claim.life:
            self._depart(before, before, now)
            before = None
        fresh = before is None or before.state == State.ALIVE
        if before is None:
            self.counts.joined += 1
            self.emit(MemberJoined(self.zone, claim.name, claim.incarnation))
            for watcher in self.watchers:
                watcher.member_present(claim, now)
        elif before.state == State.SUSPECT and claim.incarnation > before.incarnation:
            self.counts.refuted += 1
            self.emit(MemberRefuted(self.zone, claim.name))
            for watcher in self.watchers:
                watcher.member_cleared(claim, now)
            fresh = True
        if claim.state == State.SUSPECT:
            if fresh:
                self.counts.suspected += 1
                accuser = claim.accusers[0] if claim.accusers else ""
                self.emit(MemberSuspected(self.zone, claim.name, accuser))
            for watcher in self.watchers:
                watcher.member_suspected(claim, now)

    def _depart(self, before: Record | None, gone: Record, now: float) -> None:
        """One who was present, if `before` says so, is dead, left, or begins a new life."""
        if before is not None:
            if gone.state == State.LEFT:
                self.counts.left += 1
                self.emit(MemberLeft(self.zone, gone.name))
            else:
                self.counts.failed += 1
                self.emit(MemberFailed(self.zone, gone.name, restarted=gone.present))
        for watcher in self.watchers:
            watcher.member_gone(gone, now)

    # -- verdicts of my own ---------------------------------------------------------------------

    def accuse(self, name: NodeId, abrupt: bool, now: float) -> None:
        """It did not answer me: tell everybody, or those who said so first, and itself."""
        known = self.table.record(name)
        if known is None or not known.present:
            return
        suspicion = accused(known, (self.me,), abrupt, self.settings.confirmations + 1)
        if suspicion is not known:
            self._apply(known, suspicion, now, spread=_is_urgent(known, suspicion))
        self.effects.send(name, Gossip((suspicion,)))
        if not suspicion.abrupt:  # else gossip tells them, without new links to any of them
            self._tell_accusers(suspicion, suspicion)

    def _tell_accusers(self, suspicion: Record, news: Record) -> None:
        """Those whose verdict it is must know before all others."""
        others = [name for name in suspicion.accusers if name != self.me and name in self.table]
        if others:
            self.effects.send(others, Gossip((news,)))

    def condemn(self, name: NodeId, now: float) -> None:
        """A suspect had its time."""
        known = self.table.record(name)
        if known is not None and known.state == State.SUSPECT:
            self._apply(known, ended(known, State.DEAD), now, spread=True)

    # -- attributes -----------------------------------------------------------------------------

    def set_attribute(self, key: str, value: Value) -> None:
        """Set one of my own attributes."""
        written = self._sharing.set(key, value)
        if written is not None:
            self._spread_attributes(self.me, [written], spread=True)

    def remove_attribute(self, key: str) -> None:
        """Remove one of my own attributes."""
        self._spread_attributes(self.me, [self._sharing.remove(key)], spread=True)

    def _spread_attributes(self, member: NodeId, changed: list[Attribute], spread: bool) -> None:
        if not changed:
            return
        if spread:
            for attribute in changed:
                self.rumours.attributes.push((member, attribute.key), attribute, self.repeats)
            self.wake_gossip()
        self.emit(AttributesChanged(self.zone, member, tuple(a.key for a in changed)))


def _is_urgent(known: Record, suspicion: Record) -> bool:
    """Whether everybody must hear of a suspicion, or of one more accuser."""
    return known.state == State.ALIVE or suspicion.abrupt


def _shared(mine: Record, theirs: Record) -> Record:
    """The peer's object where it says the same: nodes of a simulation then hold one for all."""
    return theirs if mine == theirs else mine
