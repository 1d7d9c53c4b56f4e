"""The state machine of beacons: alone it asks, in company it announces, and it always answers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from random import Random
from typing import Any, ClassVar

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from overlay.protocol import (
    ContactLearned,
    DatagramHandler,
    Effects,
    Event,
    EventHandler,
    Group,
    Message,
    NetworkChanged,
    Origin,
    OverlayProtocol,
    PeerMet,
    Scope,
)
from overlay.timetable import Timetable
from protocols.beacon.addresses import host_of, is_loopback, usable, versions
from protocols.beacon.allowance import KEYS, Allowance, Bucket
from protocols.beacon.candidates import Candidate, Candidates
from protocols.beacon.config import BeaconSettings
from protocols.beacon.counts import BeaconCounts
from protocols.beacon.events import NobodyFound, PeerFound
from protocols.beacon.last_known import STORED, LastKnown, pack, unpack
from protocols.beacon.messages import (
    MAX_ENDPOINTS,
    VERSION,
    Announcement,
    Answer,
    Presence,
    Query,
)
from protocols.beacon.trickle import INTERVAL, SPEAK, Trickle
from protocols.membership.events import MemberFailed, MemberJoined, MemberLeft
from protocols.membership.interface import MembershipView

QUERY = "query"
REMEMBER = "remember"
MAX_ATTEMPT = 3
ANSWERED_PAUSE = 1.0  # s that those who answered have before others are asked
OPEN_QUERIES = 8  # whose answers may still come
SEEN = 256  # beacons, to know their copies
HEARD = 1024  # names of the own zone, no members yet, to guess how many there are
HEARD_FOR = 5.0  # s that they count: who starts at the same time asks again within that time
TOLD_AGAIN = 60.0  # s after which a node of another zone is news again
TOLD = 256  # of them that are remembered
ZONES_AT_ONCE = 4  # other zones that answer in full; of more, as many answers come
MAX_SIZE = 1_000_000


def _one_zone() -> int:
    return 1


class Beacon(OverlayProtocol):
    """One per node. `view` is that of its base zone, or a supervisor's of the management zone.

    `here` tells its endpoints once it is bound, `zones` how many zones there are, as far as it
    knows; `told` says that the user gave addresses, so that nobody need be asked at first.
    """

    name: ClassVar[str] = "beacon"
    messages: ClassVar[tuple[type[Message], ...]] = (Query, Answer, Announcement)
    emits: ClassVar[tuple[type[Event], ...]] = (ContactLearned, PeerMet, PeerFound, NobodyFound)

    config: BeaconSettings

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: BeaconSettings,
        *,
        overlay: str,
        authority: bytes,
        view: MembershipView,
        here: Callable[[], tuple[str, ...]],
        zones: Callable[[], int] = _one_zone,
        told: bool = False,
    ) -> None:
        super().__init__(me, effects, rng, config)
        self.counts = BeaconCounts()
        self._overlay = overlay
        self._authority = authority
        self._zone = view.zone
        self._view = view
        self._here = here
        self._zones = zones
        self._told_addresses = told
        self._timers = Timetable(effects)
        self._trickle = Trickle(
            self._timers, rng, config.announce_first, config.announce_longest, config.redundancy
        )
        self._candidates = Candidates(config.parallel, config.waiting, config.patience)
        self._names = Allowance(config.name_rate)
        self._hosts = Allowance(config.host_rate)
        self._answers = Bucket(config.answer_rate, 0.0)
        self._heard: dict[NodeId, float] = {}  # of the own zone, the latest last
        self._told: dict[NodeId, float] = {}  # of other zones, the latest last
        self._open: dict[int, float] = {}  # queries, and when they were sent
        self._seen: dict[tuple[NodeId, int], None] = {}  # beacons that came, the latest last
        self._next_id = rng.getrandbits(48)  # so that answers to an earlier life match nothing
        self._attempt = 0
        self._answered = False  # the last query
        self._alone_since = 0.0
        self._last_known: dict[NodeId, tuple[str, ...]] = {}  # the latest last
        self._stored = b""
        self._running = False

    # -- what the driver, siblings and the application see --------------------------------------

    def groups(self) -> tuple[Group, ...]:
        """Where it listens."""
        return tuple(self.config.groups().values())

    @property
    def alone(self) -> bool:
        """Whether no other member is known."""
        return len(self._view) <= 1

    @property
    def realm(self) -> str:
        """What tells this overlay from others: its name, and its authority's fingerprint."""
        return f"{self._overlay}#{self._authority.hex()}"

    def suggest(self, peer: NodeId, who: Presence, how: str, now: float) -> None:
        """Hear of a node in another way, as mDNS.

        Nobody vouches for it, so it is a candidate like any other.
        """
        if not self._running:
            return
        self._timers.notice(now)
        if not self._is_ours(who):
            self.counts.foreign += 1
            return
        here = [host_of(one) for one in self._here()]
        source = next(filter(is_loopback, here), "")  # then others of this machine are near
        self._consider(peer, who.zone, usable(who.endpoints, source), how, how, now)

    @property
    def presence(self) -> Presence:
        """What this node tells of itself."""
        return self._presence()

    # -- life -----------------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Ask at once, or when the addresses that the user gave had their time."""
        self._running = True
        self._timers.notice(now)
        stored = kept.get(STORED, b"")
        for one in reversed(unpack(stored, self.realm, self._zone, self.config.remembered)):
            self._last_known[one.name] = one.endpoints
        if not self.alone:
            self._trickle.start(now)
        elif self._told_addresses:
            self._alone_since = now
            self._timers.set(QUERY, now + self.config.after_seeds)
        else:
            self._search(now)

    def on_stop(self, now: float) -> None:
        """Be silent; the membership says goodbye."""
        self._running = False
        self._timers.cancel_all()

    def on_timer(self, key: Hashable, now: float) -> None:
        """Ask again, announce, or write down who is known."""
        self._timers.notice(now)
        if not self._timers.rings(key):
            return
        if key == QUERY:
            self._ask(now)
        elif key == SPEAK:
            self._announce()
        elif key == INTERVAL:
            self._trickle.next_interval(now)
        elif key == REMEMBER:
            self._remember()

    # -- company ----------------------------------------------------------------------------------

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """Who comes and goes in the own zone, and interfaces that come."""
        return {
            MemberJoined: self._on_joined,
            MemberFailed: self._on_gone,
            MemberLeft: self._on_gone,
            NetworkChanged: self._on_network,
        }

    def _on_joined(self, event: MemberJoined, now: float) -> None:
        if not self._running or event.zone != self._view.zone or event.member == self.me:
            return
        self._timers.notice(now)
        self._candidates.forget(event.member)
        self._heard.pop(event.member, None)
        self._last_known.pop(event.member, None)
        self._last_known[event.member] = ()
        if len(self._last_known) > self.config.remembered:
            del self._last_known[next(iter(self._last_known))]
        self._timers.hasten(REMEMBER, now + self._remember_pause())
        if not self._trickle.runs and not self.alone:
            self._timers.cancel(QUERY)
            self._candidates.clear()
            self._trickle.start(now)

    def _on_gone(self, event: MemberFailed | MemberLeft, now: float) -> None:
        if not self._running or event.zone != self._view.zone:
            return
        self._timers.notice(now)
        if isinstance(event, MemberLeft):
            self._last_known.pop(event.member, None)
        if self.alone:
            if self._trickle.runs:
                self._trickle.stop()
                self._search(now)
        elif isinstance(event, MemberFailed) and not event.restarted:
            self._trickle.bereaved(now)  # it may live on the other side of a partition

    def _on_network(self, event: NetworkChanged, now: float) -> None:
        """There is an interface that was not there before, and perhaps somebody behind it."""
        if self._running:
            self._timers.notice(now)
            if self.alone:
                self._search(now)
            else:
                self._trickle.disturbed(now)

    # -- asking and announcing --------------------------------------------------------------------

    def _search(self, now: float) -> None:
        self._attempt = 0
        self._answered = False
        self._alone_since = now
        self._ask(now)

    def _ask(self, now: float) -> None:
        for candidate in self._candidates.due(now):
            self._try(candidate)
        waited = now - self._alone_since
        if waited >= self.config.fallback_after:
            self._fall_back(waited, now)
        if self._answered and self._candidates.in_trial:
            # Somebody will let it in, soon; more answers would only take everybody's time, which
            # is scarce when many start at once.
            self._answered = False
            self._timers.set(QUERY, now + ANSWERED_PAUSE * (0.75 + self.rng.random() / 2))
            return
        query = Query(self._presence(), self._fresh_id(), min(self._attempt, MAX_ATTEMPT))
        self._open[query.id] = now
        if len(self._open) > OPEN_QUERIES:
            del self._open[next(iter(self._open))]
        self.counts.queries += 1
        self._cast(query)
        config = self.config
        pause = min(config.query_first * 2 ** min(self._attempt, 30), config.query_longest)
        pause *= 0.75 + self.rng.random() / 2
        if waited < config.fallback_after:  # the fallback is not put off by a doubled pause
            pause = min(pause, max(config.query_first / 2, config.fallback_after - waited))
        self._attempt += 1
        self._timers.set(QUERY, now + pause)

    def _fall_back(self, waited: float, now: float) -> None:
        self.effects.emit(NobodyFound(self._zone, waited))
        for name, endpoints in reversed(list(self._last_known.items())):
            if endpoints:
                self._consider(name, self._zone, endpoints, name, "last known", now)

    def _announce(self) -> None:
        if self._trickle.speaks():
            self.counts.announced += 1
            self._cast(Announcement(self._presence(), self._fresh_id()))
        else:
            self.counts.held_back += 1

    def _fresh_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def _presence(self) -> Presence:
        return Presence(
            VERSION,
            self._overlay,
            self._authority,
            self._zone,
            min(max(1, len(self._view)), MAX_SIZE),
            tuple(self._here()[:MAX_ENDPOINTS]),
        )

    def _cast(self, msg: Query | Announcement) -> None:
        """To the group of each version of IP by which this node can be reached."""
        groups = self.config.groups()
        for version in versions(self._here()):
            if version in groups:
                self.effects.cast(groups[version], msg)

    # -- hearing ----------------------------------------------------------------------------------

    def datagram_handlers(self) -> Mapping[type[Message], DatagramHandler]:
        """One handler for each message of the table in the package's docstring."""
        return {Query: self._on_query, Answer: self._on_answer, Announcement: self._on_announcement}

    def _admits(self, origin: Origin, msg: Any, now: float) -> bool:
        """Whether it is of this overlay, and not too much; what passes is counted as heard."""
        if not self._running or origin.name == self.me:
            return False
        self._timers.notice(now)
        who: Presence = msg.who
        if not isinstance(msg, Answer) and not self._is_new(origin.name, msg.id):
            return False
        if not self._is_ours(who):
            self.counts.foreign += 1
            return False
        if not self._hosts.take(origin.address.host, now) or not self._names.take(origin.name, now):
            self.counts.limited += 1
            return False
        self.counts.heard += 1
        if who.zone == self._zone and origin.name not in self._view:
            self._heard.pop(origin.name, None)
            self._heard[origin.name] = now
            self._forget_heard(now)
        return True

    def _forget_heard(self, now: float) -> None:
        """Whoever is silent became a member, of whom the view knows, or is gone."""
        for name, at in list(self._heard.items()):
            if now - at <= HEARD_FOR and len(self._heard) <= HEARD:
                return
            del self._heard[name]

    def _is_ours(self, who: Presence) -> bool:
        return (who.overlay, who.authority) == (self._overlay, self._authority)

    def _is_new(self, name: NodeId, beacon: int) -> bool:
        """A sender with two versions of IP casts each beacon twice."""
        if (name, beacon) in self._seen:
            return False
        self._seen[name, beacon] = None
        if len(self._seen) > SEEN:
            del self._seen[next(iter(self._seen))]
        return True

    def _on_query(self, origin: Origin, msg: Query, now: float) -> None:
        if not self._admits(origin, msg, now):
            return
        answers = self._is_my_turn(msg)
        if not answers:
            self.counts.spared += 1
        elif self._answers.take(now):
            self.counts.answered += 1
            self.effects.cast(origin.address, Answer(self._presence(), msg.id))
        else:
            answers = False
            self.counts.limited += 1
        # Whoever gets an answer comes by itself; when all start at once most get none of most.
        if msg.who.zone != self._zone or (self.alone and not answers):
            self._hear_of(origin, msg.who, "query", now)

    def _is_my_turn(self, query: Query) -> bool:
        """By chance, so that about as many answer as are wanted; see the package's docstring."""
        crowd = len(self._view) + len(self._heard)
        if query.who.zone == self._zone:
            wanted = float(self.config.answers)
        else:
            wanted = self.config.stranger_answers / max(1.0, self._zones() / ZONES_AT_ONCE)
        wanted *= float(4**query.attempt)
        return wanted >= crowd or self.rng.random() * crowd < wanted

    def _on_answer(self, origin: Origin, msg: Answer, now: float) -> None:
        if msg.id not in self._open:
            self.counts.stray += 1
        elif self._admits(origin, msg, now):
            self._answered |= msg.who.zone == self._zone
            self._hear_of(origin, msg.who, "answer", now)

    def _on_announcement(self, origin: Origin, msg: Announcement, now: float) -> None:
        if not self._admits(origin, msg, now):
            return
        if msg.who.zone == self._zone and origin.name in self._view:
            self._trickle.agreed()
            return
        if msg.who.zone == self._zone:
            self._trickle.disturbed(now)
        self._hear_of(origin, msg.who, "announcement", now)

    # -- candidates -------------------------------------------------------------------------------

    def _hear_of(self, origin: Origin, who: Presence, how: str, now: float) -> None:
        source, port = origin.address
        endpoints = usable(who.endpoints, source, port)
        self._consider(origin.name, who.zone, endpoints, source, how, now)

    def _consider(
        self,
        name: NodeId,
        zone: Scope,
        endpoints: tuple[str, ...],
        source: str,
        how: str,
        now: float,
    ) -> None:
        if name == self.me or name in self._view:
            return
        if not endpoints:
            self.counts.unreachable += 1
        elif zone == self._zone:
            before = self._candidates.dropped
            candidate = Candidate(name, endpoints, source, how)
            if self._candidates.offer(candidate, now):
                self._try(candidate)
            self.counts.crowded_out += self._candidates.dropped - before
        elif now - self._told.get(name, -TOLD_AGAIN) >= TOLD_AGAIN:
            self._told.pop(name, None)
            self._told[name] = now
            if len(self._told) > TOLD:
                del self._told[next(iter(self._told))]
            self.counts.found += 1
            self.effects.emit(PeerMet(name, endpoints, zone))
            self.effects.emit(PeerFound(name, zone, endpoints, how))

    def _try(self, candidate: Candidate) -> None:
        name, endpoints, _, how = candidate
        self.counts.found += 1
        self.effects.emit(ContactLearned(name, endpoints))
        self.effects.emit(PeerMet(name, endpoints, self._zone))
        self.effects.emit(PeerFound(name, self._zone, endpoints, how))

    # -- last known peers -------------------------------------------------------------------------

    def _remember_pause(self) -> float:
        """The first time soon: a node that is killed a minute later should know somebody."""
        return (
            min(1.0, self.config.remember_every)
            if not self._stored
            else (self.config.remember_every)
        )

    def _remember(self) -> None:
        for name in self._last_known:
            record = self._view.record(name)
            if record is not None and record.present and record.endpoints:
                self._last_known[name] = record.endpoints
        latest = reversed(list(self._last_known.items()))
        packed = pack(self.realm, self._zone, (LastKnown(*one) for one in latest if one[1]))
        if packed != self._stored:
            self._stored = packed
            self.effects.store(STORED, packed, STORED)

    # -- invariants -------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """See the package's docstring."""
        if not self._running:
            return
        if self._trickle.runs == (QUERY in self._timers):
            raise InvariantViolation(f"{self.me}: asks and announces, or does neither")
        candidates, config = self._candidates, self.config
        if candidates.in_trial > config.parallel or candidates.queued > config.waiting:
            raise InvariantViolation(f"{self.me}: {len(candidates)} candidates")
        if max(len(self._names), len(self._hosts)) > KEYS or len(self._open) > OPEN_QUERIES:
            raise InvariantViolation(f"{self.me}: remembers too much of strangers")
        if len(self._last_known) > config.remembered:
            raise InvariantViolation(f"{self.me}: remembers {len(self._last_known)} peers")
