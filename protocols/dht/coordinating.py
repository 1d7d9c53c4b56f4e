"""Operations of this node's application: to the leader, and for gets to enough of the others."""

from __future__ import annotations

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from protocols.dht.accepting import Acceptor
from protocols.dht.binding import Binder
from protocols.dht.core import BATCH_BYTES, BATCH_ITEMS, Core
from protocols.dht.groups import Group
from protocols.dht.interface import READ, READS, WRITE, Answer, Kind, Operation, Outcome, Status
from protocols.dht.leading import Asker, Leader
from protocols.dht.messages import BUSY, MOVED, Confirm, Confirmed, Op, Reply, Request, Result
from protocols.dht.placement import shard_of
from protocols.dht.routes import Routes, Way
from protocols.dht.shelf import millis

PROXY_PATIENCE = 4  # × retry: an access point tries itself
LONGEST_TTL = 1e12  # s


class Open:
    """One operation that has no answer yet."""

    __slots__ = (
        "answer", "attempts", "confirmed", "id", "number", "operation", "result", "sent",
        "sent_at", "shard", "started", "wake_at", "way",
    )  # fmt: skip

    def __init__(
        self, number: int, operation: Operation, answer: Answer, shard: int, now: float
    ) -> None:
        self.id = self.number = number  # `id` is of the last try
        self.operation = operation
        self.answer = answer
        self.shard = shard
        self.started = self.sent_at = now
        self.attempts = 0
        self.wake_at = 0.0  # when to try again; 0: it waits for an answer, or for its way
        self.way: Way | None = None
        self.sent = False  # a leader may have done it
        self.result: Result | None = None
        self.confirmed: dict[NodeId, None] = {}

    @property
    def reads(self) -> bool:
        """Whether it may be tried as often as one likes."""
        return self.operation.kind in READS


