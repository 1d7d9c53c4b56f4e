"""The state machine of the table: its parts, and which input goes to which."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from random import Random
from typing import Any, ClassVar

from overlay.errors import InvariantViolation, LocalProtocolError
from overlay.ids import NodeId
from overlay.protocol import (
    ContactLearned,
    Effects,
    Event,
    EventHandler,
    Handler,
    Message,
    OverlayProtocol,
)
from protocols.dht.accepting import Acceptor
from protocols.dht.changing import Changer
from protocols.dht.comparing import Comparer
from protocols.dht.config import DhtSettings
from protocols.dht.coordinating import Coordinator
from protocols.dht.copying import Copier
from protocols.dht.core import Base, Core
from protocols.dht.counts import DhtCounts
from protocols.dht.electing import Elector
from protocols.dht.events import (
    MajorityLost,
    RebalancingProgressed,
    StorageZoneAdded,
    StorageZoneRemoved,
    TableJoined,
)
from protocols.dht.founding import FOUND, Founder
from protocols.dht.groups import Group
from protocols.dht.interface import DHT, Answer, May, Operation, Whereabouts
from protocols.dht.leading import Leader
from protocols.dht.messages import (
    MESSAGES,
    Accept,
    Accepted,
    Activate,
    Activated,
    Beat,
    Confirm,
    Confirmed,
    Copy,
    Decide,
    Decided,
    Differs,
    Handover,
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
)
from protocols.dht.placement import shard_of, zones_of
from protocols.dht.proposing import Proposer
from protocols.dht.routes import Routes
from protocols.dht.serving import Desk
from protocols.dht.shard import Shard
from protocols.dht.shelf import Record, expiry
from protocols.dht.vault import read_kept
from protocols.membership.events import AttributesChanged, MemberFailed, MemberJoined, MemberLeft
from protocols.membership.interface import ROLES
from protocols.zones.interface import ZoneDirectory

REVIEW, PROPOSE, SWEEP, BEAT = "review", "propose", "sweep", "beat"


def _nowhere() -> tuple[str, ...]:
    return ()


class Dht(OverlayProtocol):
    """One per node, in the node's own scope; implements `HashTable`.

    `base` is the membership of this node's zone, `zones` the directory of zones, `may` tells what
    a name's certificate allows, `here` where peers of other zones reach this node.
    """

    name: ClassVar[str] = "dht"
    messages: ClassVar[tuple[type[Message], ...]] = MESSAGES
    emits: ClassVar[tuple[type[Event], ...]] = (
        TableJoined,
        StorageZoneAdded,
        StorageZoneRemoved,
        RebalancingProgressed,
        MajorityLost,
        ContactLearned,
    )

    config: DhtSettings

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: DhtSettings,
        *,
        base: Base,
        zones: ZoneDirectory | None = None,
        may: May | None = None,
        here: Callable[[], tuple[str, ...]] = _nowhere,
    ) -> None:
        super().__init__(me, effects, rng, config)
        self._core = core = Core(me, effects, rng, config, base, zones, may, here)
        self._acceptor = Acceptor(core, self._depose, self._on_adopted)
        self._desk = Desk(core, lambda result: self._coordinator.on_result(result))
        self._leader = Leader(
            core, self._acceptor, self._desk.tell, self._on_committed, self._on_drained
        )
        self._elector = Elector(core, self._acceptor, self._leader, self._on_won)
        self._desk.leader, self._desk.elector = self._leader, self._elector
        self._changer = Changer(core, self._acceptor, self._leader)
        self._copier = self._changer.copier = Copier(core, self._acceptor, self._changer.on_same)
        self._comparer = Comparer(core, self._copier, self._elector)
        self._proposer = Proposer(core, self._changer)
        self._founder = Founder(core, self._on_table)
        self._routes = Routes(core, lambda shard, now: self._coordinator.on_way(shard, now))
        self._coordinator = Coordinator(core, self._acceptor, self._leader, self._routes)
        self._handlers: dict[type[Message], Handler] = {
            kind: self._attended(handler)
            for kind, handler in (
                (Request, self._desk.on_request),
                (Reply, self._coordinator.on_reply),
                (Confirm, self._acceptor.on_confirm),
                (Confirmed, self._coordinator.on_confirmed),
                (Prepare, self._acceptor.on_prepare),
                (Promise, self._elector.on_promise),
                (Pull, self._elector.on_pull),
                (Pulled, self._elector.on_pulled),
                (Accept, self._acceptor.on_accept),
                (Accepted, self._leader.on_accepted),
                (Offer, self._copier.on_offer),
                (Want, self._copier.on_want),
                (Copy, self._copier.on_copy),
                (Decide, self._acceptor.on_decide),
                (Decided, self._changer.on_decided),
                (Activate, self._acceptor.on_activate),
                (Activated, self._changer.on_activated),
                (Handover, self._elector.on_handover),
                (RouteRequest, self._routes.on_request),
                (Route, self._routes.on_route),
                (Beat, self._comparer.on_beat),
                (Differs, self._comparer.on_differs),
                (TableRequest, self._founder.on_table_request),
                (TableKnown, self._founder.on_table_known),
            )
        }

    # -- what siblings and the application see ----------------------------------------------------

    @property
    def counts(self) -> DhtCounts:
        """What happened since the start."""
        return self._core.counts

    @property
    def table(self) -> int:
        """The number of the table; 0 while none is known."""
        return self._core.number

    @property
    def open_operations(self) -> int:
        """Operations of this node without an answer."""
        return len(self._coordinator)

    def shards(self) -> Mapping[int, Shard]:
        """The shards that this node has something to do with; only to look at."""
        return self._core.shards

    def submit(self, operation: Operation, answer: Answer, now: float) -> None:
        """Begin an operation; see `HashTable`."""
        self._running(now)
        self._coordinator.submit(operation, answer, now)
        if self._core.table is None:
            self._founder.begin(now)
        self._sweep_soon(now)

    def where(self, key: bytes) -> Whereabouts:
        """What this node knows of a key without asking anybody."""
        core = self._core
        number = shard_of(key, core.bits)
        zones = zones_of(number, core.bits, core.tier, core.settings.slice_points)
        zone = zones[0] if zones else core.zone
        way = self._routes.find(number, 0.0)
        if way is None:
            return Whereabouts(number, zone, None)
        return Whereabouts(number, zone, way.leader, way.group.names(), way.group.version)

    def retire(self, now: float) -> None:
        """Offer storage no more: others take over this node's shards while it still runs."""
        self._running(now)
        self._withdraw_offer(now)

    def _running(self, now: float) -> None:
        if self._core.stopped:
            raise LocalProtocolError(f"{self.me} does not run: start it first")
        self._core.timers.notice(now)

    # -- life -------------------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Begin, as the member that an earlier life was if its promises were kept."""
        core = self._core
        core.stopped = False
        core.timers.notice(now)
        found = read_kept(kept) if core.vault.durable else read_kept({})
        core.life = found.life or 1 + self.rng.getrandbits(62)
        if not found.life:
            core.vault.put_self(core.life)
        if found.table is not None:
            self._founder.take(found.table)
            for number, one in found.shards.items():
                shard = core.shard(number, now)
                shard.group, shard.promised = one.group, one.promised
                shard.next_ballot, shard.next_group = one.next_ballot, one.next_group
                shard.seated = core.is_me(one.group)
            for number, key, record in found.records:
                shelf = core.shard(number, now).shelf
                expires = expiry(record.left, now)
                shelf.put(key, record.value, record.ballot, record.sequence, expires)
        core.vault.after(self._offer, now)
        core.look()
        if core.table is not None:
            self._on_table(now)
        elif core.settings.serve:
            self._founder.begin(now)

    def _offer(self, now: float) -> None:
        """Tell the zone that this node keeps keys, and which life of it does."""
        core = self._core
        if not core.settings.serve or core.stopped:
            return
        view = core.base.view
        roles = view.roles(self.me)
        if DHT not in roles:
            core.base.set_attribute(ROLES, ",".join((*roles, DHT)), now)
        core.base.set_attribute(DHT, f"{core.life:x}", now)

    def _withdraw_offer(self, now: float) -> None:
        base = self._core.base
        if DHT in base.view.attributes(self.me):
            base.remove_attribute(DHT, now)
            roles = [role for role in base.view.roles(self.me) if role != DHT]
            base.set_attribute(ROLES, ",".join(roles), now)

    def on_stop(self, now: float) -> None:
        """Stop; who waits is told. The membership says goodbye, so others take over at once."""
        self._coordinator.stop()
        self._core.stopped = True
        self._core.timers.cancel_all()

    def on_stored(self, token: Hashable, now: float) -> None:
        """Go on with what waited for the disk."""
        assert isinstance(token, int)
        self._core.timers.notice(now)
        self._core.vault.on_stored(token)

    # -- inputs -----------------------------------------------------------------------------------

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """One handler for each message of the table in the package's docstring."""
        return self._handlers

    def _attended(self, handler: Handler) -> Handler:
        core = self._core

        def attend(src: NodeId, message: Any, now: float) -> None:
            if not core.stopped:
                core.timers.notice(now)
                handler(src, message, now)

        return attend

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """Changes of the view."""
        return {
            MemberJoined: self._on_view,
            MemberFailed: self._on_view,
            MemberLeft: self._on_view,
            AttributesChanged: self._on_attributes,
        }

    def _on_view(self, event: MemberJoined | MemberFailed | MemberLeft, now: float) -> None:
        core = self._core
        if core.stopped or event.zone != core.zone:
            return
        core.timers.notice(now)
        if isinstance(event, (MemberFailed, MemberLeft)):
            self._routes.invalidate(event.member)
        self._review_soon(now)

    def _on_attributes(self, event: AttributesChanged, now: float) -> None:
        if not self._core.stopped and event.zone == self._core.zone and DHT in event.keys:
            self._core.timers.notice(now)
            self._review_soon(now)

    # -- between the parts ------------------------------------------------------------------------

    def _depose(self, shard: Shard, now: float) -> None:
        self._elector.withdraw(shard)
        self._changer.forget(shard)
        self._leader.end(shard, now)

    def _on_adopted(self, shard: Shard, now: float) -> None:
        self._review_soon(now)

    def _on_won(self, shard: Shard, following: Group | None, now: float) -> None:
        if following is not None:
            self._changer.recover(shard, following, now)
        self._coordinator.on_way(shard.id, now)
        self._propose_soon(now)
        self._sweep_soon(now)

    def _on_drained(self, shard: Shard, now: float) -> None:
        self._changer.on_drained(shard, now)

    def _on_committed(self, shard: Shard, key: bytes, record: Record) -> None:
        pass

    def _on_table(self, now: float) -> None:
        """The table is known: sit down in the groups of its founding."""
        core = self._core
        founding = core.founding
        assert founding is not None
        if any(one.name == self.me and one.life == core.life for one in founding.table.founders):
            for number in range(1 << founding.table.bits):
                if number not in core.shards and core.is_me(founding.group(number)):
                    core.shard(number, now)
        if core.settings.serve and BEAT not in core.timers:
            core.timers.set(BEAT, now + core.settings.compare * (0.5 + 0.5 * self.rng.random()))
        self._review_soon(now)

    # -- what is due ------------------------------------------------------------------------------

    def _review_soon(self, now: float) -> None:
        self._core.timers.hasten(REVIEW, now)

    def _propose_soon(self, now: float) -> None:
        if PROPOSE not in self._core.timers:
            self._core.timers.set(PROPOSE, now + self._core.settings.settle)

    def _sweep_soon(self, now: float) -> None:
        if SWEEP not in self._core.timers:
            self._core.timers.set(SWEEP, now + self._core.settings.retry / 2)

    def on_timer(self, key: Hashable, now: float) -> None:
        """Something is due."""
        core = self._core
        if core.stopped:
            return
        core.timers.notice(now)
        if not core.timers.rings(key):
            return
        if key == REVIEW:
            self._review(now)
        elif key == PROPOSE:
            self._propose(now)
        elif key == SWEEP:
            self._sweep(now)
        elif key == BEAT:
            core.timers.set(BEAT, now + core.settings.compare)
            stored = sum(shard.shelf.bytes for shard in core.shards.values())
            self._leader.stored = stored
            self._comparer.beat(now, full=stored > core.settings.node_bytes)
            self._review(now)
        elif key == FOUND:
            core.look()
            if core.settings.serve or len(self._coordinator):
                self._founder.on_alarm(now)

    def _review(self, now: float) -> None:
        """Look at the view again: who serves, who leads, and what should be changed."""
        core = self._core
        if core.look():
            # Views differ for a moment after each change: what they propose waits until they rest.
            core.timers.set(PROPOSE, now + core.settings.settle)
        if core.table is not None:
            self._elector.review(now)
            self._propose_soon(now)
            self._sweep_soon(now)

    def _propose(self, now: float) -> None:
        if self._core.table is not None:
            self._proposer.review(now)
            if self._proposer.left:
                self._propose_soon(now)
            self._sweep_soon(now)

    def _sweep(self, now: float) -> None:
        self._coordinator.sweep(now)
        self._leader.resend(now)
        self._elector.resend(now)
        self._changer.resend(now)
        if len(self._coordinator) or len(self._leader) or len(self._elector) or len(self._changer):
            self._sweep_soon(now)

    # -- invariants -------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """See the package's docstring."""
        core, counts = self._core, self._core.counts
        for shard in core.shards.values():
            reign = shard.reign
            if reign is not None and reign.ballot != shard.promised:
                raise InvariantViolation(f"{self.me} leads shard {shard.id}, and promised more")
            if (reign is not None or shard.bid is not None) and not shard.seated:
                raise InvariantViolation(f"{self.me} leads shard {shard.id} and is no member")
            if reign is not None and shard.sealed and reign.inflight:
                raise InvariantViolation(f"{self.me} writes to shard {shard.id} after its end")
        ended = counts.done + counts.refused + counts.unknown
        if counts.submitted != ended + len(self._coordinator):
            raise InvariantViolation(f"{self.me}: an operation has no end or two: {counts}")
