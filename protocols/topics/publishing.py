"""A publisher of this node: messages are packed into the open chunk until the tick ends."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from math import inf
from typing import Any

from overlay.errors import InvariantViolation, LocalProtocolError
from overlay.ids import NodeId
from protocols.topics import tracing
from protocols.topics.config import TopicConfig
from protocols.topics.core import Core
from protocols.topics.events import StreamEnded
from protocols.topics.messages import MOST_MESSAGES, Nack, StreamKey
from protocols.topics.modes import Mode, mode_of
from protocols.topics.packing import pack
from protocols.topics.relation import ALL_OTHER_ZONES, Seat
from protocols.topics.sending import Outgoing
from protocols.topics.stream import Resent

ITEM_BYTES = 8  # that a message takes in a chunk besides its own, at most, and in the accounts
MOST_ITEMS = MOST_MESSAGES // 2
STUCK_AFTER = 0.2  # s without any progress of a link's queue: nobody waits for it
NACK_SHARE = 4  # parts of history: whoever is one of them behind, and asks, is waited for
LOOK_EVERY = 0.001  # s between two looks at queues that are full


class Publisher(Outgoing):
    """The stream of one publisher.

    The fast path is `append` in `nodes/topics.py`: while `left` has room a message is queued by
    taking its bytes off `left` and calling `push`; the first of a chunk calls `wake`, too.
    """

    def __init__(self, core: Core, key: StreamKey, topic: str, config: TopicConfig) -> None:
        super().__init__(core, key, topic, mode_of(config.reliability), config, newest=0)
        self.items: list[Any] = []
        self.push = self.items.append
        self.left = 0  # bytes that the open chunk still takes
        self._closed_at = 0.0  # when the last chunk left, or its links were looked at
        self.waiting = False  # somebody waits for room, or for all to be acknowledged
        self.closed = False
        self.finished = False
        self._on_room: Callable[[], None] = _nobody_waits
        self._waits_since = inf
        self._needs = ITEM_BYTES + 1  # bytes of the smallest message that waits
        self._nacked = 0  # somebody has all up to here, and asked for the next one
        self._nacked_by: NodeId = ""
        self._nacked_at = -inf
        self._held = False  # without acks: our own links are full
        self._queues: dict[NodeId, tuple[int, float]] = {}  # shortest that each was, and since when
        self._reopen()

    def wanted(self) -> dict[Seat, str]:
        """Interested members, and who stands for other zones."""
        core, topic = self.core, self.topic
        found = {
            Seat(peer): ""
            for peer in core.audience.interested(topic)
            if core.may(peer, "subscribe", topic)
        }
        if core.wanted_here(topic):
            found[Seat(core.me)] = ""
        gateway = core.book.gateway_of(topic)
        if gateway == core.me:
            for peer, far in core.book.remote_gateways(topic).items():
                if far.subscribes:
                    found[Seat(peer, relay=True)] = far.zone
        elif gateway is not None:
            found[Seat(gateway, relay=True)] = ALL_OTHER_ZONES
        return found

    def review(self, now: float) -> None:
        """Look at who is interested now; where this node stands for its zone it knows all zones."""
        super().review(now)
        core, topic = self.core, self.topic
        mine = ALL_OTHER_ZONES in self.orphans and core.book.gateway_of(topic) == core.me
        if mine and core.book.knows_remote(topic):  # each of them has its own place now
            del self.orphans[ALL_OTHER_ZONES]
            self.settled(now)

    # -- the open chunk -------------------------------------------------------------------------

    @property
    def next_number(self) -> int:
        """What the next message will be called."""
        return self.history.newest + len(self.items) + 1

    @property
    def has_room(self) -> bool:
        """Whether the smallest message that waits can be published now."""
        return self.left >= self._needs or (not self.closed and self._fits(self._needs))

    @property
    def chunk_bytes(self) -> int:
        """What a chunk takes at most, unless a single message is longer."""
        return self.core.settings.chunk_bytes

    @property
    def receivers(self) -> tuple[NodeId, ...]:
        """Who takes part in ack mode, and who is interested in the others."""
        if self.mode is not Mode.ACK:
            return self._targets
        return tuple(
            seat.peer
            for seat, relation in self.relations.items()
            if relation.operational and not seat.relay
        )

    @property
    def all_settled(self) -> bool:
        """Whether all receivers that are waited for have everything."""
        if self.items:
            return False
        return self.mode is not Mode.ACK or self.settled_upto == self.history.newest

    def put(self, item: Any, size: int, now: float) -> bool:
        """Queue a message that found `left` too small; False when it must wait."""
        self.check_size(size)
        if self.items:
            self._close_chunk(now)
        if size > self.left and not self._make_room(size, now):
            return False
        self.left -= size
        self.push(item)
        self.wake(now)
        return True

    def put_all(self, items: list[Any], size: int, now: float) -> bool:
        """Queue all of them in one chunk; False when they do not fit into one now."""
        if size > self.left or len(self.items) + len(items) > MOST_ITEMS:
            if self.items:
                self._close_chunk(now)
            if size > self.left or len(items) > MOST_ITEMS:
                return False
        self.left -= size
        self.items += items
        self.wake(now)
        return True

    def put_many(self, items: list[Any], ends: list[int], done: int, now: float) -> int:
        """Queue as many as find room, from place `done` on; returns the place of the next one.

        `ends` are the sums of what the items count as.
        """
        taken = ends[done - 1] if done else 0
        while done < len(items):
            upto = bisect_right(ends, taken + self.left, lo=done)
            upto = min(upto, done + MOST_ITEMS - len(self.items))
            if upto <= done:  # the fast path does not count messages
                if self.items:
                    self._close_chunk(now)
                    continue
                size = ends[done] - taken
                self.check_size(size)
                if not self._make_room(size, now):
                    break
                upto = done + 1
            self.items.extend(items[done:upto])
            self.left -= ends[upto - 1] - taken
            taken, done = ends[upto - 1], upto
        if self.items:
            self.wake(now)
        return done

    def check_size(self, size: int) -> None:
        """LocalProtocolError when no message that counts so many bytes can be published."""
        if self.closed:
            raise LocalProtocolError(f"the publisher of {self.topic!r} is closed")
        limits = {"topics.message_bytes": self.core.settings.message_bytes}
        if self.mode in (Mode.ACK, Mode.NACK):
            limits["history_bytes"] = self.config.history_bytes - ITEM_BYTES
        for name, most in limits.items():
            if size - ITEM_BYTES > most:
                raise LocalProtocolError(
                    f"a message of {size - ITEM_BYTES} bytes for {self.topic!r}: {name} allows"
                    f" {most}"
                )

    def wake(self, now: float) -> None:
        """Have the open chunk leave at the end of this tick."""
        self.core.effects.at_tick_end(self.flush)

    def flush(self, now: float) -> None:
        """Let the open chunk leave."""
        if self.items:
            self._close_chunk(now)
        if self.waiting:
            self._tell_waiting(now)

    def _close_chunk(self, now: float) -> None:
        items = self.items
        payload, bare = pack(items)
        before = self.history.newest
        if self.mode is Mode.NACK:
            self._make_place(len(items), len(payload))
        sent_at = self.core.overlay_time(now)
        chunk = self.history.add(before + 1, len(items), sent_at, payload, now, bare=bare)
        if self.core.effects.tracing:
            tracing.published(self.core, self.key, self.topic, self.mode, chunk)
        self._closed_at = now
        self.items = []
        self.push = self.items.append
        self.core.counts.published += len(items)
        self.core.counts.chunks += 1
        self.spread(chunk, before, now)
        if self.mode is not Mode.ACK or not self.relations:  # else receivers have nothing more yet
            self.trim(now)
        self._reopen()

    def _make_place(self, messages: int, size: int) -> None:
        """Nack mode: what is new takes the place of what is old, so the bounds always hold."""
        history, config = self.history, self.config
        while len(history) and (
            history.messages + messages > config.history_messages
            or history.bytes + size > config.history_bytes
        ):
            history.drop_oldest()

    def _reopen(self) -> None:
        """Grant the next chunk what the bounds leave."""
        settings = self.core.settings
        # No more than a message may have: longer ones must come to `put`, which refuses them.
        most = min(settings.chunk_bytes, settings.message_bytes + ITEM_BYTES)
        if self.mode is Mode.ACK:
            most = min(most, self._room())
        elif self.mode is Mode.NACK:
            config = self.config
            most = min(most, config.history_bytes, config.history_messages * ITEM_BYTES)
        if self.mode is not Mode.ACK and self._links_are_full():
            most = 0
        self.left = 0 if self.closed else max(0, most)

    def _room(self) -> int:
        """Bytes that history has room for; what is only kept for late joiners makes place.

        It does so for a chunk of a fair size: `_make_room` lets more of it go when it must.
        """
        history, config = self.history, self.config
        messages = config.history_messages - history.messages
        room = min(config.history_bytes - history.bytes, messages * ITEM_BYTES)
        if room >= self.core.settings.chunk_bytes:  # as nearly always
            return room
        messages = max(config.history_messages - config.keep, config.history_messages // 4)
        wanted = min(
            self.core.settings.chunk_bytes, config.history_bytes // 4, messages * ITEM_BYTES
        )
        while True:
            messages = config.history_messages - history.messages
            room = min(config.history_bytes - history.bytes, messages * ITEM_BYTES)
            oldest = history.first
            if room >= wanted or oldest is None or oldest.last > self.floor:
                return room
            history.drop_oldest()

    def _fits(self, size: int) -> bool:
        """Whether a chunk of one such message is within the bounds; a first one always is."""
        history, config = self.history, self.config
        if self.mode is not Mode.ACK or not history.messages:
            return not self._held
        return (
            history.messages < config.history_messages
            and history.bytes + size <= config.history_bytes
        )

    def _make_room(self, size: int, now: float) -> bool:
        """Open a chunk for one message of that size; False when it must wait for receivers."""
        policy = self.config.slow
        while not self._fits(size):
            if self._held:
                self._wait(size, now)
                return False
            oldest = self.history.first
            if oldest is not None and oldest.last <= self.floor:
                self.history.drop_oldest()
            elif policy == "drop-oldest":
                self.drop_for_slow(now)
            elif policy == "disconnect" and (slowest := self.slowest()):
                for relation in slowest:
                    self.fail(relation, "slow", now)
                self.trim(now)
            else:
                self._wait(size, now)
                return False
        self.left = max(size, self.left)
        return True

    # -- waiting --------------------------------------------------------------------------------

    def on_room(self, callback: Callable[[], None]) -> None:
        """Have this called while `waiting`, when there may be room, or all is acknowledged."""
        self._on_room = callback

    def _wait(self, size: int, now: float) -> None:
        if self._waits_since is not inf:
            self._needs = min(self._needs, size)
        else:
            self._needs = size
            self._waits_since = now
            at = now + self.core.settings.slow_after
            self.core.effects.set_timer(("slow", self.key), at)
        self.waiting = True

    def _links_are_full(self) -> bool:
        """Whether chunks wait on this node for links that move: publishing more would lose some.

        Without acks nobody else says so. A link that does not move is let down, not waited for.
        """
        core, window = self.core, self.config.window_bytes
        now = self._closed_at
        if self._somebody_is_behind(now):
            self._held = True
            core.effects.set_timer(("room", self.key), now + LOOK_EVERY)
            return True
        peers = (*(core.links.neighbours() if self._in_tree else self._targets), *self.gateways())
        full = False
        if self._queues:
            self._queues = {peer: self._queues[peer] for peer in peers if peer in self._queues}
        for peer in peers:
            waits = core.effects.backlog(peer)
            if waits <= (window // 2 if self._held else window):
                self._queues.pop(peer, None)
                continue
            shortest, since = self._queues.get(peer, (waits + 1, now))
            if waits < shortest:
                self._queues[peer] = (waits, now)
                full = True
            else:
                full |= now - since < STUCK_AFTER
        self._held = full
        if full:
            core.effects.set_timer(("room", self.key), now + LOOK_EVERY)
        return full

    def _somebody_is_behind(self, now: float) -> bool:
        """Whether who asked a moment ago still lacks what soon leaves history."""
        history, config = self.history, self.config
        if now - self._nacked_at > self.core.settings.nack_again * 2 or config.slow != "wait":
            return False
        behind = history.newest - self._nacked
        return behind > config.history_messages // NACK_SHARE or (
            history.end - history.offset(self._nacked) > config.history_bytes // NACK_SHARE
        )

    def on_nack(self, src: NodeId, msg: Nack, now: float, resent: Resent) -> None:
        """Send again what is still here; what is lacked first tells how far somebody is."""
        super().on_nack(src, msg, now, resent)
        if not msg.gaps:
            if src == self._nacked_by:
                self._nacked_at = -inf
        elif self.mode is Mode.NACK and msg.gaps[0][0] >= self.history.oldest:
            first = msg.gaps[0][0] - 1
            if now - self._nacked_at > LOOK_EVERY or first < self._nacked:
                self._nacked, self._nacked_by = first, src
            self._nacked_at = now

    def on_room_timer(self, now: float) -> None:
        """Our links may have room again."""
        self._closed_at = now
        if not self.items:
            self._reopen()
        if self.waiting:
            self._tell_waiting(now)

    def on_slow_timer(self, now: float) -> None:
        """It waits for a long time: say for whom."""
        if self._waits_since is not inf and not self.has_room:
            for relation in self.slowest():
                self.tell_slow(relation)
        self._waits_since = inf

    def settled(self, now: float) -> None:
        """There may be room again, or an end."""
        self.trim(now)
        if not self.items:
            self._reopen()
        if self.waiting:
            self._tell_waiting(now)
        if self.closed:
            self._end_if_done(now)

    def _tell_waiting(self, now: float) -> None:
        if self.has_room or self.all_settled:
            self.waiting = False
            self._waits_since = inf
            self._needs = ITEM_BYTES + 1
            self._on_room()

    def ask_all(self, now: float) -> None:
        """Have everything acknowledged soon."""
        self.flush(now)
        self.waiting = True
        for relation in self.relations.values():
            if relation.operational and relation.acked < self.history.newest:
                self.ask_now(relation, now)
        self._tell_waiting(now)

    def moved(self, core: Core, now: float) -> None:
        """This node is elsewhere now: old receivers are served until they get it another way."""
        self.core = core
        self._timer_at = inf
        self.on_moving(now)
        for relation in self.relations.values():
            relation.heard_at = now
            if relation.operational and self.mode is Mode.ACK:
                self.ask_now(relation, now)
        self._queues.clear()
        self._held = False
        self.flush(now)
        if not self.items:
            self._reopen()
        if self.closed:
            self.core.effects.set_timer(("linger", self.key), max(now, self.linger_until))
        if self.waiting:
            self._tell_waiting(now)
        self.check(now)

    # -- the end --------------------------------------------------------------------------------

    def close(self, now: float) -> None:
        """Publish no more; StreamEnded follows, when all have it or after `linger`."""
        if self.closed:
            return
        self.flush(now)
        self.closed = True
        self.left = 0
        self.end(now)
        self.core.effects.set_timer(("linger", self.key), self.linger_until)
        self._end_if_done(now)

    def _end_if_done(self, now: float) -> None:
        # Without acks nobody knows who lacks something: it lingers for all of its time.
        if self.mode is Mode.ACK and not self.relations and not self.orphans:
            self.over(now, complete=True)

    def on_linger_timer(self, now: float) -> None:
        """It lingered long enough."""
        self.over(now, complete=self.all_settled)

    def over(self, now: float, *, complete: bool) -> None:
        """Nobody is served any more."""
        if self.finished:
            return
        self.finished = True
        for relation in list(self.relations.values()):
            if relation.acked < self.history.newest and self.mode is Mode.ACK:
                self.fail(relation, "closed", now)
        self.core.effects.emit(StreamEnded(self.topic, self.key[1], complete))

    def check_invariants(self) -> None:
        """See the package's docstring."""
        super().check_invariants()
        held, config = self.history, self.config
        bounded = self.mode in (Mode.ACK, Mode.NACK)
        most = (config.history_messages, config.history_bytes)
        if bounded and (held.messages > most[0] or held.bytes > most[1]):
            raise InvariantViolation(
                f"{self.core.me}: {held.messages} messages, {held.bytes} bytes of {self.topic} are"
                f" kept: {most[0]} and {most[1]} are allowed"
            )


def _nobody_waits() -> None:
    """Until an application does."""
