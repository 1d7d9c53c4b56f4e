"""Who receives a stream: discovered, offered, taking part, gone; and who goes on for a gateway."""

from __future__ import annotations

from abc import abstractmethod
from math import inf

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from protocols.topics.config import TopicConfig
from protocols.topics.core import Core
from protocols.topics.events import SubscriberFailed, SubscriberJoined, SubscriberLeft
from protocols.topics.history import Chunk
from protocols.topics.messages import (
    ASK,
    LEFT,
    MOVED,
    REPLAY_ALL,
    REPLAY_LAST,
    REPLAY_SINCE,
    Accept,
    Begin,
    Failed,
    Moving,
    Offer,
    Recall,
    Recalled,
    StreamKey,
)
from protocols.topics.modes import Mode
from protocols.topics.relation import ALL_OTHER_ZONES, EVERYBODY, Orphan, Relation, Seat
from protocols.topics.stream import Stream

LONGEST_OFFER_PAUSE = 2.0  # s
RECALLED_BYTES = 1 << 20  # of what came before, in one part


class Receivers(Stream):
    """A stream with its receivers: in ack mode all of them, in others the gateways."""

    def __init__(
        self, core: Core, key: StreamKey, topic: str, mode: Mode, config: TopicConfig, newest: int
    ) -> None:
        super().__init__(core, key, topic, mode, config, newest)
        self.relations: dict[Seat, Relation] = {}
        self.shunned: dict[Seat, str] = {}  # rejected us or failed, and did not call since
        self.orphans: dict[str, Orphan] = {}  # zones without a gateway
        self.linger_until = inf
        self.moves_until = 0.0  # the publisher changes its zone: places are kept
        self._try_again: dict[Seat, float] = {}  # when failed ones are offered it once more
        self._since: dict[NodeId, int] = {}  # nack: how far the stream was when they subscribed

    # -- what is left to publishers, relays and `sending.py` --------------------------------------

    @abstractmethod
    def wanted(self) -> dict[Seat, str]:
        """Who should get this stream; a relay with the zone that it stands for."""

    @property
    def has_begun(self) -> bool:
        """Whether there is anything to offer."""
        return True

    @property
    @abstractmethod
    def floor(self) -> int:
        """All receivers have everything up to here."""

    @abstractmethod
    def settled(self, now: float) -> None:
        """Receivers acknowledged more, or fewer are waited for."""

    def gateways(self) -> list[NodeId]:
        """Who takes part for others."""
        return [seat.peer for seat, one in self.relations.items() if seat.relay and one.operational]

    def hands_on(self, peer: NodeId, *, relay: bool) -> bool:
        """Whether it takes part for others: then it needs no right of its own."""
        return relay and Seat(peer, relay=True) in self.relations

    @abstractmethod
    def _bequeath(self, heir: Relation, upto: int) -> None:
        """One who stood for others left: who is silent, and stood for the same, is excused."""

    def _heard(self, relation: Relation, now: float) -> None:
        """It lives: whatever it lacks is waited for."""
        relation.heard_at = now
        relation.excused = 0

    @abstractmethod
    def check(self, now: float) -> None:
        """Do what is due, and set the timer for what is next."""

    @abstractmethod
    def pump(self, relation: Relation, now: float) -> None:
        """Send what a receiver did not get yet."""

    @abstractmethod
    def ask_by(self, relation: Relation, at: float, pause: float) -> None:
        """Have a receiver tell how far it is, at that time and then after pauses."""

    def _tell(self, relation: Relation, flags: int = 0) -> None:
        upto = None if self.ended else relation.sent  # what it was not sent yet it does not lack
        self.core.effects.send(relation.peer, self._progress(flags | relation.flags, upto))

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
                relation.stands_for = wanted[seat]  # another zone, if the publisher moved
            else:
                gone |= self._let_go(relation, now)
        for seat, stands_for in wanted.items():
            if seat in self.relations or seat in self.shunned:
                continue
            if self.ended and stands_for not in self.orphans and EVERYBODY not in self.orphans:
                continue  # nothing follows; but who goes on for a gateway gets what that one lacks
            if self.mode is Mode.ACK or seat.relay:
                self._discover(seat, stands_for, now)
        if wanted:
            gone |= self.orphans.pop(EVERYBODY, None) is not None  # each has its own place again
        if gone:
            self.settled(now)
        self.check(now)

    def _let_go(self, relation: Relation, now: float) -> bool:
        """Nobody wants it there any more, or it is gone; True when it holds nothing up now."""
        peer = relation.peer
        if self._keeps_place(relation, now):
            return False  # until it gets it elsewhere, and says so
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

    def _keeps_place(self, relation: Relation, now: float) -> bool:
        """Whether it gets this stream from here until it found another way."""
        if now < self.moves_until and relation.operational:
            reachable = relation.seat.relay or relation.peer in self.core.members
            if reachable or relation.peer == self.core.me:
                relation.moves_until = max(relation.moves_until, self.moves_until)
        return now < relation.moves_until

    def _orphan(self, relation: Relation, now: float) -> None:
        """Its successor may take over from where it was."""
        del self.relations[relation.seat]
        self._say_failed(relation.seat, MOVED)
        if relation.operational or relation.inherited:
            zone, until = relation.stands_for, now + self.core.settings.fail_after
            mine = Orphan(relation.acked, until, relation.excused)
            other = self.orphans.get(zone, mine)
            self.orphans[zone] = Orphan(
                min(mine.position, other.position), until, min(mine.excused, other.excused)
            )
            self._arm(until)

    def _discover(self, seat: Seat, stands_for: str, now: float) -> None:
        """Whatever is published from now on, it will get."""
        owed = [
            other.acked
            for other in self.relations.values()
            if stands_for and other.stands_for == stands_for
        ]
        if stands_for and stands_for in self.orphans:
            owed.append(self.orphans.pop(stands_for).position)
        several = (EVERYBODY, ALL_OTHER_ZONES) if seat.relay else (EVERYBODY,)  # it may be of them
        owed += [self.orphans[whom].position for whom in several if whom in self.orphans]
        position = min(owed, default=self.history.newest)
        pause = self.core.settings.offer_every
        offset = self.history.offset(position)
        relation = Relation(seat, stands_for, position, offset, pause, now)
        relation.inherited = bool(owed)
        self.relations[seat] = relation
        self.offer(relation, now)

    def offer(self, relation: Relation, now: float) -> None:
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
                min(self.config.window_bytes, self.config.history_bytes),
                self.config.keep,
                relation.seat.relay,
                self.history.oldest,
            ),
        )
        self._arm(relation.offer_at)

    def called_by(self, peer: NodeId, now: float) -> None:
        """Somebody asks for an offer."""
        for seat in (Seat(peer), Seat(peer, relay=True)):
            self.shunned.pop(seat, None)
            relation = self.relations.get(seat)
            if relation is not None:
                self.offer(relation, now)  # also to who takes part: it may have lost its way
        self.review(now)
        seat = Seat(peer, relay=True)
        if seat not in self.relations and self.has_begun:
            self._say_failed(seat, MOVED)  # harmless to who is no gateway

    def _check_failed(self, now: float) -> float:
        """Whoever failed a while ago, and is still interested, is greeted again; when is next?"""
        due = [seat for seat, at in self._try_again.items() if now >= at]
        for seat in due:
            del self._try_again[seat]
            self.shunned.pop(seat, None)
        if due:
            self.review(now)
        return min(self._try_again.values(), default=inf)

    def on_accept(self, src: NodeId, msg: Accept, now: float) -> None:
        """A receiver takes part, or wants to hear once more where it begins."""
        if msg.have > self.history.newest:
            self._on_unknown_accept(src, msg)
            return
        seat = Seat(src, msg.relay)
        relation = self.relations.get(seat)
        if relation is None and self.mode is Mode.NACK:
            position = self._since.get(src, self.history.newest)
            start = self._start_for(position, msg)
            begin = Begin(*self.key, start, live=self._live_for(seat, position, start, msg))
            self.core.effects.send(src, begin)
            return
        if relation is None:
            self._say_failed(seat, "not offered")
            return
        self._heard(relation, now)
        if relation.receiver != msg.receiver:
            start = self._start_for(relation.acked, msg)
            relation.receiver = msg.receiver
            relation.begun = start
            relation.live = self._live_for(seat, relation.acked, start, msg)
            relation.acked = relation.sent = start - 1
            relation.acked_end = self.history.offset(start - 1)
            relation.resent.clear()
            self.ask_by(relation, now + self.core.settings.heartbeat, self.core.settings.heartbeat)
            self.core.effects.emit(SubscriberJoined(self.topic, src, self.key[1], start))
        begin = Begin(*self.key, relation.begun, seat.relay, relation.live)
        self.core.effects.send(src, begin)
        if self.mode is Mode.ACK:
            self.pump(relation, now)
        else:
            self._beat_soon(now, 0.0)
        if self.ended:
            self._tell(relation, ASK)
        self.settled(now)
        self.check(now)

    def _on_unknown_accept(self, src: NodeId, msg: Accept) -> None:
        """A receiver has more than there is."""
        raise RemoteProtocolError("accept-unsent", f"{src} has {msg.have} of {self.topic}")

    def on_recall(self, src: NodeId, msg: Recall, now: float) -> None:
        """Send what came before a receiver's subscription, from where it is; a part of it."""
        history, upto = self.history, msg.upto
        if upto > history.newest or msg.have > upto:
            self.core.counts.stray += 1  # or it has more from another gateway: it asks again
            return
        self.core.counts.recalls += 1
        start = self._start_for(upto, msg)
        part: list[Chunk] = []
        budget = min(self.config.window_bytes, RECALLED_BYTES)
        for chunk in history.overlapping(start, upto):
            if budget <= 0:
                break
            part.append(chunk)
            budget -= chunk.cost
        if not part:
            part = [Chunk(upto + 1, 0, 0.0, b"")]
        start, until = max(start, part[0].first), min(upto, part[-1].last)
        for chunk in part:
            self.core.effects.send(
                src,
                Recalled(
                    *self.key,
                    msg.serial,
                    start,
                    until,
                    chunk.first,
                    chunk.count,
                    chunk.sent_at,
                    chunk.payload,
                    msg.relay,
                    chunk.bare,
                ),
            )

    def _start_for(self, position: int, msg: Accept | Recall) -> int:
        """Where a receiver begins that is owed all after `position`."""
        history = self.history
        start = position + 1
        if msg.have:
            return max(msg.have + 1, min(history.oldest, start))
        if msg.replay == REPLAY_ALL:
            start = min(start, history.oldest)
        elif msg.replay == REPLAY_LAST:
            start = min(start, max(history.oldest, start - int(msg.amount)))
        elif msg.replay == REPLAY_SINCE:
            late = next((c.first for c in history if c.sent_at >= msg.amount), history.newest + 1)
            start = min(start, late)
        return start

    def _news_after(self, position: int) -> int:
        """The first message that is news to who is discovered at `position`."""
        return position + 1

    def _live_for(self, seat: Seat, position: int, start: int, msg: Accept) -> int:
        """What a Begin says besides `start`: a gateway fetches more than who is new behind it."""
        if msg.have or (msg.replay and not seat.relay):
            return 0
        live = self._news_after(position)
        return live if live > start else 0

    def on_reject(self, seat: Seat, reason: str, now: float) -> None:
        """A receiver does not want it."""
        relation = self.relations.get(seat)
        if relation is None:
            return
        self.shunned[seat] = reason
        self._try_again.pop(seat, None)
        if seat.relay and (relation.inherited or relation.operational):
            self._orphan(relation, now)  # it is new in its office, and may hear of others yet
        else:
            del self.relations[seat]
            self.settled(now)

    def on_leave(self, seat: Seat, now: float, *, moved: bool) -> None:
        """A receiver closed, or gets it from somebody else."""
        relation = self.relations.get(seat)
        if relation is None:
            return
        self.shunned[seat] = MOVED if moved else LEFT
        self._try_again.pop(seat, None)
        fellows = [one for one in self.relations.values() if one.stands_for == relation.stands_for]
        # Whether somebody really stands for the same is not sure for one that changes its zone.
        alone = len(fellows) == 1 or now < relation.moves_until
        if moved and seat.relay and alone and now >= self.moves_until:
            self._orphan(relation, now)  # it may come back: what it lacks stays for a while
        else:  # or one who stands for the same goes on, and tells what those behind it lack
            del self.relations[seat]
            if seat.relay:
                # Who stood for others leaves when they all did, with or without what there is.
                self._bequeath(relation, relation.acked if moved else self.history.newest)
            self._tell_left(seat.peer)
            self.settled(now)
            self.check(now)

    def on_moving(self, now: float, *peers: NodeId) -> None:
        """These, or all when the publisher moves, keep their places until they are elsewhere."""
        until = now + self.core.settings.move_within
        if not peers:
            self.moves_until = until
        for seat, relation in self.relations.items():
            if not peers or seat.peer in peers:
                relation.moves_until = until
                if not peers:
                    self.core.effects.send(seat.peer, Moving(*self.key, seat.relay))
        if not peers:
            for peer in self._targets:
                self.core.effects.send(peer, Moving(*self.key))

    def give_place(self, seat: Seat, msg: Moving, now: float) -> None:
        """A gateway moves, and takes part for itself alone from now on, from where it was."""
        if seat in self.relations or not self.history.oldest - 1 <= msg.have <= self.history.newest:
            return
        offset = self.history.offset(msg.have)
        relation = Relation(seat, "", msg.have, offset, self.core.settings.offer_every, now)
        relation.receiver, relation.begun = msg.receiver, msg.have + 1
        relation.moves_until = now + self.core.settings.move_within
        self.relations[seat] = relation
        self.shunned.pop(seat, None)
        self.pump(relation, now)
        self.check(now)

    def _tell_left(self, peer: NodeId) -> None:
        self.core.effects.emit(SubscriberLeft(self.topic, peer, self.key[1]))

    def release(self, now: float) -> None:
        """This node has nothing more to send: let all receivers look for somebody else."""
        if self.mode is Mode.ACK and (self.relations or self.orphans):
            # Its source may go on: then those behind must find what they lack, here or there.
            until = now + self.core.settings.fail_after
            self.orphans = {EVERYBODY: Orphan(self.floor, until)}
            self._arm(until)
        for relation in list(self.relations.values()):
            del self.relations[relation.seat]
            self._say_failed(relation.seat, MOVED)
        self.settled(now)

    def fail(self, relation: Relation, reason: str, now: float) -> None:
        """Wait for a receiver no longer, and tell it so."""
        if self.relations.pop(relation.seat, None) is None:
            return
        self.shunned[relation.seat] = reason
        # One that knows of the stream knocks; one whose offers were all lost cannot.
        self._try_again[relation.seat] = now + self.core.settings.handshake_within
        self._arm(self._try_again[relation.seat])
        self.core.counts.failed_subscribers += 1
        self._say_failed(relation.seat, reason)
        self.core.effects.emit(SubscriberFailed(self.topic, relation.peer, self.key[1], reason))
        self.settled(now)

    def _say_failed(self, seat: Seat, reason: str) -> None:
        self.core.effects.send(seat.peer, Failed(*self.key, reason, seat.relay))
