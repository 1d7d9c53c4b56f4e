"""How a one-time dynamic request goes out, and its results come back (§4.2, algorithm 2).

A request follows the last hops of the advertisements that intersect it. Each broker answers from
its PubCache, and says Done when all to whom it sent the request did: a diffusing computation
(Dijkstra and Scholten), so a request ends by itself, also where brokers are linked in circles.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.predicates import Constraint, item_from_wire, matches
from overlay.protocol import Effects
from overlay.tracing import Trace
from overlay.tracing.kinds import RESOURCE_ANSWERED, RESOURCE_HANDLED
from protocols.content.interface import ContentView
from protocols.resources.config import REUSED, ResourcesSettings
from protocols.resources.counts import ResourceCounts
from protocols.resources.courier import Courier
from protocols.resources.messages import (
    MAX_HOPS,
    NO_SLIP,
    Done,
    Found,
    Gone,
    Request,
    RequestId,
    Results,
)
from protocols.resources.models import ModelType
from protocols.resources.packing import packages
from protocols.resources.pubcache import PubCache
from protocols.resources.records import Branch, Cached, Record, RequestTable, Way
from protocols.resources.similarity import Similarity


class Forwarding:
    """The requests that pass this broker, and those of its own clients."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        config: ResourcesSettings,
        counts: ResourceCounts,
        courier: Courier,
        content: ContentView,
        pubcache: PubCache,
        *,
        on_found: Callable[[Record, list[Found], float], None],
        on_end: Callable[[Record, float], None],
    ) -> None:
        self.me = me
        self.effects = effects
        self.config = config
        self.counts = counts
        self.courier = courier
        self.content = content
        self.pubcache = pubcache
        self.table = RequestTable()
        self.similarity = Similarity(self)
        self._on_found = on_found
        self._on_end = on_end

    # -- requests -----------------------------------------------------------------------------

    def ask(
        self,
        id: RequestId,
        model: ModelType,
        constraint: Constraint,
        now: float,
        *,
        fresh: bool = False,
    ) -> Record:
        """A client of this broker asks; `fresh`: what others found before will not do."""
        direct = self.config.forwarding == "direct"
        record = Record(
            id, model, constraint, self.me, now, now, now, cache={}, direct=direct, fresh=fresh
        )
        self.table.add(record)
        if self.content.is_broker:
            self._enter(record, now)
        else:
            self._ask_broker(record, now)
        return record

    def _ask_broker(self, record: Record, now: float) -> None:
        """This node is a client: its broker does the rest."""
        broker = self.content.broker
        if broker is None:
            record.failed = True
        else:
            record.branches[broker] = Branch.ADVERTISED
            self.send_request(record, broker, now)
        self.settle(record, now)

    def on_request(self, src: NodeId, msg: Request, now: float) -> None:
        """A neighbour hands a request on."""
        self.counts.handled += 1
        known = self.table.get(msg.id)
        if known is not None:
            self.counts.repeated += 1
            if msg.cover is None:
                done = Done(NO_SLIP, msg.id, msg.model, complete=True, elsewhere=True)
                self.courier.send(src, done, now)
            else:  # what is behind the sender would be missed: it must route by itself
                self.courier.send(src, Gone(NO_SLIP, msg.id, msg.model, msg.cover), now)
            self._trace_handled(src, msg, "repeated")
            return
        if len(self.table) >= self.config.max_requests or msg.hops >= MAX_HOPS:
            if msg.hops >= MAX_HOPS:
                self.counts.over_max_hops += 1
            else:
                self.counts.over_max_requests += 1
            self.courier.send(src, Done(NO_SLIP, msg.id, msg.model, complete=False), now)
            self._trace_handled(src, msg, "refused")
            return
        try:
            constraint = Constraint.from_wire(msg.constraint)
        except RemoteProtocolError:
            self.courier.send(src, Done(NO_SLIP, msg.id, msg.model, complete=False), now)
            raise
        record = Record(
            msg.id,
            msg.model,
            constraint,
            src,
            now - msg.age,
            now,
            now,
            msg.hops,
            cache={} if self.content.is_client(src) else None,
            direct=msg.direct,
            fresh=msg.fresh,
        )
        if msg.cover is not None:
            self.similarity.relay(record, msg.cover, now)
        else:
            self.table.add(record)
            self._enter(record, now)
        self._trace_handled(src, msg, record.way.value)

    def _enter(self, record: Record, now: float) -> None:
        if self.config.forwarding == "similarity" and not (record.direct or record.fresh):
            cover = self.similarity.cover_for(record, now)
            if cover is not None:
                self.similarity.share(record, cover, now)
                return
        self.route(record, now)

    def route(self, record: Record, now: float) -> None:
        """Answer from the PubCache, and send it along the advertisements that intersect it."""
        self.counts.routed += 1
        record.way = Way.ROUTED
        if self.config.forwarding == "similarity":
            self.table.enlist(record)
        own, hops = self.candidates(record)
        if own:
            self.deliver(record, own, self.me, now)
        for hop in hops:
            if hop != record.last_hop:
                record.branches[hop] = Branch.ADVERTISED
        for hop in list(record.branches):
            self.send_request(record, hop, now)
        self.settle(record, now)

    def candidates(self, record: Record) -> tuple[list[Found], dict[NodeId, None]]:
        """What the PubCache has that matches, and the neighbours behind whom there may be more."""
        self.counts.matched_advertisements += 1
        own: list[Found] = []
        hops: dict[NodeId, None] = {}
        content = self.content
        for advertised in content.advertisements(record.constraint, ModelType.DYNAMIC):
            hop = advertised.hop
            if hop in hops:
                continue
            if not content.is_client(hop):
                hops[hop] = None
                continue
            latest = self.pubcache.get(advertised.id)
            if latest is not None and matches(latest.item, record.constraint):
                own.append(latest.found(record.hops))
        return own, hops

    def send_request(
        self, record: Record, hop: NodeId, now: float, cover: RequestId | None = None
    ) -> None:
        """Hand the request on to a neighbour."""
        self.counts.requests_sent += 1
        request = Request(
            NO_SLIP,
            record.id,
            record.model,
            record.constraint.wire(),
            max(0.0, now - record.issued),
            record.hops + 1,
            cover,
            record.direct,
            record.fresh,
        )
        self.courier.send(hop, request, now)

    # -- results ------------------------------------------------------------------------------

    def on_results(self, src: NodeId, msg: Results, now: float) -> None:
        """Results of a request come from a neighbour, or straight from where they were found."""
        record = self.table.get(msg.id)
        if record is None or not (src in record.branches or (record.direct and self.hosts(record))):
            self.counts.late_results += len(msg.found)
            return
        found = list(msg.found)
        if record.direct:
            record.got += len(found)
        self.deliver(record, found, src, now)
        if record.direct:
            self.settle(record, now)

    def deliver(self, record: Record, found: list[Found], src: NodeId, now: float) -> None:
        """Bring results on their way: to whoever asked, and to all who wait for them here."""
        record.has_results = True
        if record.cache is not None:
            new = self._keep(record, record.cache, found, now)
            if new and record.last_hop == self.me:
                self._on_found(record, new, now)
            elif new:
                record.sent += len(new) if record.direct else 0
                self._send_results(record.last_hop, record, new, now)
        elif record.direct:
            record.sent += len(found)
            self._send_results(record.id.host, record, found, now)
        else:
            self._send_results(record.last_hop, record, found, now)
        for waiting in self.table.waiting_for(record):
            # Algorithm 2 as printed would return results to where they came from.
            if not waiting.done and (waiting.last_hop != src or src == self.me):
                self.share_results(waiting, found, src, now)

    def share_results(
        self, record: Record, found: Iterable[Found], src: NodeId, now: float
    ) -> None:
        """Deliver those results of its cover that match this request and are not too old."""
        oldest = self.config.expiry * REUSED + max(0.0, now - record.issued)
        fitting = []
        for one in found:
            self.counts.matched_results += 1
            if not matches(one.item, record.constraint):
                continue
            if one.age > oldest:
                self.counts.stale_results += 1
                continue
            fitting.append(one)
        if fitting:
            self.deliver(record, fitting, src, now)

    def _send_results(self, to: NodeId, record: Record, found: list[Found], now: float) -> None:
        for package in packages(found):
            self.counts.results_sent += len(package)
            self.counts.result_messages += 1
            self.courier.send(to, Results(NO_SLIP, record.id, record.model, package), now)
        if self.effects.tracing:
            self.effects.trace(
                Trace(
                    RESOURCE_ANSWERED,
                    to,
                    origin=record.id.host,
                    stream=record.id.number,
                    count=len(found),
                    hops=record.hops,
                )
            )

    def _keep(
        self, record: Record, cache: dict[str, Cached], found: list[Found], now: float
    ) -> list[Found]:
        """At the host: each resource once, as it was last, and only what matches; what is new."""
        new: list[Found] = []
        for one in found:
            before = cache.get(one.resource)
            if before is not None:
                known = before.found
                if (one.epoch, one.version) <= (known.epoch, known.version):
                    self.counts.doubled_results += 1
                    continue
            elif len(cache) >= self.config.max_results:
                self.counts.over_max_results += 1
                record.failed = True
                continue
            if not self._is_right(record, one):
                self.counts.wrong_results += 1
                continue
            cache[one.resource] = Cached(one, now)
            new.append(one)
        return new

    def _is_right(self, record: Record, found: Found) -> bool:
        try:
            return matches(item_from_wire(found.item), record.constraint)
        except RemoteProtocolError:
            return False

    # -- the end of a request -------------------------------------------------------------------

    def on_done(self, src: NodeId, msg: Done, now: float) -> None:
        """A neighbour has no more of a request."""
        record = self.table.get(msg.id)
        if record is None or record.branches.pop(src, None) is None:
            return
        if not msg.complete:
            record.failed = True
        record.elsewhere = record.elsewhere or msg.elsewhere
        record.as_of = min(record.as_of, now - msg.age)
        record.sent += msg.sent
        self.settle(record, now)

    def settle(self, record: Record, now: float) -> None:
        """Say Done once nobody owes an answer."""
        if record.done or record.branches:
            return
        hosted = self.hosts(record)
        if record.last_hop == self.me and record.direct and record.got < record.sent:
            return  # results go to the node that asked, which may be a client of this broker
        record.done = True
        if record.failed:
            self.table.bar(record)
        if record.last_hop == self.me:
            self._on_end(record, now)
        else:
            done = Done(
                NO_SLIP,
                record.id,
                record.model,
                not record.failed,
                max(0.0, now - record.as_of),
                record.elsewhere,
                record.sent,
            )
            self.courier.send(record.last_hop, done, now)
        if hosted:
            self.similarity.cover_ended(record, now)

    def give_up(self, record: Record, now: float) -> None:
        """Its client waits no longer, so that nobody knows what is missing: it is no cover."""
        record.failed = True
        self.table.bar(record)
        self.similarity.cover_ended(record, now)

    def hosts(self, record: Record) -> bool:
        """Whether the client that asked is this broker's own: it is the DHBroker."""
        return record.cache is not None

    # -- losing neighbours, and forgetting ------------------------------------------------------

    def lose(self, peer: NodeId, kept: Collection[RequestId], since: float, now: float) -> None:
        """What a neighbour owed is lost but for `kept`, and what it wanted before `since`."""
        for record in self.table:
            if self.table.get(record.id) is not record:
                continue  # it went with another one
            if record.last_hop == peer and record.arrived >= since:
                continue
            if record.last_hop == peer:
                if self.hosts(record):
                    self.give_up(record, now)
                self.table.drop(record)
                continue
            branch = None if record.id in kept else record.branches.get(peer)
            if branch is Branch.ADVERTISED:
                del record.branches[peer]
                record.failed = True
                self.counts.failed_branches += 1
                self.settle(record, now)
            elif branch is Branch.COVER:
                self.similarity.miss(record, peer, now)

    def expire(self, now: float) -> None:
        """Forget what may not be shared any more."""
        keep = self.lifetime
        while (record := self.table.oldest()) is not None and record.arrived + keep <= now:
            if not record.done and self.hosts(record):
                self.give_up(record, now)
                if record.last_hop == self.me:
                    self._on_end(record, now)
            self.table.drop(record)

    @property
    def lifetime(self) -> float:
        """How long a request is remembered: longest where its results are shared."""
        if self.config.forwarding == "similarity":
            return self.config.expiry
        return min(self.config.expiry, 2 * self.config.timeout)

    def _trace_handled(self, src: NodeId, msg: Request, detail: str) -> None:
        if self.effects.tracing:
            record = self.table.get(msg.id)
            self.effects.trace(
                Trace(
                    RESOURCE_HANDLED,
                    src,
                    origin=msg.id.host,
                    stream=msg.id.number,
                    hops=msg.hops,
                    detail=detail,
                    value=0.0 if record is None else float(len(record.branches)),
                )
            )
