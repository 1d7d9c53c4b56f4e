"""The state machine of resource discovery: it joins the parts, and hears content-based routing."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from math import inf
from random import Random
from typing import ClassVar

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from overlay.predicates import Constraint, Item
from overlay.protocol import Effects, Event, EventHandler, Handler, Message, OverlayProtocol
from protocols.content.events import (
    AdvertisementAdded,
    AdvertisementChanged,
    AdvertisementRemoved,
    BrokerAttached,
    BrokerLost,
    ClientGone,
    Delivered,
    NeighbourDown,
)
from protocols.content.interface import ContentRouter
from protocols.resources.asking import FIND, Asking
from protocols.resources.config import ResourcesSettings
from protocols.resources.counts import ResourceCounts
from protocols.resources.courier import Courier
from protocols.resources.events import (
    FindEnded,
    Resource,
    ResourceExpired,
    ResourceFound,
    ResourceGone,
    ResourceRegistered,
)
from protocols.resources.forwarding import Forwarding
from protocols.resources.interface import RoundTrip, unknown
from protocols.resources.messages import (
    CARRIED,
    NO_SLIP,
    Carried,
    Done,
    Gone,
    Receipt,
    Request,
    RequestId,
    Results,
    Update,
)
from protocols.resources.models import ModelType
from protocols.resources.pubcache import Latest, PubCache
from protocols.resources.records import RequestTable, Way
from protocols.resources.registry import LEASE, UPDATE, Own, Registry
from protocols.resources.watching import LOOK, Watching

EXPIRE = "expire"
SWEEPS = 20  # in the lifetime of a request


class Resources(OverlayProtocol):
    """Registers resources, finds them, and hands requests and results of others on."""

    name: ClassVar[str] = "resources"
    messages: ClassVar[tuple[type[Message], ...]] = (*CARRIED, Receipt)
    emits: ClassVar[tuple[type[Event], ...]] = (
        FindEnded,
        ResourceFound,
        ResourceGone,
        ResourceExpired,
        ResourceRegistered,
    )

    config: ResourcesSettings

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: ResourcesSettings,
        *,
        content: ContentRouter,
        round_trip: RoundTrip = unknown,
    ) -> None:
        super().__init__(me, effects, rng, config)
        self.counts = counts = ResourceCounts()
        self._content = content
        self._pubcache = PubCache()
        self._courier = Courier(effects, rng, config, counts, self._on_lost)
        self._asking = asking = Asking(me, effects, rng, config, counts, content, round_trip)
        self._forwarding = asking.forwarding = Forwarding(
            me,
            effects,
            config,
            counts,
            self._courier,
            content,
            self._pubcache,
            on_found=asking.on_found,
            on_end=asking.on_end,
        )
        self._registry = Registry(
            me, effects, config, counts, content, self._pubcache, self._on_latest
        )
        self._watching = Watching(me, effects, config, counts, content, asking, round_trip)
        self._carried: dict[type[Carried], Handler] = {
            Request: self._forwarding.on_request,
            Results: self._forwarding.on_results,
            Done: self._forwarding.on_done,
            Gone: self._forwarding.similarity.on_gone,
            Update: self._on_update,
        }

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """One handler for each message of the table in the package's docstring."""
        carried: dict[type[Message], Handler] = dict.fromkeys(CARRIED, self._on_carried)
        return carried | {Receipt: self._courier.on_receipt}

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """What content-based routing tells."""
        return {
            NeighbourDown: self._on_neighbour_down,
            ClientGone: self._on_client_gone,
            BrokerAttached: self._on_broker_attached,
            BrokerLost: self._on_broker_lost,
            AdvertisementAdded: self._on_advertised,
            AdvertisementChanged: self._on_advertised,
            AdvertisementRemoved: self._on_removed,
            Delivered: self._watching.on_delivered,
        }

    # -- commands of the application ----------------------------------------------------------

    def register(
        self,
        name: str,
        description: Constraint,
        model: ModelType,
        item: Item | None,
        lease: float,
        now: float,
    ) -> str:
        """Make a resource known, or change it; a dynamic one is found once it has values.

        `lease` seconds after the last update it is registered no more; 0: never.
        """
        return self._registry.register(name, description, model, item, lease, now)

    def update(self, name: str, changes: Item, now: float) -> None:
        """Change values of a dynamic resource; others stay as they are."""
        self._registry.update(name, changes, now)

    def unregister(self, name: str, now: float) -> None:
        """Nobody finds it any more."""
        self._registry.unregister(name, now)

    @property
    def own(self) -> tuple[Own, ...]:
        """The resources of this node."""
        return self._registry.own

    def find_static(
        self, constraint: Constraint, limit: int, nearest: bool, now: float
    ) -> tuple[Resource, ...]:
        """Static resources that match, from this broker's own table, at once."""
        return self._asking.find_static(constraint, limit, nearest)

    def find(
        self,
        constraint: Constraint,
        limit: int,
        nearest: bool,
        timeout: float | None,
        now: float,
        *,
        fresh: bool = False,
    ) -> int:
        """Find dynamic resources; FindEnded comes exactly once, with the number returned.

        `fresh`: no results of others that are up to `expiry` old.
        """
        return self._asking.find(constraint, limit, nearest, timeout, now, fresh=fresh)

    def watch(self, constraint: Constraint, model: ModelType, now: float) -> int:
        """Find what matches now and later; ResourceFound and ResourceGone have that number."""
        return self._watching.begin(constraint, model, now)

    def unwatch(self, number: int, now: float) -> None:
        """Hear no more of it."""
        self._watching.end(number, now)

    @property
    def requests(self) -> RequestTable:
        """What this broker remembers of requests: to look at."""
        return self._forwarding.table

    # -- messages -----------------------------------------------------------------------------

    def _on_carried(self, src: NodeId, msg: Carried, now: float) -> None:
        for one in self._courier.take(src, msg, now):
            self._carried[type(one)](src, one, now)

    def _on_update(self, src: NodeId, msg: Update, now: float) -> None:
        """A client tells its broker the latest values of a resource."""
        if self._content.is_client(src) and msg.resource.partition("/")[0] == src:
            latest = Latest(msg.resource, msg.epoch, msg.version, msg.item, now)
            self._pubcache.put(latest)

    # -- events -------------------------------------------------------------------------------

    # A node may run another content routing, in another scope: what that one tells is not meant.

    def _on_neighbour_down(self, event: NeighbourDown, now: float) -> None:
        if event.peer not in self._content.neighbours():
            self._forget(event.peer, now)

    def _on_client_gone(self, event: ClientGone, now: float) -> None:
        self._forget(event.client, now)

    def _on_broker_lost(self, event: BrokerLost, now: float) -> None:
        self._forget(event.broker, now)

    def _on_broker_attached(self, event: BrokerAttached, now: float) -> None:
        for own in self._registry.own:
            latest = self._pubcache.get(f"{self.me}/{own.name}")
            if latest is not None:
                self._on_latest(latest, now)

    def _on_advertised(self, event: AdvertisementAdded | AdvertisementChanged, now: float) -> None:
        advertised = event.advertisement
        if self._content.advertisement(advertised.id) is None:
            return
        if isinstance(event, AdvertisementChanged) and event.before.epoch == advertised.epoch:
            return  # only the way to it is another one
        if advertised.model == ModelType.DYNAMIC:
            self.counts.outdated += self.requests.bar_all(advertised.constraint)
        self._watching.on_advertised(advertised, now)

    def _on_removed(self, event: AdvertisementRemoved, now: float) -> None:
        if self._content.advertisement(event.advertisement.id) is None:
            self._pubcache.drop(event.advertisement.id)
            self._watching.on_removed(event, now)

    def _forget(self, peer: NodeId, now: float) -> None:
        self._courier.forget(peer)
        self._forwarding.lose(peer, (), inf, now)

    def _on_lost(self, peer: NodeId, kept: Collection[RequestId], since: float, now: float) -> None:
        self._forwarding.lose(peer, kept, since, now)

    def _on_latest(self, latest: Latest, now: float) -> None:
        """A client's broker answers for its resources."""
        content = self._content
        if not content.is_broker and content.broker is not None:
            update = Update(
                NO_SLIP,
                ModelType.DYNAMIC,
                latest.resource,
                latest.epoch,
                latest.version,
                dict(latest.item),
            )
            self._courier.send(content.broker, update, now)

    # -- time ---------------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Begin to forget."""
        self.effects.set_timer(EXPIRE, now + self._forwarding.lifetime / SWEEPS)

    def on_timer(self, key: Hashable, now: float) -> None:
        """Send again, end a find, publish, or forget."""
        match key:
            case "resend":
                self._courier.on_timer(now)
            case "expire":
                self._forwarding.expire(now)
                self.effects.set_timer(EXPIRE, now + self._forwarding.lifetime / SWEEPS)
            case (str(kind), int(number)) if kind == FIND:
                self._asking.on_timeout(number, now)
            case (str(kind), int(number)) if kind == LOOK:
                self._watching.on_look(number, now)
            case (str(kind), str(name)) if kind == UPDATE:
                self._registry.on_update_due(name, now)
            case (str(kind), str(name)) if kind == LEASE:
                self._registry.on_lease_due(name, now)

    # -- invariants ---------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """See the package's docstring."""
        config, counts = self.config, self.counts
        if len(self._registry) > config.max_resources:
            raise InvariantViolation(f"{self.me}: {len(self._registry)} resources")
        if counts.asked != counts.ended + len(self._asking):
            raise InvariantViolation(f"{self.me}: a find has no end, or two: {counts}")
        table = self.requests
        for record in table:
            if record.last_hop in record.branches and record.last_hop != self.me:
                raise InvariantViolation(f"{self.me}: {record.id} owes itself an answer")
            if record.done and record.branches:
                raise InvariantViolation(f"{self.me}: {record.id} is done with open branches")
            if not record.done and not record.branches and not record.direct:
                raise InvariantViolation(f"{self.me}: nobody owes {record.id} an answer")
            if table.is_listed(record.id) and record.way is not Way.ROUTED:
                raise InvariantViolation(f"{self.me}: {record.id} is {record.way}, and a cover")
