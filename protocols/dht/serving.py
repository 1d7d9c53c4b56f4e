"""Requests of other nodes: done once, whatever the network copies, and answered once a tick."""

from __future__ import annotations

from collections.abc import Callable

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from protocols.dht.core import BATCH_BYTES, BATCH_ITEMS, Core
from protocols.dht.electing import Elector
from protocols.dht.interface import READ, READS, WRITE, Answer, Operation, Outcome, Status
from protocols.dht.leading import Asker, Leader
from protocols.dht.messages import BUSY, MOVED, Op, Reply, Request, Result, Route

MOST_ASKERS = 4096  # whose operations are remembered


class Seen:
    """The operations of one process of one node: what was done, and what is over."""

    __slots__ = ("floor", "results")

    def __init__(self) -> None:
        self.floor = 0
        self.results: dict[int, Result | None] = {}  # None: it is under way

    def raise_to(self, floor: int) -> None:
        """Forget what the asker has finished with."""
        if floor > self.floor:
            self.floor = floor
            self.results = {at: one for at, one in self.results.items() if at >= floor}


class Desk:
    """Where requests arrive; `local` takes the results of this node's own operations."""

    def __init__(self, core: Core, local: Callable[[Result], None]) -> None:
        self._core = core
        self._local = local
        self.leader: Leader  # set once: they call each other
        self.elector: Elector
        self.submit: Callable[[Operation, Answer, float], None]
        self._seen: dict[tuple[NodeId, int], Seen] = {}
        self._replies: dict[NodeId, list[Result]] = {}

    # -- requests ---------------------------------------------------------------------------------

    def on_request(self, src: NodeId, message: Request, now: float) -> None:
        """Do what this node leads, and tell of the rest who does."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        seen = self._seen_of(src, message.session)
        seen.raise_to(message.floor)
        may = core.may
        reads = may is None or may(src, READ)
        writes = may is None or may(src, WRITE)
        for op in message.ops:
            asker = Asker(src, message.session, op.id)
            if not (reads if op.kind in READS else writes):
                core.counts.forbidden += 1
                reason = f"the certificate of {src} does not allow it"
                self._answer(src, Result(op.id, Status.REFUSED, reason=reason))
            elif op.kind in READS:
                self._do(asker, op, now)
            elif op.id < seen.floor:
                core.counts.repeated += 1
            elif op.id in seen.results:
                core.counts.repeated += 1
                result = seen.results[op.id]
                if result is not None:
                    self._answer(src, result)
            else:
                self._do(asker, op, now, seen)

    def _seen_of(self, src: NodeId, session: int) -> Seen:
        seen = self._seen.get((src, session))
        if seen is None:
            if len(self._seen) >= MOST_ASKERS:
                del self._seen[next(iter(self._seen))]
            seen = self._seen[src, session] = Seen()
        return seen

    def _do(self, asker: Asker, op: Op, now: float, seen: Seen | None = None) -> None:
        core = self._core
        if not op.ballot:
            self._proxy(asker, op, now, seen)
            return
        shard = core.shards.get(op.shard)
        reign = None if shard is None else shard.reign
        if shard is not None and reign is not None and reign.ballot == op.ballot:
            if seen is not None:
                seen.results[op.id] = None
            self.leader.execute(asker, op, shard, now)
        elif shard is not None and shard.bid is not None and shard.bid.ballot == op.ballot:
            result = Result(op.id, BUSY)
            if seen is not None:
                seen.results[op.id] = result
            self._answer(asker.name, result)
        elif seen is None or (op.shard, op.ballot) in self.elector.ballots:
            self._answer(asker.name, Result(op.id, MOVED))
            group = core.known_group(op.shard)
            if group is not None:
                ballot = 0 if shard is None or shard.leader is None else shard.promised
                core.send(asker.name, Route(core.number, op.shard, group, ballot))
        else:
            # An earlier process of this node may have done it, and nobody here remembers.
            reason = "the leader restarted"
            self._answer(asker.name, Result(op.id, Status.UNKNOWN, reason=reason))

    def _proxy(self, asker: Asker, op: Op, now: float, seen: Seen | None) -> None:
        """Ask on behalf of a node that keeps no keys: this one is its access point."""
        if seen is not None:
            seen.results[op.id] = None
        self._core.counts.proxied += 1

        def answer(outcome: Outcome) -> None:
            status, applied, value, reason = outcome
            self.tell(asker, Result(op.id, status, applied, value, reason[:256]))

        operation = Operation(op.kind, op.key, op.value, op.expected, op.ttl / 1000.0)
        try:
            self.submit(operation, answer, now)
        except LocalProtocolError as error:
            answer(Outcome(Status.REFUSED, reason=str(error)))

    # -- results ----------------------------------------------------------------------------------

    def tell(self, asker: Asker, result: Result) -> None:
        """An operation ended, or did not begin."""
        if asker.name == self._core.me:
            self._local(result)
            return
        seen = self._seen.get((asker.name, asker.session))
        if seen is not None and result.id in seen.results:
            seen.results[result.id] = result  # also that it was not done: a copy must not be
        self._answer(asker.name, result)

    def _answer(self, to: NodeId, result: Result) -> None:
        self._replies.setdefault(to, []).append(result)
        self._core.effects.at_tick_end(self.flush)

    def flush(self, now: float) -> None:
        """One message to each asker, or as few as their size allows."""
        del now
        replies, self._replies = self._replies, {}
        for name, results in replies.items():
            portion: list[Result] = []
            size = 0
            for result in results:
                more = len(result.value or b"")
                if portion and (size + more > BATCH_BYTES or len(portion) >= BATCH_ITEMS):
                    self._core.send(name, Reply(tuple(portion)))
                    portion, size = [], 0
                portion.append(result)
                size += more
            self._core.send(name, Reply(tuple(portion)))
