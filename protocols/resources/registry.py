"""The resources of this node: registered as advertisements, updated by publications (§4.1, §4.2).

A registration floods; updates stay in the PubCache of the broker, and go on only where somebody
watches. Those within `update_interval` of the last one are published together at its end, as the
last of them: no resource can flood its watchers. Who asks gets the latest in any case.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from overlay.predicates import Constraint, Item, Value, check_item, determines
from overlay.protocol import Effects
from protocols.content.interface import ContentRouter, entry_id
from protocols.resources.config import ResourcesSettings
from protocols.resources.counts import ResourceCounts
from protocols.resources.events import ResourceExpired, ResourceRegistered
from protocols.resources.models import ModelType
from protocols.resources.packing import item_bytes
from protocols.resources.pubcache import Latest, PubCache, version_of

UPDATE = "update"
LEASE = "lease"
MAX_NAME = 64


class Own(msgspec.Struct):
    """One resource of this node."""

    name: str
    model: ModelType
    description: Constraint
    lease: float  # s; 0: as long as the node runs
    renewed_at: float
    item: dict[str, Value]  # as its application said last
    published_at: float | None = None
    sequence: int = 0  # of its last publication
    since: int = 0  # updates after it
    pending: bool = False  # an update waits for the end of the interval


class Registry:
    """Registers, updates and unregisters; the application's errors are raised at once."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        config: ResourcesSettings,
        counts: ResourceCounts,
        content: ContentRouter,
        pubcache: PubCache,
        on_latest: Callable[[Latest, float], None],
    ) -> None:
        self._me = me
        self._effects = effects
        self._config = config
        self._counts = counts
        self._content = content
        self._pubcache = pubcache
        self._on_latest = on_latest
        self._own: dict[str, Own] = {}

    def __len__(self) -> int:
        return len(self._own)

    @property
    def own(self) -> tuple[Own, ...]:
        """All resources of this node, the first registered first."""
        return tuple(self._own.values())

    def register(
        self,
        name: str,
        description: Constraint,
        model: ModelType,
        item: Item | None,
        lease: float,
        now: float,
    ) -> str:
        """Make it known to all brokers, or change what they know of it; its id."""
        self._check_name(name)
        if model not in (ModelType.STATIC, ModelType.DYNAMIC):
            raise LocalProtocolError(f"a resource is static or dynamic, not {model}")
        if not description.spans:
            raise LocalProtocolError(f"{name}: a resource without any attribute is never found")
        if not 0 <= lease <= 1e9:
            raise LocalProtocolError(f"{name}: a lease of {lease} s: give 0 (none) to 1e9")
        if item_bytes(description.wire()) > self._config.max_item:
            raise LocalProtocolError(
                f"{name}: it says more than {self._config.max_item} bytes (resources.max_item)"
            )
        values = {} if item is None else self._checked(name, description, check_item(item))
        if model is ModelType.STATIC and values:
            raise LocalProtocolError(f"{name}: a static resource has no values besides its own")
        if name not in self._own and len(self._own) >= self._config.max_resources:
            raise LocalProtocolError(
                f"{len(self._own)} resources are registered: unregister some,"
                " or raise resources.max_resources"
            )
        resource = self._content.advertise(name, description, now, model=model, whole=True)
        before = self._own.get(name)
        self._own[name] = own = Own(name, model, description, lease, now, values)
        if before is None or before.description != description or before.model != model:
            self._pubcache.drop(resource)  # what it published belongs to another description
            self._counts.registered += 1
            self._effects.emit(ResourceRegistered(resource, model, "registered"))
        elif not values:
            own.item = before.item
        self._arm_lease(own, now)
        if values:
            self._publish(own, now)
        return resource

    def update(self, name: str, changes: Item, now: float) -> None:
        """Change some values of a dynamic resource, and renew its lease."""
        own = self._known(name)
        if own.model is not ModelType.DYNAMIC:
            raise LocalProtocolError(f"{name} is static: register it again to change it")
        item = {**own.item, **check_item(changes)}
        own.item = self._checked(name, own.description, item)
        own.renewed_at = now
        self._arm_lease(own, now)
        self._counts.updated += 1
        interval = self._config.update_interval
        if own.published_at is None or now >= own.published_at + interval:
            self._publish(own, now)
            return
        own.since += 1
        self._keep(own, now)
        if own.pending:
            self._counts.coalesced += 1
        else:
            own.pending = True
            self._effects.set_timer((UPDATE, name), own.published_at + interval)

    def unregister(self, name: str, now: float) -> None:
        """Nobody finds it any more."""
        self._remove(self._known(name), "unregistered", now)

    def on_update_due(self, name: str, now: float) -> None:
        """The interval after an update is over."""
        own = self._own.get(name)
        if own is not None and own.pending:
            self._publish(own, now)

    def on_lease_due(self, name: str, now: float) -> None:
        """A lease may be over."""
        own = self._own.get(name)
        if own is None or not own.lease:
            return
        if now < own.renewed_at + own.lease:
            self._arm_lease(own, now)
            return
        self._counts.expired += 1
        self._remove(own, "expired", now)
        self._effects.emit(ResourceExpired(name))

    def _remove(self, own: Own, change: str, now: float) -> None:
        del self._own[own.name]
        self._pubcache.drop(entry_id(self._me, own.name))
        self._content.unadvertise(own.name, now)
        for key in (UPDATE, LEASE):
            self._effects.cancel_timer((key, own.name))
        self._effects.emit(ResourceRegistered(entry_id(self._me, own.name), own.model, change))

    def _publish(self, own: Own, now: float) -> None:
        own.pending, own.since = False, 0
        own.published_at = now
        own.sequence = self._content.publish(own.name, own.item, now)
        self._on_latest(self._keep(own, now), now)

    def _keep(self, own: Own, now: float) -> Latest:
        resource = entry_id(self._me, own.name)
        advertised = self._content.advertisement(resource)
        epoch = 0 if advertised is None else advertised.epoch
        version = version_of(own.sequence, own.since)
        latest = Latest(resource, epoch, version, dict(own.item), now)
        self._pubcache.put(latest)
        return latest

    def _arm_lease(self, own: Own, now: float) -> None:
        if own.lease:
            self._effects.set_timer((LEASE, own.name), own.renewed_at + own.lease)

    def _known(self, name: str) -> Own:
        own = self._own.get(name)
        if own is None:
            raise LocalProtocolError(f"no resource {name[:MAX_NAME]!a} is registered here")
        return own

    def _check_name(self, name: str) -> None:
        if not 0 < len(name) <= MAX_NAME or not name.isprintable() or "/" in name:
            raise LocalProtocolError(
                f"a resource cannot be called {name[:MAX_NAME]!a}: 1 to {MAX_NAME} printable"
                " characters without /"
            )
        if name not in self._own and self._content.advertisement(entry_id(self._me, name)):
            raise LocalProtocolError(f"{name!r} is advertised here, but not as a resource")

    def _checked(
        self, name: str, description: Constraint, item: dict[str, Value]
    ) -> dict[str, Value]:
        if not determines(description, item):
            raise LocalProtocolError(
                f"{name}: {_shown(item)} is outside of what is registered: {description}"
            )
        if item_bytes(item) > self._config.max_item:
            raise LocalProtocolError(
                f"{name}: its values are over {self._config.max_item} bytes (resources.max_item)"
            )
        return item


def _shown(item: Item) -> str:
    text = ", ".join(f"{name} = {value}" for name, value in item.items())
    return text if len(text) <= 200 else text[:200] + "…"
