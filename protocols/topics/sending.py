"""How far each receiver of a stream is: windows, acknowledgements, and what is sent again.

Publishers and relays are both this. In ack mode there is a relation with every receiver; in the
other modes only with gateways, who stand for zones, and everybody else is found by interest.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from overlay.errors import InvariantViolation, RemoteProtocolError
from overlay.ids import NodeId
from overlay.tracing import Level
from protocols.topics import tracing
from protocols.topics.events import SubscriberSlow
from protocols.topics.heirs import Heirs
from protocols.topics.history import Chunk
from protocols.topics.messages import ASK, Ack, Begin, Range, Repair
from protocols.topics.modes import Mode
from protocols.topics.relation import Relation, Seat
from protocols.topics.stream import FIRST_BEAT, check_ranges

SHORTEST_PAUSE = 0.001  # s between two looks at what is due


class Outgoing(Heirs):
    """What a publisher or a relay sends."""

    # -- sending --------------------------------------------------------------------------------

    def spread(self, chunk: Chunk, before: int, now: float) -> None:
        """Send a new chunk, which follows message `before`, to everybody who is ready for it."""
        if self.mode is Mode.ACK:
            window = self.config.window_bytes
            begin = chunk.end - len(chunk.payload)
            ready: list[Relation] = []
            members: list[NodeId] = []
            elsewhere: list[NodeId] = []  # whom no tree of this zone reaches
            gateways: list[NodeId] = []
            for relation in self.relations.values():
                if (
                    relation.receiver is not None
                    and relation.sent >= before
                    and (chunk.end - relation.acked_end <= window or relation.acked_end >= begin)
                ):
                    ready.append(relation)
                    if self._in_tree and relation.moves_until and not relation.flags:
                        elsewhere.append(relation.peer)
                    else:
                        (gateways if relation.flags else members).append(relation.peer)
            self._send_to_all(chunk, members, gateways)
            if elsewhere:
                self.core.effects.send(elsewhere, self.data(chunk))
            for relation in ready:
                self._was_sent(relation, chunk, now)
        else:
            self._send_to_all(chunk, self._targets, self.gateways())
            self._beat_soon(now, FIRST_BEAT)

    def pump(self, relation: Relation, now: float) -> None:
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
        if relation.sent == relation.acked:
            relation.waits_since = now
        relation.sent = chunk.last
        ask_at = now + self.core.settings.ask_after
        if relation.ask_at > ask_at:
            self.ask_by(relation, ask_at, self.core.settings.ask_after)

    def ask_now(self, relation: Relation, now: float) -> None:
        """Have a receiver acknowledge at once."""
        self._tell(relation, ASK)
        pause = self.core.settings.ask_after
        self.ask_by(relation, now + pause, pause)

    def ask_by(self, relation: Relation, at: float, pause: float) -> None:
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
                budget -= chunk.cost
                relation.resent[chunk.first] = now
                self.core.counts.resent += 1
                if self.core.effects.tracing >= Level.MESSAGES:
                    tracing.repaired(self.core, self.key, self.topic, chunk, relation.peer)
                self.core.effects.send(relation.peer, self.data(chunk, relation.flags, Repair))

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
        self._heard(relation, now)
        relation.lost_at = None
        before = relation.acked
        upto = min(msg.upto, history.newest)
        if upto > before:
            relation.acked = upto
            relation.sent = max(relation.sent, upto)
            relation.acked_end = history.offset(upto)
            relation.slow = False
            if relation.resent:
                relation.resent = {
                    first: at for first, at in relation.resent.items() if first > upto
                }
        if self.mode is Mode.ACK:
            self._bridge_hole(relation)
            if msg.gaps and msg.gaps[0][0] <= relation.acked:
                # It waits for what is gone: it was told so, but that was lost, or nobody read.
                begin = Begin(*self.key, relation.acked + 1, seat.relay)
                self.core.effects.send(src, begin)
            self._send_again(relation, msg.gaps, now)
            self.pump(relation, now)
            settings = self.core.settings
            waits = relation.sent > relation.acked or self.ended
            pause = settings.ask_after if waits else settings.heartbeat
            self.ask_by(relation, now + pause, pause)
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

    def trim(self, now: float) -> None:
        """Forget what nobody can ask for any more, and what is over the bounds."""
        history, config = self.history, self.config
        if self.mode is Mode.ACK:
            floor = self.floor
            while (chunk := history.first) is not None and chunk.last <= floor:
                kept = history.messages - chunk.count >= config.keep
                if not kept and now - chunk.kept_at <= config.history_age:
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
            zone: one._replace(position=max(one.position, chunk.last))
            for zone, one in self.orphans.items()
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
        if self.mode is Mode.ACK:
            due = min(due, self._check_gateways(now))
        for zone, orphan in list(self.orphans.items()):
            if now < orphan.until:
                due = min(due, orphan.until)
            elif self.orphans.pop(zone, None) is not None:  # unless what came before settled it
                self.settled(now)
        due = min(due, self._check_failed(now))
        if self.mode is not Mode.ACK:
            due = min(due, self._check_beat(now))
        if len(self.history) and self.mode is not Mode.ACK:
            self.trim(now)
        if due < inf:
            self._arm(max(due, now + SHORTEST_PAUSE))

    def _check_relation(self, relation: Relation, now: float) -> float:
        """Do what is due; returns when something is next."""
        settings = self.core.settings
        if relation.moves_until and now >= relation.moves_until:
            relation.moves_until = 0.0
            if relation.seat not in self.wanted() and self._let_go(relation, now):
                self.settled(now)
            if relation.seat not in self.relations:
                return inf
        if not relation.operational:
            deadline = relation.discovered_at + settings.handshake_within
            if now >= deadline:
                self.fail(relation, "no answer", now)
                return inf
            if now >= relation.offer_at:
                self.offer(relation, now)
            return min(relation.offer_at, deadline)
        if self.mode is not Mode.ACK:
            return inf
        # The successor of a gateway needs time to be found, and goes on from where that one was.
        patience = settings.fail_after * (2 if relation.stands_for else 1)
        deadline = max(relation.heard_at + patience, relation.moves_until)
        if relation.lost_at is not None:
            deadline = min(deadline, relation.lost_at + settings.lost_grace)
        if now >= deadline:
            self.fail(relation, "silent", now)
            return inf
        if now >= relation.ask_at:
            self.core.counts.asked += 1
            self._tell(relation, ASK)
            pause = min(relation.ask_pause * 2, settings.heartbeat)
            self.ask_by(relation, now + pause, pause)
        return min(relation.ask_at, deadline, relation.moves_until or inf)

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
            waits = relation.operational and relation.acked < relation.sent
            late = self._timer_at > relation.ask_at + SHORTEST_PAUSE
            if self.mode is Mode.ACK and waits and late:
                raise InvariantViolation(
                    f"{self.core.me}: {relation.peer} was sent {relation.sent} of {self.topic}, has"
                    f" {relation.acked}, and no timer is set to ask it"
                )
