"""One stream as it leaves a node: its history, who gets it, and how far each receiver is.

Publishers and relays are both this. In ack mode there is a relation with every receiver; in the
other modes only with gateways, who stand for zones, and everybody else is found by interest.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from math import inf

from overlay.errors import InvariantViolation, RemoteProtocolError
from overlay.ids import NodeId
from protocols.topics.config import TopicConfig
from protocols.topics.core import Core
from protocols.topics.events import (
    SubscriberFailed,
    SubscriberJoined,
    SubscriberLeft,
    SubscriberSlow,
)
from protocols.topics.history import Chunk
from protocols.topics.messages import (
    ASK,
    MOVED,
    REPLAY_ALL,
    REPLAY_LAST,
    REPLAY_SINCE,
    Accept,
    Ack,
    Begin,
    Failed,
    Offer,
    Range,
    StreamKey,
)
from protocols.topics.modes import Mode
from protocols.topics.relation import Relation, Seat
from protocols.topics.stream import FIRST_BEAT, Stream, check_ranges

LONGEST_OFFER_PAUSE = 2.0  # s


class Outgoing(Stream):
    """What a publisher or a relay sends; `wanted` says to whom."""

    def __init__(
        self, core: Core, key: StreamKey, topic: str, mode: Mode, config: TopicConfig, newest: int
    ) -> None:
        super().__init__(core, key, topic, mode, config, newest)
        self.relations: dict[Seat, Relation] = {}
        self.shunned: dict[Seat, str] = {}  # rejected us or failed, and did not call since
        self.orphans: dict[str, tuple[int, float]] = {}  # zones without a gateway: position, until
        self.linger_until = inf
        self._since: dict[NodeId, int] = {}  # nack: how far the stream was when they subscribed

    # -- what publishers and relays differ in ---------------------------------------------------

    @abstractmethod
    def wanted(self) -> dict[Seat, str]:
        """Who should get this stream; a relay with the zone that it stands for."""

    @abstractmethod
    def settled(self, now: float) -> None:
        """Receivers acknowledged more, or fewer are waited for."""

    def gateways(self) -> list[NodeId]:
        """Who takes part for others."""
        return [seat.peer for seat, one in self.relations.items() if seat.relay and one.operational]

    # -- receivers ------------------------------------------------------------------------------

    def review(self, now: float) -> None:
        """Look at who is interested now: greet newcomers, let go who is not."""
        wanted = self.wanted()
        self._choose_route(wanted)
        if self.mode is not Mode.ACK:
            targets = tuple(seat.peer for seat in wanted if not seat.relay)
            if targets != self._targets:
                self._targets = targets
                newest = self.history.newest
                self._since = {peer: self._since.get(peer, newest) for peer in self._targets}
                self._beat_soon(now, 0.0)  # newcomers learn of it though nothing is published
        gone = False
        for seat, relation in list(self.relations.items()):
            if seat in wanted:
                relation.lost_at = None
            else:
                gone |= self._let_go(relation, now)
        for seat, stands_for in wanted.items():
            if seat in self.relations or seat in self.shunned or self.ended:
                continue
            if self.mode is Mode.ACK or seat.relay:
                self._discover(seat, stands_for, now)
        if gone:
            self.settled(now)
        self.check(now)

    def _let_go(self, relation: Relation, now: float) -> bool:
        """Nobody wants it there any more, or it is gone; True when it holds nothing up now."""
        peer = relation.peer
        if relation.seat.relay:
            self._orphan(relation, now)
            return False
        if peer != self.core.me and peer not in self.core.members:
            record = self.core.members.record(peer)
            if record is not None and not record.left:
                if relation.lost_at is None:
                    relation.lost_at = now
                return False
        del self.relations[relation.seat]
        self._say_failed(
            relation.seat, MOVED
        )  # if it is still interested, somebody else serves it now
        self._tell_left(peer)
        return True

    def _orphan(self, relation: Relation, now: float) -> None:
        """Its successor may take over from where it was."""
        del self.relations[relation.seat]
        self._say_failed(relation.seat, MOVED)
        if relation.operational or relation.inherited:
            until = now + self.core.settings.fail_after
            position, _ = self.orphans.get(relation.stands_for, (relation.acked, 0.0))
            self.orphans[relation.stands_for] = (min(position, relation.acked), until)
            self._arm(until)

    def _discover(self, seat: Seat, stands_for: str, now: float) -> None:
        """Whatever is published from now on, it will get."""
        owed = [
            other.acked
            for other in self.relations.values()
            if stands_for and other.stands_for == stands_for
        ]
        if stands_for in self.orphans:
            owed.append(self.orphans.pop(stands_for)[0])
        position = min(owed, default=self.history.newest)
        pause = self.core.settings.offer_every
        offset = self.history.offset(position)
        relation = Relation(seat, stands_for, position, offset, pause, now)
        relation.inherited = bool(owed)
        self.relations[seat] = relation
        self._offer(relation, now)

    def _offer(self, relation: Relation, now: float) -> None:
        relation.offer_at = now + relation.offer_pause
        relation.offer_pause = min(relation.offer_pause * 1.5, LONGEST_OFFER_PAUSE)
        origin, stream = self.key
        self.core.effects.send(
            relation.peer,
            Offer(
                origin,
                stream,
                self.topic,
                self.mode,
                relation.acked + 1,
                self.history.newest,
                self.config.window_bytes,
                self.config.keep,
                relation.seat.relay,
            ),
        )
        self._arm(relation.offer_at)

    def called_by(self, peer: NodeId, now: float) -> None:
        """Somebody asks for an offer."""
        for seat in (Seat(peer), Seat(peer, relay=True)):
            self.shunned.pop(seat, None)
            relation = self.relations.get(seat)
            if relation is not None and not relation.operational:
                self._offer(relation, now)
        self.review(now)
        seat = Seat(peer, relay=True)
        if seat not in self.relations:
            self._say_failed(seat, MOVED)  # harmless to who is no gateway

    def on_accept(self, src: NodeId, msg: Accept, now: float) -> None:
        """A receiver takes part, or wants to hear once more where it begins."""
        if msg.have > self.history.newest:
            self._on_unknown_accept(src, msg)
            return
        seat = Seat(src, msg.relay)
        relation = self.relations.get(seat)
        if relation is None and self.mode is Mode.NACK:
            position = self._since.get(src, self.history.newest)
            self.core.effects.send(src, Begin(*self.key, self._start_for(position, msg)))
            return
        if relation is None:
            self._say_failed(seat, "not offered")
            return
        relation.heard_at = now
        if relation.receiver != msg.receiver:
            start = self._start_for(relation.acked, msg)
            relation.receiver = msg.receiver
            relation.begun = start
            relation.acked = relation.sent = start - 1
            relation.acked_end = self.history.offset(start - 1)
            relation.resent.clear()
            self._ask_by(relation, now + self.core.settings.heartbeat, self.core.settings.heartbeat)
            self.core.effects.emit(SubscriberJoined(self.topic, src, self.key[1], start))
        self.core.effects.send(src, Begin(*self.key, relation.begun, seat.relay))
        if self.mode is Mode.ACK:
            self._pump(relation, now)
        if self.ended:
            self._tell(relation, ASK)
        self.settled(now)
        self.check(now)

    def _on_unknown_accept(self, src: NodeId, msg: Accept) -> None:
        """A receiver has more than there is."""
        raise RemoteProtocolError("accept-unsent", f"{src} has {msg.have} of {self.topic}")

    def _start_for(self, position: int, msg: Accept) -> int:
        """Where a receiver begins that is owed all after `position`."""
        history = self.history
        start = position + 1
        if msg.have:
            return max(msg.have + 1, min(history.oldest, start))
        if msg.replay == REPLAY_ALL:
            start = min(start, history.oldest)
        elif msg.replay == REPLAY_LAST:
            start = min(start, max(history.oldest, history.newest + 1 - int(msg.amount)))
        elif msg.replay == REPLAY_SINCE:
            late = next((c.first for c in history if c.sent_at >= msg.amount), history.newest + 1)
            start = min(start, late)
        return start

    def on_reject(self, seat: Seat, reason: str, now: float) -> None:
        """A receiver does not want it."""
        relation = self.relations.get(seat)
        if relation is None:
            return
        self.shunned[seat] = reason
        if relation.inherited:
            self._orphan(relation, now)  # it is new in its office, and may hear of others yet
        else:
            del self.relations[seat]
            self.settled(now)

    def on_leave(self, seat: Seat, now: float, *, moved: bool) -> None:
        """A receiver closed, or gets it from somebody else."""
        relation = self.relations.get(seat)
        if relation is None:
            return
        self.shunned[seat] = "left"
        if moved and seat.relay:
            self._orphan(relation, now)  # it may come back: what it lacks stays for a while
        else:
            del self.relations[seat]
            self._tell_left(seat.peer)
            self.settled(now)

    def _tell_left(self, peer: NodeId) -> None:
        self.core.effects.emit(SubscriberLeft(self.topic, peer, self.key[1]))

    def release(self, now: float) -> None:
        """This node has nothing more to send: let all receivers look for somebody else."""
        for relation in list(self.relations.values()):
            del self.relations[relation.seat]
            self._say_failed(relation.seat, MOVED)
        self.orphans.clear()
        self.settled(now)

    def fail(self, relation: Relation, reason: str, now: float) -> None:
        """Wait for a receiver no longer, and tell it so."""
        if self.relations.pop(relation.seat, None) is None:
            return
        self.shunned[relation.seat] = reason
        self.core.counts.failed_subscribers += 1
        self._say_failed(relation.seat, reason)
        self.core.effects.emit(SubscriberFailed(self.topic, relation.peer, self.key[1], reason))
        self.settled(now)

    def _say_failed(self, seat: Seat, reason: str) -> None:
        self.core.effects.send(seat.peer, Failed(*self.key, reason, seat.relay))

    # -- sending --------------------------------------------------------------------------------

    def spread(self, chunk: Chunk, before: int, now: float) -> None:
        """Send a new chunk, which follows message `before`, to everybody who is ready for it."""
        if self.mode is Mode.ACK:
            window = self.config.window_bytes
            begin = chunk.end - len(chunk.payload)
            ready = [
                relation
                for relation in self.relations.values()
                if relation.receiver is not None
                and relation.sent >= before
                and (chunk.end - relation.acked_end <= window or relation.acked_end >= begin)
            ]
            members = [relation.peer for relation in ready if not relation.flags]
            self._send_to_all(chunk, members, [one.peer for one in ready if one.flags])
            for relation in ready:
                self._was_sent(relation, chunk, now)
        else:
            self._send_to_all(chunk, self._targets, self.gateways())
            self._beat_soon(now, FIRST_BEAT)

    def _tell(self, relation: Relation, flags: int = 0) -> None:
        self.core.effects.send(relation.peer, self._progress(flags | relation.flags))

    def _pump(self, relation: Relation, now: float) -> None:
        """Send what a receiver did not get yet, as far as its window is open."""
        history, window = self.history, self.config.window_bytes
        while relation.sent < history.newest:
            chunk = history.at(relation.sent + 1)
            if chunk is None:
                return
            begin = chunk.end - len(chunk.payload)
            if chunk.end - relation.acked_end > window and relation.acked_end < begin:
                return
            self.core.effects.send(relation.peer, self.data(chunk, relation.flags))
            self._was_sent(relation, chunk, now)

    def _was_sent(self, relation: Relation, chunk: Chunk, now: float) -> None:
        relation.sent = chunk.last
        ask_at = now + self.core.settings.ask_after
        if relation.ask_at > ask_at:
            self._ask_by(relation, ask_at, self.core.settings.ask_after)

    def ask_now(self, relation: Relation, now: float) -> None:
        """Have a receiver acknowledge at once."""
        self._tell(relation, ASK)
        pause = self.core.settings.ask_after
        self._ask_by(relation, now + pause, pause)

    def _ask_by(self, relation: Relation, at: float, pause: float) -> None:
        relation.ask_at = at
        relation.ask_pause = pause
        self._arm(at)

    def _send_again(self, relation: Relation, gaps: Iterable[Range], now: float) -> None:
        """Fill gaps: whole chunks, each not too often, a window's worth at most."""
        not_before = now - self.core.settings.resend_after
        budget = self.config.window_bytes
        for first, last in gaps:
            for chunk in self.history.overlapping(first, min(last, relation.sent)):
                if relation.resent.get(chunk.first, -inf) > not_before:
                    self.core.counts.suppressed += 1
                    continue
                if budget <= 0:
                    return
                budget -= len(chunk.payload)
                relation.resent[chunk.first] = now
                self.core.counts.resent += 1
                self.core.effects.send(relation.peer, self.data(chunk, relation.flags))

    # -- answers --------------------------------------------------------------------------------

    def on_ack(self, src: NodeId, msg: Ack, now: float) -> None:
        """A receiver tells how far it is."""
        seat = Seat(src, msg.relay)
        relation = self.relations.get(seat)
        if relation is None:
            self._say_failed(seat, self.shunned.get(seat, "unknown"))
            return
        if relation.receiver != msg.receiver:
            self.core.counts.stray += 1
            return
        history = self.history
        self._check_ack(src, msg)
        relation.heard_at = now
        relation.lost_at = None
        before = relation.acked
        if msg.upto > before:
            relation.acked = msg.upto
            relation.sent = max(relation.sent, msg.upto)
            relation.acked_end = history.offset(msg.upto)
            relation.slow = False
            if relation.resent:
                relation.resent = {
                    first: at for first, at in relation.resent.items() if first > msg.upto
                }
        if self.mode is Mode.ACK:
            self._bridge_hole(relation)
            self._send_again(relation, msg.gaps, now)
            self._pump(relation, now)
            settings = self.core.settings
            waits = relation.sent > relation.acked or self.ended
            pause = settings.ask_after if waits else settings.heartbeat
            self._ask_by(relation, now + pause, pause)
        if relation.acked > before or self.ended:
            self.settled(now)

    def _bridge_hole(self, relation: Relation) -> None:
        """What a receiver wants next may be gone for good: a relay's own source had lost it."""
        chunk = self.history.at(relation.acked + 1)
        start = self.history.newest + 1 if chunk is None else chunk.first
        if start > relation.acked + 1:
            relation.acked = start - 1
            relation.sent = max(relation.sent, relation.acked)
            relation.acked_end = self.history.offset(relation.acked)
            if relation.operational:
                begin = Begin(*self.key, start, relation.seat.relay)
                self.core.effects.send(relation.peer, begin)

    def _check_ack(self, src: NodeId, msg: Ack) -> None:
        newest = self.history.newest
        if msg.upto > newest:
            raise RemoteProtocolError("ack-unsent", f"{src} acknowledges {msg.upto} of {newest}")
        check_ranges(src, msg.gaps, msg.upto)
        if msg.gaps and msg.gaps[-1][1] > newest:
            raise RemoteProtocolError("ack-unsent", f"{src} lacks {msg.gaps[-1]} of {newest}")

    # -- how far everybody is -------------------------------------------------------------------

    @property
    def floor(self) -> int:
        """All receivers have everything up to here."""
        lowest = self.history.newest
        for relation in self.relations.values():
            if relation.acked < lowest:
                lowest = relation.acked
        for position, _ in self.orphans.values():
            lowest = min(lowest, position)
        return lowest

    def trim(self, now: float) -> None:
        """Forget what nobody can ask for any more, and what is over the bounds."""
        history, config = self.history, self.config
        if self.mode is Mode.ACK:
            floor = self.floor
            while (chunk := history.first) is not None and chunk.last <= floor:
                kept = history.messages - chunk.count >= config.keep
                if not kept and now - chunk.sent_at <= config.history_age:
                    return
                history.drop_oldest()
            return
        self.drop_old(now)

    def drop_for_slow(self, now: float) -> None:
        """Make room though some lack the oldest chunk: they hear of a gap."""
        chunk = self.history.drop_oldest()
        for relation in self.relations.values():
            if relation.acked < chunk.last:
                self.tell_slow(relation)
                relation.acked = chunk.last
                relation.acked_end = max(relation.acked_end, chunk.end)
                relation.sent = max(relation.sent, chunk.last)
        self.orphans = {
            zone: (max(position, chunk.last), until)
            for zone, (position, until) in self.orphans.items()
        }

    def slowest(self) -> list[Relation]:
        """Those who have the least."""
        floor = self.floor
        return [relation for relation in self.relations.values() if relation.acked == floor]

    def tell_slow(self, relation: Relation) -> None:
        """Say once that a receiver holds the stream up."""
        if not relation.slow:
            relation.slow = True
            behind = self.history.newest - relation.acked
            self.core.effects.emit(SubscriberSlow(self.topic, relation.peer, self.key[1], behind))

    # -- time -----------------------------------------------------------------------------------

    def on_timer(self, now: float) -> None:
        """Something may be due."""
        self._timer_at = inf
        self.check(now)

    def check(self, now: float) -> None:
        """Repeat offers, ask who is silent, give up who is so for too long, tell who waits."""
        due = inf
        for relation in list(self.relations.values()):
            due = min(due, self._check_relation(relation, now))
        for zone, (_, until) in list(self.orphans.items()):
            if now >= until:
                del self.orphans[zone]
                self.settled(now)
            else:
                due = min(due, until)
        if self.mode is not Mode.ACK:
            due = min(due, self._check_beat(now))
        if len(self.history) and self.mode is not Mode.ACK:
            self.trim(now)
        if due < inf:
            self._arm(max(due, now + 0.001))

    def _check_relation(self, relation: Relation, now: float) -> float:
        """Do what is due; returns when something is next."""
        settings = self.core.settings
        if not relation.operational:
            deadline = relation.discovered_at + settings.handshake_within
            if now >= deadline:
                self.fail(relation, "no answer", now)
                return inf
            if now >= relation.offer_at:
                self._offer(relation, now)
            return min(relation.offer_at, deadline)
        if self.mode is not Mode.ACK:
            return inf
        # The successor of a gateway needs time to be found, and goes on from where that one was.
        patience = settings.fail_after * (2 if relation.stands_for else 1)
        deadline = relation.heard_at + patience
        if relation.lost_at is not None:
            deadline = min(deadline, relation.lost_at + settings.lost_grace)
        if now >= deadline:
            self.fail(relation, "silent", now)
            return inf
        if now >= relation.ask_at:
            self.core.counts.asked += 1
            self._tell(relation, ASK)
            pause = min(relation.ask_pause * 2, settings.heartbeat)
            self._ask_by(relation, now + pause, pause)
        return min(relation.ask_at, deadline)

    def end(self, now: float, *, lost: bool = False) -> None:
        """Nothing follows: tell everybody, and serve who lacks something for a while."""
        if self.ended:
            return
        self.ended, self.lost = True, lost
        self.linger_until = now + self.config.linger
        for relation in self.relations.values():
            if relation.operational and self.mode is Mode.ACK:
                self.ask_now(relation, now)
        if self.mode is not Mode.ACK:
            self._beat_soon(now, 0.0)
        self.check(now)

    # -- invariants -----------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """See the package's docstring."""
        history = self.history
        for relation in self.relations.values():
            if not relation.acked <= relation.sent <= history.newest:
                raise InvariantViolation(
                    f"{self.core.me}: {relation.peer} has {relation.acked}, was sent"
                    f" {relation.sent} of {history.newest} of {self.topic}"
                )
            if self.mode is Mode.ACK and relation.acked + 1 < history.oldest and history.messages:
                raise InvariantViolation(
                    f"{self.core.me}: {relation.peer} lacks {relation.acked + 1} of {self.topic},"
                    f" which is gone: {history.oldest} is the oldest"
                )
