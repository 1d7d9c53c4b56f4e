"""The state machine of the table: its commands, its life, and which input goes to which part."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from random import Random
from typing import Any, ClassVar

from overlay.errors import InvariantViolation, LocalProtocolError, RemoteProtocolError
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
from protocols.dht.config import DhtSettings
from protocols.dht.core import REVIEW, Base, Core
from protocols.dht.counts import DhtCounts
from protocols.dht.events import (
    MajorityLost,
    RebalancingProgressed,
    StorageZoneAdded,
    StorageZoneRemoved,
    TableJoined,
)
from protocols.dht.founding import FOUND
from protocols.dht.interface import DHT, Answer, Hear, May, Operation, Whereabouts
from protocols.dht.messages import MESSAGES
from protocols.dht.parts import PROPOSE, SWEEP, Parts
from protocols.dht.placement import shard_of, zones_of
from protocols.dht.shard import Shard
from protocols.dht.shelf import expiry
from protocols.dht.vault import read_kept
from protocols.dht.watching import RENEW
from protocols.dht.zoning import TIER
from protocols.membership.events import AttributesChanged, MemberFailed, MemberJoined, MemberLeft
from protocols.membership.interface import ROLES
from protocols.routing.events import RouteArrived
from protocols.routing.interface import Router
from protocols.zones.events import (
    DelegateAppointed,
    DelegateDismissed,
    ZoneAppeared,
    ZoneChanged,
    ZoneVanished,
)
from protocols.zones.interface import MANAGEMENT, ZoneDirectory

BEAT = "beat"
ZONE_EVENTS: tuple[type[Event], ...] = (
    *(ZoneAppeared, ZoneChanged, ZoneVanished, DelegateAppointed, DelegateDismissed),
)


def _nowhere() -> tuple[str, ...]:
    return ()


class Dht(OverlayProtocol):
    """One per node, in the node's own scope; implements `HashTable`.

    `base` is the membership of this node's zone, `zones` the directory of zones, `may` tells what
    a name's certificate allows, `here` where peers of other zones reach this node; requests take
    the `router` unless links go everywhere (`direct`).
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
        router: Router | None = None,
    ) -> None:
        super().__init__(me, effects, rng, config)
        self._router = None if config.direct else router
        self._core = Core(me, effects, rng, config, base, zones, may, here, self._router)
        self._parts = Parts(self._core, self._on_table, self._leave_table)
        self._retired = False
        self._lost = 0  # shards without a majority, as it was last told

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
        return len(self._parts.coordinator)

    @property
    def seats(self) -> int:
        """The shards that this node is a replica of."""
        return sum(shard.seated for shard in self._core.shards.values())

    @property
    def moving(self) -> int:
        """Shards that this node leads and whose group is not as it should be."""
        return self._parts.proposer.left

    def shards(self) -> Mapping[int, Shard]:
        """The shards that this node has something to do with; only to look at."""
        return self._core.shards

    def storage_zones(self) -> Mapping[str, int]:
        """The zones that offer storage, with their slices, as the delegates told."""
        return dict(self._core.tier)

    def submit(self, operation: Operation, answer: Answer, now: float) -> None:
        """Begin an operation; see `HashTable`."""
        self._running(now)
        self._parts.coordinator.submit(operation, answer, now)
        if self._core.table is None:
            self._parts.founder.begin(now)
        self._parts.sweep_soon(now)

    def watch(self, key: bytes, hear: Hear, now: float) -> int:
        """Tell the key's value now, and each later one; see `HashTable`."""
        self._running(now)
        if self._core.table is None:
            self._parts.founder.begin(now)
        return self._parts.watches.watch(key, hear, now)

    def unwatch(self, watch: int, now: float) -> None:
        """End a watch."""
        self._running(now)
        self._parts.watches.unwatch(watch, now)

    def where(self, key: bytes) -> Whereabouts:
        """What this node knows of a key without asking anybody."""
        core = self._core
        number = shard_of(key, core.bits)
        zones = zones_of(number, core.bits, core.tier, core.settings.slice_points)
        zone = zones[0] if zones else core.zone
        way = self._parts.routes.find(number, 0.0)
        if way is None:
            return Whereabouts(number, zone, None)
        return Whereabouts(number, zone, way.leader, way.group.names(), way.group.version)

    @property
    def without_majority(self) -> int:
        """Shards of this node that cannot be read or written, as of the last beat."""
        return self._lost

    def accept_loss(self, now: float) -> int:
        """Go on without majorities that are gone for good, and lose what only they had: where this
        node keeps a shard and too few others can be reached. Returns how many shards that were."""
        self._running(now)
        accepted = self._parts.losses.accept(now)
        self._parts.review_soon(now)
        return accepted

    def retire(self, now: float) -> None:
        """Offer storage no more: others take over this node's shards while it still runs."""
        self._running(now)
        self._retired = True
        base = self._core.base
        if DHT in base.view.attributes(self.me):
            base.remove_attribute(DHT, now)
            roles = [role for role in base.view.roles(self.me) if role != DHT]
            base.set_attribute(ROLES, ",".join(roles), now)

    def _running(self, now: float) -> None:
        if self._core.stopped:
            raise LocalProtocolError(f"{self.me} does not run: start it first")
        self._core.notice(now)

    # -- life -------------------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Begin, as the member that an earlier life was if its promises were kept."""
        core = self._core
        core.stopped = False
        core.notice(now)
        found = read_kept(kept if core.vault.durable else {})
        core.life = found.life or 1 + self.rng.getrandbits(62)
        if not found.life:
            core.vault.put_self(core.life)
        if found.table is not None:
            self._parts.founder.take(found.table)
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
            self._parts.founder.begin(now)

    def _offer(self, now: float) -> None:
        """Tell the zone that this node keeps keys, and which life of it does."""
        core = self._core
        if not core.settings.serve or core.stopped or self._retired:
            return
        roles = core.base.view.roles(self.me)
        if DHT not in roles:
            core.base.set_attribute(ROLES, ",".join((*roles, DHT)), now)
        shown = f"{core.life:x}:{core.number:x}"
        if core.base.view.attributes(self.me).get(DHT) != shown:
            core.base.set_attribute(DHT, shown, now)

    def _on_table(self, now: float) -> None:
        """The table is known: sit down in the groups of its founding."""
        core = self._core
        founding = core.founding
        assert founding is not None
        if any(one.name == self.me and one.life == core.life for one in founding.table.founders):
            for number in range(1 << founding.table.bits):
                if number not in core.shards and core.is_me(founding.group(number)):
                    core.shard(number, now)
        core.vault.after(self._offer, now)
        self._parts.watches.renew(now)
        if core.settings.serve and BEAT not in core.timers:
            core.timers.set(BEAT, now + core.settings.compare * (0.5 + 0.5 * self.rng.random()))
        self._parts.review_soon(now)

    def _leave_table(self, now: float) -> None:
        """All of this node's shards are in an older table: begin there as somebody new."""
        core = self._core
        self._parts.reset(now)
        for shard in core.shards.values():
            core.vault.drop_shard(shard.id)
        core.shards.clear()
        core.table = core.founding = None
        core.life = 1 + self.rng.getrandbits(62)
        core.vault.put_self(core.life)
        core.vault.drop_table()
        self._offer(now)
        core.look()
        self._parts.founder.begin(now)

    def on_stop(self, now: float) -> None:
        """Stop; who waits is told. The membership says goodbye, so others take over at once."""
        self._parts.coordinator.stop()
        self._core.stopped = True
        self._core.timers.cancel_all()

    def on_stored(self, token: Hashable, now: float) -> None:
        """Go on with what waited for the disk."""
        assert isinstance(token, int)
        self._core.notice(now)
        self._core.vault.on_stored(token)

    # -- inputs -----------------------------------------------------------------------------------

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """One handler for each message of the table in the package's docstring."""
        return {kind: self._attended(one) for kind, one in self._parts.handlers().items()}

    def _attended(self, handler: Handler) -> Handler:
        core = self._core

        def attend(src: NodeId, message: Any, now: float) -> None:
            if not core.stopped:
                core.notice(now)
                handler(src, message, now)

        return attend

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """Changes of the views, and of the directory where there is one."""
        zone_events = () if self._core.zones is None else ZONE_EVENTS
        routed = () if self._router is None else (RouteArrived,)
        return {
            **dict.fromkeys(routed, self._on_routed),
            MemberJoined: self._on_view,
            MemberFailed: self._on_view,
            MemberLeft: self._on_view,
            AttributesChanged: self._on_attributes,
            **dict.fromkeys(zone_events, self._on_zones),
        }

    def _on_view(self, event: MemberJoined | MemberFailed | MemberLeft, now: float) -> None:
        core = self._core
        if core.stopped or event.zone != core.zone or self._outside:
            return
        core.notice(now)
        if isinstance(event, (MemberFailed, MemberLeft)):
            self._parts.routes.invalidate(event.member)
        self._parts.review_soon(now)

    def _on_attributes(self, event: AttributesChanged, now: float) -> None:
        core = self._core
        if core.stopped or event.zone not in (core.zone, MANAGEMENT):
            return
        if DHT in event.keys or TIER in event.keys:
            core.notice(now)
            self._parts.review_soon(now)

    def _on_routed(self, event: RouteArrived, now: float) -> None:
        core = self._core
        if not core.stopped and event.zone == core.zone:
            core.notice(now)
            core.post.on_arrived(event, self._take_routed, now)

    def _take_routed(self, src: NodeId, message: Message, now: float) -> None:
        try:
            self._parts.handlers()[type(message)](src, message, now)
        except RemoteProtocolError:
            self._core.counts.misrouted += 1

    @property
    def _outside(self) -> bool:
        """Whether the table is nothing to this node: it keeps no keys, and nobody near does."""
        core = self._core
        return not core.settings.serve and core.table is None and not core.shown

    def _on_zones(self, _event: Event, now: float) -> None:
        if not self._core.stopped and not self._outside:
            self._core.notice(now)
            self._parts.review_soon(now)

    # -- what is due ------------------------------------------------------------------------------

    def on_timer(self, key: Hashable, now: float) -> None:
        """Something is due."""
        core, parts = self._core, self._parts
        if core.stopped:
            return
        core.notice(now)
        if not core.timers.rings(key):
            return
        if key == REVIEW:
            parts.review(now)
        elif key == PROPOSE:
            parts.propose(now)
        elif key == SWEEP:
            parts.sweep(now)
        elif key == BEAT:
            self._beat(now)
        elif key == RENEW:
            parts.watches.renew(now)
        elif key == FOUND:
            core.look()
            if core.settings.serve or len(parts.coordinator) or len(parts.watches):
                parts.founder.on_alarm(now)

    def _beat(self, now: float) -> None:
        """What is done regularly: compare, forget, and look at everything again."""
        core, parts = self._core, self._parts
        core.timers.set(BEAT, now + core.settings.compare)
        core.tracer.load(core.shards)
        core.stored = sum(shard.shelf.bytes for shard in core.shards.values())
        lost = core.without_majority(now)
        if lost != self._lost:
            self._lost = lost
            self.effects.emit(MajorityLost(lost))
        parts.watches.forget_silent(now)
        parts.leader.expire(now)
        parts.comparer.beat(now)
        parts.review(now)

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
        if counts.submitted != ended + self.open_operations:
            raise InvariantViolation(f"{self.me}: an operation has no end or two: {counts}")