class Coordinator:
    """Keeps each operation until it has exactly one outcome."""

    def __init__(
        self, core: Core, acceptor: Acceptor, leader: Leader, routes: Routes, binder: Binder
    ) -> None:
        self._core = core
        self._binder = binder
        self._acceptor = acceptor
        self._leader = leader
        self._routes = routes
        self._open: dict[int, Open] = {}
        self._waiting: dict[int, dict[int, Open]] = {}  # by shard, for its way
        self._requests: dict[tuple[NodeId, int], list[Op]] = {}  # by peer and table
        self._confirms: dict[NodeId, list[tuple[int, int, int]]] = {}
        self._ended: list[tuple[Answer, Outcome]] = []

    def __len__(self) -> int:
        return len(self._open)

    # -- beginning --------------------------------------------------------------------------------

    def submit(self, operation: Operation, answer: Answer, now: float) -> None:
        """Begin an operation; `answer` is called at the end of a tick."""
        core = self._core
        self._check(operation)
        core.counts.submitted += 1
        shard = shard_of(operation.key, core.bits)
        number = core.next_id()
        self._open[number] = one = Open(number, operation, answer, shard, now)
        core.tracer.began(number, operation.kind)
        core.effects.at_tick_end(self.flush)
        self._begin(one, now)

    def _check(self, operation: Operation) -> None:
        core, settings = self._core, self._core.settings
        if len(operation.key) > settings.key_bytes:
            raise LocalProtocolError(
                f"a key of {len(operation.key)} bytes: dht.key_bytes is {settings.key_bytes}"
            )
        size = max(len(operation.value), len(operation.expected))
        if size > settings.value_bytes:
            raise LocalProtocolError(
                f"a value of {size} bytes: dht.value_bytes is {settings.value_bytes}"
            )
        if not 0 <= operation.ttl <= LONGEST_TTL:
            raise LocalProtocolError(f"ttl = {operation.ttl}: give seconds, or 0 for ever")
        if len(self._open) >= settings.max_open:
            raise LocalProtocolError(f"{len(self._open)} operations are open: dht.max_open")
        what = READ if operation.kind in READS else WRITE
        if core.may is not None and not core.may(core.me, what):
            raise LocalProtocolError(f"the certificate of {core.me} does not allow to {what}")

    def _begin(self, one: Open, now: float) -> None:
        """Send it, or wait until it is known to whom."""
        if one.operation.stale_ok and self._read_here(one, now):
            return
        if self._core.table is None:
            self._ask_through(one, now)
            return
        one.shard = shard_of(one.operation.key, self._core.bits)  # as the table has them
        way = self._routes.find(one.shard, now)
        if way is None:
            one.way = None
            one.wake_at = 0.0
            self._waiting.setdefault(one.shard, {})[one.id] = one
            self._routes.ask(one.shard, now)
        else:
            self._send(one, way, now)

    def _ask_through(self, one: Open, now: float) -> None:
        """No table is known here: ask through a server, if one is known."""
        binder = self._binder
        if binder.servers:
            server = binder.servers[0]
            self._send(one, Way(Group(0, (server,)), 0, server.name), now)
        else:
            one.way, one.wake_at = None, now + self._core.settings.retry
            binder.ask(now)

    def _read_here(self, one: Open, now: float) -> bool:
        shard = self._core.shards.get(one.shard)
        if shard is None or not shard.seated:
            return False
        record = shard.shelf.records.get(one.operation.key)
        fresh = record is not None and not (record.expires and record.expires <= now)
        value = record.value if record is not None and fresh else None
        self._end(one, Outcome(Status.DONE, value is not None, self._shown(one, value)))
        return True

    @staticmethod
    def _shown(one: Open, value: bytes | None) -> bytes | None:
        return value if one.operation.kind is Kind.GET else None

    def on_way(self, shard: int, now: float) -> None:
        """Somebody said who leads a shard: go on with what waited for it."""
        for one in list(self._waiting.pop(shard, {}).values()):
            if one.id in self._open:
                self._begin(one, now)

    # -- sending ----------------------------------------------------------------------------------

    def _send(self, one: Open, way: Way, now: float) -> None:
        core = self._core
        one.attempts += 1
        core.counts.retried += one.attempts > 1
        one.way, one.sent_at, one.wake_at = way, now, 0.0
        if one.attempts > 1 and (one.reads or not one.sent):
            # A new number for each try: what was said to an earlier one does not count. Only a
            # write that nobody answered keeps its own, so that it is done once.
            del self._open[one.id]
            one.id = core.next_id()
            self._open[one.id] = one
        if one.reads:
            one.result = None
            one.confirmed = {}
            if way.ballot and not self._ask_others(one, way, now):
                self._routes.drop(one.shard, way)
                one.wake_at = now + core.settings.retry / 4
                return
        elif one.sent and way.leader == core.me:
            return  # it waits here, in this node's own queue
        else:
            one.sent = True
        kind, key, value, expected, ttl, _ = one.operation
        number = one.shard if way.ballot else 0  # only servers know how many shards there are
        op = Op(one.id, number, way.ballot, kind, key, value, expected, millis(ttl))
        core.effects.at_tick_end(self.flush)
        if way.leader != core.me:
            table = core.number if way.ballot else self._binder.table
            self._requests.setdefault((way.leader, table), []).append(op)
            return
        shard = core.shards.get(one.shard)
        if shard is None or shard.reign is None or shard.reign.ballot != way.ballot:
            self.on_result(Result(one.id, BUSY))  # it may yet win
        else:
            self._leader.execute(Asker(core.me, core.session, one.id), op, shard, now)

    def _ask_others(self, one: Open, way: Way, now: float) -> bool:
        """Ask enough members besides the leader whether they follow it still; this node, if it
        is one of them, knows itself. False: it knows that they do not."""
        core = self._core
        me, leader, members = core.me, way.leader, way.group.members
        needed = len(members) // 2
        others = [member for member in members if member.name not in (leader, me)]
        if me != leader and len(others) < len(members) - 1:
            if not self._acceptor.confirms(one.shard, way.ballot):
                return False
            one.confirmed[me] = None
            needed -= 1
        if one.attempts > 1:
            needed = len(members)  # somebody does not answer: ask everybody
        elif needed < 1:
            return True
        question = (one.id, one.shard, way.ballot)
        if needed < len(others):
            others.sort(key=lambda member: not core.reachable(member, now))
        for member in others[: max(needed, 0)]:
            self._confirms.setdefault(member.name, []).append(question)
        return True

    def _gone(self, one: Open, now: float) -> bool:
        """Whether who leads is held to be dead: a node of another zone after a long silence."""
        core = self._core
        assert one.way is not None
        member = one.way.group.members[one.way.group.place(one.way.leader)]
        if member.zone == core.zone:
            return not core.reachable(member, now)
        last = max(core.heard.get(member.name, 0.0), one.started)
        return now - last > core.settings.silence

    def flush(self, now: float) -> None:
        """Send what this tick brought together, and tell the application what ended."""
        core = self._core
        requests, self._requests = self._requests, {}
        for (name, table), ops in requests.items():
            portion: list[Op] = []
            size = 0
            for op in ops:
                more = len(op.key) + len(op.value) + len(op.expected)
                if portion and (size + more > BATCH_BYTES or len(portion) >= BATCH_ITEMS):
                    self._request(name, table, portion)
                    portion, size = [], 0
                portion.append(op)
                size += more
            self._request(name, table, portion)
        confirms, self._confirms = self._confirms, {}
        for name, asked in confirms.items():
            for start in range(0, len(asked), BATCH_ITEMS):
                part = tuple(asked[start : start + BATCH_ITEMS])
                core.send(name, Confirm(core.number, part))
        ended, self._ended = self._ended, []
        for answer, outcome in ended:
            answer(outcome)

    def _request(self, name: NodeId, table: int, ops: list[Op]) -> None:
        core = self._core
        floor = next(iter(self._open), core.next_id())
        core.send(name, Request(table, core.session, floor, tuple(ops)))

    # -- answers ----------------------------------------------------------------------------------

    def on_reply(self, src: NodeId, message: Reply, now: float) -> None:
        """Results from a leader."""
        self._core.heard[src] = now
        for result in message.results:
            one = self._open.get(result.id)
            if one is None or one.way is None or one.way.leader != src:
                self._core.counts.late += 1
            else:
                self._take(one, result, now)

    def on_result(self, result: Result) -> None:
        """A result of an operation that this node led itself."""
        one = self._open.get(result.id)
        if one is not None:
            self._take(one, result, one.sent_at)

    def _take(self, one: Open, result: Result, now: float) -> None:
        if result.status == Status.DONE:
            one.result = result
            self._complete(one)
        elif result.status == Status.REFUSED:
            self._end(one, Outcome(Status.REFUSED, reason=result.reason))
        elif result.status == Status.UNKNOWN and not one.reads:
            self._end(one, Outcome(Status.UNKNOWN, reason=result.reason))
        else:
            one.sent = False
            if result.status == MOVED and one.way is not None:
                self._routes.end(one.shard, one.way)
            one.wake_at = now + self._core.settings.retry * min(one.attempts, 8) / 8

    def on_confirmed(self, src: NodeId, message: Confirmed, now: float) -> None:
        """A member follows the leader of a get still, or does not."""
        self._core.heard[src] = now
        for number in message.yes:
            one = self._open.get(number)
            if one is not None and one.way is not None and one.way.group.place(src) >= 0:
                one.confirmed[src] = None
                if one.result is not None:
                    self._complete(one)
        for number in message.no:
            one = self._open.get(number)
            if one is not None and one.way is not None and one.wake_at == 0.0:
                self._routes.drop(one.shard, one.way)
                one.wake_at = now + self._core.settings.retry * min(one.attempts, 8) / 8

    def _complete(self, one: Open) -> None:
        result = one.result
        assert result is not None
        assert one.way is not None
        way = one.way
        if way.ballot and one.reads:
            # The leader has not been asked: its answer is its word, and counts once.
            agreed = 1 + len(one.confirmed) - (way.leader in one.confirmed)
            if agreed < way.group.majority:
                return
        self._end(one, Outcome(Status.DONE, result.applied, result.value))

    def _end(self, one: Open, outcome: Outcome) -> None:
        core = self._core
        del self._open[one.id]
        waiting = self._waiting.get(one.shard)
        if waiting is not None:
            waiting.pop(one.id, None)
        if outcome.status is Status.DONE:
            core.counts.done += 1
        elif outcome.status is Status.REFUSED:
            core.counts.refused += 1
        else:
            core.counts.unknown += 1
        peer = "" if one.way is None else one.way.leader
        took = core.post.now - one.started
        core.tracer.done(one.number, one.operation.kind, outcome, peer, took)
        self._ended.append((one.answer, outcome))
        core.effects.at_tick_end(self.flush)

    # -- what is due ------------------------------------------------------------------------------

    def sweep(self, now: float) -> None:
        """Try again what nobody answered, and end what took too long."""
        settings = self._core.settings
        for one in list(self._open.values()):
            if now - one.started > settings.operation_timeout:
                self._give_up(one)
            elif one.wake_at:
                if one.wake_at <= now:
                    self._begin(one, now)
            elif one.way is None:
                self._routes.ask(one.shard, now)
            elif now - one.sent_at >= settings.retry * (1 if one.way.ballot else PROXY_PATIENCE):
                if self._gone(one, now) or (one.reads and one.attempts > 1):
                    self._leaderless(one, now)
                else:
                    self._send(one, one.way, now)

    def _leaderless(self, one: Open, now: float) -> None:
        assert one.way is not None
        if one.way.ballot:
            self._routes.drop(one.shard, one.way)
        else:
            self._binder.drop(one.way.leader)
        if one.reads or not one.sent:
            self._begin(one, now)
        else:
            reason = f"its leader {one.way.leader} failed"
            self._end(one, Outcome(Status.UNKNOWN, reason=reason))

    def _give_up(self, one: Open) -> None:
        if one.sent:
            outcome = Outcome(Status.UNKNOWN, reason="no answer in time")
        elif self._core.table is None:
            outcome = Outcome(Status.REFUSED, reason="no table is known: is there a server?")
        else:
            reason = f"no majority of shard {one.shard} answered in time"
            outcome = Outcome(Status.REFUSED, reason=reason)
        self._end(one, outcome)

    def begin_again(self, now: float) -> None:
        """Another table: what may have been done in the old one stays unknown."""
        self._waiting.clear()
        for one in list(self._open.values()):
            if one.sent and not one.reads:
                self._end(one, Outcome(Status.UNKNOWN, reason="the table was given up"))
            else:
                one.way, one.wake_at = None, now + self._core.settings.retry

    def stop(self) -> None:
        """Leave nobody waiting."""
        for one in list(self._open.values()):
            self._give_up(one)
        for answer, outcome in self._ended:
            answer(outcome)
        self._ended = []
