"""The heart of a zone's membership: who may say what about whom, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import msgspec

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import ContactLearned, Effects, Event, Scope
from protocols.membership.attributes import (
    Attribute,
    Value,
    check_attribute,
    first_version,
    owner_of,
    size_of,
)
from protocols.membership.clock import Alarms, SteadyClock
from protocols.membership.config import MembershipSettings
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
from protocols.membership.messages import MAX_NEWS, Gossip
from protocols.membership.records import (
    FAR_FUTURE,
    MAX_INCARNATION,
    Record,
    State,
    accused,
    ended,
    is_good_name,
    supersedes,
)
from protocols.membership.rumours import Rumours
from protocols.membership.table import MemberTable

GOSSIP = "gossip"  # the alarm that sends news
TWIN_PROOFS = 3  # times an older life must overtake us before we believe that it lives
MAX_ATTRIBUTE_NEWS = 4096
REGOSSIP = 8  # changes by one reconciliation that are passed on: more is a merge, not missed news

MayJoin = Callable[[NodeId, Scope], bool]


class Watcher:
    """A part of the machine that follows the states of members."""

    def member_present(self, record: Record, now: float) -> None:
        """It joined, came back or restarted."""

    def member_suspected(self, record: Record, now: float) -> None:
        """It is suspected, or by more accusers than before."""

    def member_cleared(self, record: Record, now: float) -> None:
        """It refuted."""

    def member_gone(self, record: Record, now: float) -> None:
        """It is dead or left."""

    def member_doubted(self, claim: Record, now: float) -> None:
        """A peer held it to be dead when we reconciled; here it is present."""


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
        self.alarms = Alarms(effects)
        self.health = LocalHealth(settings.health_max)
        self.clock = SteadyClock(settings.probe_period, self.health.worse, self.alarms.rearm)
        self.alarms.follow(self.clock)
        self.rumours = Rumours(settings.max_members, MAX_ATTRIBUTE_NEWS)
        self.watchers: list[Watcher] = []
        self.silent = True  # before the start, after leaving, and when the name is taken
        self.myself = Record(me, 0, State.ALIVE, 0, 0)
        self._highest = 0  # of all incarnations accepted: what an honest one may be measured by
        self._overtaken = 0
        self._version = 0  # of my newest attribute

    # -- my own life ----------------------------------------------------------------------------

    def begin(self, incarnation: int, endpoints: Sequence[str], now: float) -> None:
        """Become a member, so far alone."""
        life = self.rng.getrandbits(63)
        self.myself = Record(self.me, incarnation, State.ALIVE, life, incarnation, tuple(endpoints))
        self._highest = incarnation
        self._version = first_version(incarnation)
        self.silent = False
        self.table.put(self.myself, now)

    def raise_floor(self, floor: int, now: float) -> None:
        """An earlier life had come that far: begin above it, and version attributes anew."""
        if floor < self.myself.incarnation:
            return
        born = min(floor + 1, MAX_INCARNATION)
        self.myself = msgspec.structs.replace(self.myself, incarnation=born, born=born)
        self._version = max(self._version, first_version(born))
        self._put_myself(now)
        for attribute in list(self.table.attribute_set(self.me)):
            self._publish(attribute.key, attribute.value)

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
        self._highest = max(self._highest, self.myself.incarnation)
        self.table.put(self.myself, now)
        self.effects.store(b"incarnation", str(self.myself.incarnation).encode(), "incarnation")

    def farewell(self, now: float) -> None:
        """Leave: tell enough members at once that all will hear of it."""
        if self.silent:
            return
        left = ended(self.myself, State.LEFT)
        near = self.table.ring().successors(self.me, 1) + self.table.ring().predecessors(self.me, 1)
        several = self.table.draw(self.rng, 2 * self.settings.gossip_fanout)
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
        receivers = self.table.draw(self.rng, self.settings.gossip_fanout)
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
        *,
        hearsay: bool = False,
        trusted: bool = False,
    ) -> None:
        """Apply what a peer says; claims that break a rule change nothing and are counted.

        `hearsay`: it is the peer's memory (a reconciliation), not a fresh verdict. `trusted`: it
        is the answer to my own Join, which alone may show incarnations far from my clock.
        """
        if len(news) > MAX_NEWS or len(attributes) > MAX_NEWS:
            raise RemoteProtocolError("member-list-too-long", f"{len(news)} members")
        passed_on = not trusted and not (hearsay and len(news) > REGOSSIP)
        refusal = ""
        for record in news:
            if self.silent:  # an earlier one said that my name is taken
                return
            refusal = self._claim(src, record, now, hearsay, trusted, passed_on) or refusal
        for member, updates in owner_of(attributes).items() if attributes else ():
            refusal = self._take_attributes(member, updates, passed_on) or refusal
        if refusal:
            raise RemoteProtocolError(refusal, f"from {src} in zone {self.zone!r}")

    def _claim(
        self,
        src: NodeId,
        claim: Record,
        now: float,
        hearsay: bool,
        trusted: bool,
        passed_on: bool,
    ) -> str:
        """Apply one claim; returns why it was refused, or nothing."""
        name = claim.name
        if name == self.me:
            return self._claim_about_me(claim, now)
        known = self.table.record(name)
        if known is claim:
            return ""
        if known is not None:
            if not supersedes(claim, known):
                if claim.state == known.state == State.SUSPECT and (
                    claim.incarnation == known.incarnation
                ):
                    return self._more_accusers(known, claim, now, passed_on)
                if known.state >= State.DEAD and claim.present and src != name and not hearsay:
                    # The peer missed the verdict; if that was wrong, the accused will say so.
                    self.effects.send(src, Gossip((known,)))
                return ""
            if claim.life == known.life and claim.incarnation == known.incarnation:
                if hearsay and claim.state == State.DEAD and known.present:
                    for watcher in self.watchers:
                        watcher.member_doubted(claim, now)
                    return ""
                return self._accept_same_life(known, claim, now, passed_on)
        refusal = self._objection(claim, known, trusted)
        if refusal:
            return refusal
        if known is None and not claim.present and hearsay:
            return ""  # neither of us needs to remember it
        if (
            hearsay
            and claim.state == State.DEAD
            and known is not None
            and known.present
            and claim.life == known.life
        ):
            for watcher in self.watchers:
                watcher.member_doubted(claim, now)
            return ""
        self._apply(known, claim, now, passed_on)
        return ""

    def _accept_same_life(self, known: Record, claim: Record, now: float, passed_on: bool) -> str:
        if claim.state == State.SUSPECT:
            return self._more_accusers(known, claim, now, passed_on)
        self._apply(known, ended(known, claim.state), now, passed_on)
        return ""

    def _more_accusers(self, known: Record, claim: Record, now: float, passed_on: bool) -> str:
        if not all(map(is_good_name, claim.accusers)):
            return "bad-name"
        limit = self.settings.confirmations + 1
        if known.state == State.ALIVE and len(claim.accusers) <= limit:
            merged = claim  # shared between nodes of a simulation
        else:
            merged = accused(known, claim.accusers, claim.abrupt, limit)
            if merged == claim:
                merged = claim
        if merged is not known:
            self._apply(known, merged, now, passed_on)
        return ""

    def _objection(self, claim: Record, known: Record | None, trusted: bool) -> str:
        """Why a claim about a new life or incarnation cannot be true."""
        if known is None and not is_good_name(claim.name):
            return "bad-name"
        if not all(map(is_good_name, claim.accusers)):
            return "bad-name"
        if not 0 <= claim.born <= claim.incarnation <= MAX_INCARNATION:
            return "bad-incarnation"
        horizon = max(int(self.clock.wall * 1000), self._highest) + FAR_FUTURE
        if claim.incarnation > horizon and not trusted:
            return "far-future-incarnation"
        if known is None or known.life != claim.life:
            if not self.may_join(claim.name, self.zone):
                return "zone-not-allowed"
            if known is None and len(self.table) >= self.settings.max_members:
                return "too-many-members"
        return ""

    def _claim_about_me(self, claim: Record, now: float) -> str:
        mine = self.myself
        if claim.incarnation < mine.incarnation or claim == mine:
            return ""
        horizon = max(int(self.clock.wall * 1000), self._highest) + FAR_FUTURE
        if claim.incarnation > horizon:
            return "far-future-incarnation"
        if claim.life == mine.life:
            if claim.incarnation == mine.incarnation and claim.state == State.ALIVE:
                return ""
            if claim.state != State.ALIVE:
                self.health.worse()  # others could not reach me: perhaps it is my fault
                self.reassert(claim.incarnation, now)
                if claim.accusers:  # the verdict is theirs: they must know before all others
                    self.effects.send(claim.accusers, Gossip((self.myself,)))
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

    def _apply(self, known: Record | None, claim: Record, now: float, passed_on: bool) -> None:
        """Take a claim that won, and tell everybody who must know."""
        self._highest = max(self._highest, claim.incarnation)
        self.table.put(claim, now)
        if passed_on:
            self.spread(claim)
        else:
            self.rumours.states.forget(claim.name)  # what was on its way is outdated
        moved = known is None or known.endpoints != claim.endpoints
        if moved and claim.present and claim.endpoints:
            self.emit(ContactLearned(claim.name, claim.endpoints))
        was = known is not None and known.present
        if was and known is not None and known.life != claim.life and claim.present:
            self.emit(MemberFailed(self.zone, claim.name, restarted=True))
            for watcher in self.watchers:
                watcher.member_gone(known, now)
            was = False
        if claim.present:
            if not was:
                self.emit(MemberJoined(self.zone, claim.name, claim.incarnation))
                for watcher in self.watchers:
                    watcher.member_present(claim, now)
            if claim.state == State.SUSPECT:
                if not was or (known is not None and known.state == State.ALIVE):
                    accuser = claim.accusers[0] if claim.accusers else ""
                    self.emit(MemberSuspected(self.zone, claim.name, accuser))
                elif known is not None and known.incarnation != claim.incarnation:
                    for watcher in self.watchers:
                        watcher.member_cleared(claim, now)
                for watcher in self.watchers:
                    watcher.member_suspected(claim, now)
            elif was and known is not None and known.state == State.SUSPECT:
                self.emit(MemberRefuted(self.zone, claim.name))
                for watcher in self.watchers:
                    watcher.member_cleared(claim, now)
        else:
            if was:
                if claim.state == State.LEFT:
                    self.emit(MemberLeft(self.zone, claim.name))
                else:
                    self.emit(MemberFailed(self.zone, claim.name))
            for watcher in self.watchers:
                watcher.member_gone(claim, now)

    # -- verdicts of my own ---------------------------------------------------------------------

    def accuse(self, name: NodeId, abrupt: bool, now: float) -> None:
        """It did not answer me: tell everybody, and itself first."""
        known = self.table.record(name)
        if known is None or not known.present:
            return
        suspicion = accused(known, (self.me,), abrupt, self.settings.confirmations + 1)
        if suspicion is not known:
            self._apply(known, suspicion, now, passed_on=True)
        self.effects.send(name, Gossip((suspicion,)))

    def condemn(self, name: NodeId, now: float) -> None:
        """A suspect had its time."""
        known = self.table.record(name)
        if known is not None and known.state == State.SUSPECT:
            self._apply(known, ended(known, State.DEAD), now, passed_on=True)

    def admit(self, newcomer: Record, attributes: tuple[Attribute, ...], now: float) -> None:
        """Take a node that asked to join; raises RemoteProtocolError when it cannot be one."""
        self.learn(newcomer.name, (newcomer,), attributes, now)

    # -- attributes -----------------------------------------------------------------------------

    def set_attribute(self, key: str, value: Value) -> None:
        """Set one of my own attributes."""
        check_attribute(key, value, self.settings)
        held = self.table.attribute_set(self.me).get(key)
        if held is not None and held.value == value and type(held.value) is type(value):
            return
        self._publish(key, value)

    def remove_attribute(self, key: str) -> None:
        """Remove one of my own attributes."""
        held = self.table.attribute_set(self.me).get(key)
        if held is None or held.value is None:
            raise LocalProtocolError(f"attribute {key[:64]!a} is not set: nothing to remove")
        self._publish(key, None)

    def _publish(self, key: str, value: Value | None) -> None:
        attribute = Attribute(self.me, key, self._version + 1, value)
        excess = self.table.attribute_set(self.me).excess(attribute, self.settings)
        if excess and value is not None:
            raise LocalProtocolError(f"attribute {key!a}: a member may have at most {excess}")
        self._version += 1
        self.table.put_attribute(attribute)
        self._spread_attribute(attribute)
        self.emit(AttributesChanged(self.zone, self.me, (key,)))

    def _spread_attribute(self, attribute: Attribute) -> None:
        self.rumours.attributes.push((attribute.member, attribute.key), attribute, self.repeats)
        self.wake_gossip()

    def _take_attributes(self, member: NodeId, updates: list[Attribute], passed_on: bool) -> str:
        """Apply updates of one member's attributes; returns why some were refused, or nothing."""
        known = self.table.record(member)
        if known is None or member == self.me:
            return ""  # the record was missed: a reconciliation will bring both
        floor = first_version(known.born)
        changed: list[str] = []
        refusal = ""
        for update in updates:
            held = self.table.attribute_set(member)
            if update.version < floor or not held.is_news(update):
                continue
            if not update.key.isprintable() or not update.key:
                refusal = "bad-attribute-key"
            elif size_of(update.value) > self.settings.value_bytes or held.excess(
                update, self.settings
            ):
                refusal = "attribute-too-large"
            else:
                self.table.put_attribute(update)
                changed.append(update.key)
                if passed_on:
                    self._spread_attribute(update)
        if changed:
            self.emit(AttributesChanged(self.zone, member, tuple(changed)))
        return refusal
