"""Finds that go on: the two continuous models (§4.3).

Static: this broker hears of every advertisement, and compares it with what is watched. Dynamic: a
plain content subscription, to which updates are routed as they are published. What was published
before the subscription came to a broker never comes: so a one-time find tells what matches
when it begins, and another one whenever a resource that may match was registered.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from overlay.predicates import Constraint, intersects
from overlay.protocol import Effects
from protocols.content.events import AdvertisementRemoved, Delivered
from protocols.content.interface import Advertised, ContentRouter, entry_id
from protocols.resources.asking import Asking
from protocols.resources.config import ResourcesSettings
from protocols.resources.counts import ResourceCounts
from protocols.resources.events import Resource, ResourceFound, ResourceGone
from protocols.resources.models import ModelType
from protocols.resources.pubcache import version_of

LOOK = "look"
DELAY = 0.2  # s for the subscription to be there before the find looks


class Watch(msgspec.Struct):
    """One find that goes on."""

    number: int
    model: ModelType
    constraint: Constraint
    known: dict[str, Resource] = msgspec.field(default_factory=dict)  # as it was told last
    looking: bool = False  # a find is due


class Watching:
    """Begins and ends watches, and tells each of them what it has not been told."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        config: ResourcesSettings,
        counts: ResourceCounts,
        content: ContentRouter,
        asking: Asking,
        distance: Callable[[NodeId], float | None],
    ) -> None:
        self._me = me
        self._effects = effects
        self._config = config
        self._counts = counts
        self._content = content
        self._asking = asking
        self._distance = distance
        self._watches: dict[int, Watch] = {}
        self._subscriptions: dict[str, Watch] = {}
        self._next = 1

    def __len__(self) -> int:
        return len(self._watches)

    def begin(self, constraint: Constraint, model: ModelType, now: float) -> int:
        """ResourceFound follows for all that matches now or will, with this number."""
        if model not in (ModelType.STATIC_CONTINUOUS, ModelType.DYNAMIC_CONTINUOUS):
            raise LocalProtocolError(f"what goes on is static or dynamic continuous, not {model}")
        if len(self._watches) >= self._config.max_watches:
            raise LocalProtocolError(
                f"{self._config.max_watches} finds go on: end some, or raise resources.max_watches"
            )
        number = self._next
        watch = Watch(number, model, constraint)
        if model is ModelType.STATIC_CONTINUOUS:
            present = self._asking.find_static(constraint, 0, nearest=False)
            self._next += 1
            self._watches[number] = watch
            for resource in present:
                self._tell(watch, resource)
        else:
            # The subscription first: what changes while the find is under way is not missed.
            name = _name(number)
            subscription = self._content.subscribe(name, constraint, now, model=ModelType.DYNAMIC)
            self._next += 1
            self._watches[number] = self._subscriptions[subscription] = watch
            self._look(watch, now)
        return number

    def _look(self, watch: Watch, now: float) -> None:
        """Ask for what matches now: others may have been answered before it was there."""

        def found(resource: Resource, _now: float) -> None:
            self._tell(watch, resource)

        self._asking.find(watch.constraint, 0, False, None, now, found, fresh=True)

    def on_look(self, number: int, now: float) -> None:
        """A resource was registered a moment ago that may match."""
        watch = self._watches.get(number)
        if watch is not None:
            watch.looking = False
            self._look(watch, now)

    def end(self, number: int, now: float) -> None:
        """Tell no more."""
        watch = self._watches.pop(number, None)
        if watch is not None and watch.model is ModelType.DYNAMIC_CONTINUOUS:
            del self._subscriptions[entry_id(self._me, _name(number))]
            self._content.unsubscribe(_name(number), now)

    # -- what content-based routing tells -------------------------------------------------------

    def on_delivered(self, event: Delivered, now: float) -> None:
        """A watched resource has other values."""
        watch = self._subscriptions.get(event.subscription)
        if watch is None:
            return
        resource = Resource(
            event.advertisement,
            ModelType.DYNAMIC,
            event.item,
            "",
            event.epoch,
            version_of(event.sequence),
            0.0,
            event.hops,
            self._distance(event.publisher),
        )
        self._tell(watch, resource)

    def on_advertised(self, advertised: Advertised, now: float) -> None:
        """A resource was registered, or says something else."""
        for watch in list(self._watches.values()):
            if watch.model.resources != advertised.model:
                continue
            known = watch.known.get(advertised.id)
            fits = intersects(advertised.constraint, watch.constraint)
            self._counts.matched_advertisements += 1
            if known is not None and not fits:
                self._forget(watch, advertised)
                continue
            if not fits or (known is not None and known.epoch == advertised.epoch):
                continue
            if watch.model is ModelType.STATIC_CONTINUOUS:
                self._tell(watch, self._asking.static_resource(advertised))
            elif not watch.looking:
                watch.looking = True
                self._effects.set_timer((LOOK, watch.number), now + DELAY)

    def on_removed(self, event: AdvertisementRemoved, now: float) -> None:
        """A resource is registered no more."""
        for watch in list(self._watches.values()):
            self._forget(watch, event.advertisement)

    def _forget(self, watch: Watch, advertised: Advertised) -> None:
        known = watch.known.pop(advertised.id, None)
        if known is not None:
            self._effects.emit(ResourceGone(watch.number, known))

    def _tell(self, watch: Watch, resource: Resource) -> None:
        if watch.number not in self._watches:
            return
        content = self._content
        if content.is_broker and content.advertisement(resource.id) is None:
            return  # it was registered when it was found
        known = watch.known.get(resource.id)
        if known is None:
            if len(watch.known) >= self._config.max_results:
                self._counts.over_max_results += 1
                return
        elif (resource.epoch, resource.version) <= (known.epoch, known.version):
            return
        watch.known[resource.id] = resource
        self._effects.emit(ResourceFound(watch.number, resource))


def _name(number: int) -> str:
    return f"@find-{number}"
