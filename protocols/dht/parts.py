"""The parts of the table's machine, and what they tell each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized

from overlay.ids import NodeId
from overlay.protocol import Handler, Message
from protocols.dht.accepting import Acceptor
from protocols.dht.binding import Binder
from protocols.dht.changing import Changer
from protocols.dht.comparing import Comparer
from protocols.dht.coordinating import Coordinator
from protocols.dht.copying import Copier
from protocols.dht.core import REVIEW, Core
from protocols.dht.electing import Elector
from protocols.dht.founding import Founder
from protocols.dht.groups import Group
from protocols.dht.handing import Steward
from protocols.dht.leading import Leader
from protocols.dht.locating import Locator
from protocols.dht.losing import Losses
from protocols.dht.messages import (
    Accept,
    Accepted,
    Activate,
    Activated,
    Beat,
    Bind,
    Bound,
    Changed,
    Confirm,
    Confirmed,
    Copy,
    Decide,
    Decided,
    Differs,
    Handover,
    Locate,
    Located,
    Offer,
    Prepare,
    Promise,
    Pull,
    Pulled,
    Reply,
    Request,
    Route,
    RouteRequest,
    TableKnown,
    TableRequest,
    Want,
    Watch,
)
from protocols.dht.proposing import Proposer
from protocols.dht.routes import Routes
from protocols.dht.serving import Desk
from protocols.dht.shard import Shard
from protocols.dht.shelf import Record
from protocols.dht.uniting import Union
from protocols.dht.watching import Watches
from protocols.dht.zoning import Zoning

PROPOSE, SWEEP = "propose", "sweep"


class Parts:
    """One of each. `on_table` hears that a table is known, `leave_table` that it is given up."""

    def __init__(
        self,
        core: Core,
        on_table: Callable[[float], None],
        leave_table: Callable[[float], None],
    ) -> None:
        self.core = core
        self.acceptor = Acceptor(core, self._depose, self._on_adopted)
        self.desk = Desk(core, lambda result: self.coordinator.on_result(result))
        self.leader = Leader(
            core, self.acceptor, self.desk.tell, self._on_committed, self._on_drained
        )
        self.elector = Elector(core, self.acceptor, self.leader, self._on_won)
        self.desk.leader, self.desk.elector = self.leader, self.elector
        self.changer = Changer(core, self.acceptor, self.leader)
        self.copier = self.changer.copier = Copier(core, self.acceptor, self.changer.on_same)
        self.losses = Losses(core, self.acceptor)
        self.steward = Steward(core, self.leader)
        self.comparer = Comparer(core, self.copier, self.elector)
        self.zoning = Zoning(core)
        self.locator = Locator(core, self.propose_soon)
        self.proposer = Proposer(core, self.changer, self.locator)
        self.founder = Founder(core, on_table, self.zoning.tables)
        self.binder = Binder(core, self.zoning.tables, self._on_bound)
        self.union = Union(core, self.changer, self.binder, leave_table)
        self.routes = Routes(core, self._on_way)
        self.watches = Watches(core, self.routes)
        self.coordinator = Coordinator(core, self.acceptor, self.leader, self.routes, self.binder)
        self.desk.submit = self.coordinator.submit

    def handlers(self) -> Mapping[type[Message], Handler]:
        """One for each message of the table in the package's docstring."""
        return {
            Request: self.desk.on_request,
            Reply: self._on_reply,
            Confirm: self.acceptor.on_confirm,
            Confirmed: self.coordinator.on_confirmed,
            Prepare: self.acceptor.on_prepare,
            Promise: self.elector.on_promise,
            Pull: self.elector.on_pull,
            Pulled: self.elector.on_pulled,
            Accept: self.acceptor.on_accept,
            Accepted: self.leader.on_accepted,
            Offer: self.copier.on_offer,
            Want: self.copier.on_want,
            Copy: self.copier.on_copy,
            Decide: self.acceptor.on_decide,
            Decided: self.changer.on_decided,
            Activate: self.acceptor.on_activate,
            Activated: self.changer.on_activated,
            Handover: self.elector.on_handover,
            RouteRequest: self.routes.on_request,
            Route: self.routes.on_route,
            Beat: self.comparer.on_beat,
            Differs: self.comparer.on_differs,
            TableRequest: self.founder.on_table_request,
            TableKnown: self.founder.on_table_known,
            Bind: self.binder.on_bind,
            Bound: self.binder.on_bound,
            Locate: self.locator.on_locate,
            Located: self.locator.on_located,
            Watch: self.watches.on_watch,
            Changed: self.watches.on_changed,
        }

    def reset(self, now: float) -> None:
        """This node left the table: nobody is left waiting for what it did there."""
        for shard in self.core.shards.values():
            self._depose(shard, now)
        for part in (self.changer, self.leader, self.elector, self.steward, self.copier):
            part.reset()
        self.routes.clear()
        self.coordinator.begin_again(now)

    # -- what they tell each other ----------------------------------------------------------------

    def _depose(self, shard: Shard, now: float) -> None:
        self.elector.withdraw(shard)
        self.changer.forget(shard)
        self.steward.forget(shard)
        self.leader.end(shard, now)

    def _on_adopted(self, _shard: Shard, now: float) -> None:
        self.review_soon(now)
        settings = self.core.settings
        if self.proposer.waiting and len(self.changer.changes) <= settings.transfers // 2:
            # The next ones need not wait for views to rest: they have, when the first ones began.
            self.core.timers.hasten(PROPOSE, now + settings.retry / 4)

    def _on_won(self, shard: Shard, following: Group | None, now: float) -> None:
        if following is not None:
            self.changer.recover(shard, following, now)
        self._on_way(shard.id, now)
        self.propose_soon(now)
        self.sweep_soon(now)

    def _on_drained(self, shard: Shard, now: float) -> None:
        self.changer.on_drained(shard, now)
        self.steward.on_drained(shard, now)

    def _on_reply(self, src: NodeId, message: Reply, now: float) -> None:
        self.coordinator.on_reply(src, message, now)
        if len(self.union):
            self.union.on_reply(src, message, now)

    def _on_bound(self, now: float) -> None:
        self.sweep_soon(now)

    def _on_committed(self, shard: Shard, key: bytes, record: Record) -> None:
        self.watches.on_committed(shard, key, record)

    def _on_way(self, shard: int, now: float) -> None:
        self.coordinator.on_way(shard, now)
        self.watches.on_way(shard, now)

    # -- what is due ------------------------------------------------------------------------------

    def review_soon(self, now: float) -> None:
        """Look at the views, in a step of its own."""
        self.core.timers.hasten(REVIEW, now)

    def propose_soon(self, now: float) -> None:
        """Look at the groups, once the views have rested."""
        if PROPOSE not in self.core.timers:
            self.core.timers.set(PROPOSE, now + self.core.settings.settle)

    def sweep_soon(self, now: float) -> None:
        """Look whether somebody does not answer."""
        if SWEEP not in self.core.timers:
            self.core.timers.set(SWEEP, now + self.core.settings.retry / 2)

    def review(self, now: float) -> None:
        """Look at the views again: who serves, who leads, and what should be changed."""
        core = self.core
        moved = self.zoning.review(now)
        if moved:
            self.routes.clear()
        if core.look() or moved:
            # Views differ for a moment after each change: what they propose waits until they rest.
            self.proposer.waiting = 0
            core.timers.set(PROPOSE, now + core.settings.settle)
        if core.table is not None:
            self.elector.review(now)
            self.sweep_soon(now)
            if not self.union.review(now):
                self.steward.review(now)
                self.propose_soon(now)

    def propose(self, now: float) -> None:
        """Change groups that are not as they should be."""
        if self.core.table is not None and not self.union.older():
            self.proposer.review(now)
            if self.proposer.left:
                self.propose_soon(now)
            self.sweep_soon(now)

    def sweep(self, now: float) -> None:
        """Send again what nobody answered."""
        self.coordinator.sweep(now)
        self.leader.resend(now)
        self.elector.resend(now)
        self.changer.resend(now)
        self.steward.resend(now)
        if self.core.table is not None and self.union.older():
            self.union.review(now)
            self.sweep_soon(now)
        waiting: tuple[Sized, ...] = (
            *(self.coordinator, self.leader, self.elector, self.changer, self.steward),
        )
        if any(len(part) for part in waiting):
            self.sweep_soon(now)
