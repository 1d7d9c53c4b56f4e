"""Resources, as applications register and find them.

peer.resources.register("printer", {"kind": "printer", "colour": True})
peer.resources.register("box", "system = 'Linux', memory <= 64", values={"memory": 48})
peer.resources.update("box", memory=40)
found = await peer.find("system = 'Linux', memory > 32", limit=10)
async for resource in peer.find_continuous("kind = 'printer'"):
    print(resource.id, resource.gone)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from msgspec.structs import replace

from nodes.closing import Closing
from nodes.distances import Distances
from nodes.resources_recipe import BROKERS
from overlay.errors import LocalProtocolError
from overlay.predicates import Constraint, Predicate, PredicateError, Value, check_item
from protocols.resources import (
    FindEnded,
    ModelType,
    Resource,
    ResourceFound,
    ResourceGone,
    Resources,
)

if TYPE_CHECKING:
    from nodes.event_stream import EventStream
    from nodes.node import Node
    from protocols.resources.registry import Own

__all__ = ["Findings", "PeerResources", "Resource", "ResourceWatch"]

Model: TypeAlias = Literal["any", "static", "dynamic"]
Query: TypeAlias = str | Constraint
Description: TypeAlias = str | Constraint | Mapping[str, Value]

MODELS = ("any", "static", "dynamic")
UNREAD = 10_000  # changes that a watch keeps for a slow reader


class Findings(list[Resource]):
    """What was found; a list of resources that also says whether that is all."""

    def __init__(self, resources: tuple[Resource, ...], *, complete: bool, reason: str) -> None:
        super().__init__(resources)
        self.complete = complete  # False: a broker was lost, or did not answer in time
        self.reason = reason


class ResourceWatch(Closing):
    """What matches now and later, with `async for`; `close` it, or use it in `with`.

    Each resource comes again whenever its values change to others that match, and once more with
    `gone` set when it is registered no more. A reader that is too slow loses the oldest, counted.
    """

    def __init__(self, node: Node, wanted: Constraint, models: tuple[ModelType, ...]) -> None:
        self._node = node
        self._machine = machine = node.protocol(Resources, BROKERS)
        self._numbers: dict[int, None] = {}
        self._stream: EventStream[ResourceFound | ResourceGone] = node.events(
            ResourceFound, ResourceGone, capacity=UNREAD, where=self._is_mine
        )
        self._closed = False
        try:
            for model in models:
                node.call(partial(self._begin, machine, wanted, model))
        except BaseException:
            self.close()
            raise

    def _begin(self, machine: Resources, wanted: Constraint, model: ModelType, now: float) -> None:
        # What matches already is told when this call is over: its number must be known by then.
        self._numbers[machine.watch(wanted, model, now)] = None

    def _is_mine(self, event: ResourceFound | ResourceGone) -> bool:
        return event.watch in self._numbers

    @property
    def dropped(self) -> int:
        """What a slow reader lost."""
        return self._stream.dropped

    def close(self) -> None:
        """Hear no more; what is here can still be read."""
        if not self._closed:
            self._closed = True
            self._stream.close()
            if self._node.is_running:
                for number in self._numbers:
                    self._node.call(self._machine.unwatch, number)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Resource:
        event = await anext(self._stream)
        return replace(event.resource, gone=isinstance(event, ResourceGone))


class PeerResources:
    """The resources of one peer, and its way to those of all others."""

    def __init__(self, node: Node, distances: Distances) -> None:
        self._node = node
        self._distances = distances

    @property
    def machine(self) -> Resources:
        """The protocol."""
        return self._node.protocol(Resources, BROKERS)

    @property
    def own(self) -> tuple[Own, ...]:
        """What this peer registered."""
        return self.machine.own

    # -- registering ----------------------------------------------------------------------------

    def register(
        self,
        name: str,
        description: Description | None = None,
        *,
        values: Mapping[str, Value] | None = None,
        model: Literal["static", "dynamic"] | None = None,
        lease: float = 0.0,
    ) -> str:
        """Let others find a resource, as long as this peer runs; returns its id, OWNER/NAME.

        With values it is dynamic: `update` changes them within its description, and who asks gets
        them as they are. Without, it is static: its description is all there is. With a lease it
        is registered no more when it was not updated, or registered again, for so many seconds.
        """
        if description is None:
            if not values:
                raise LocalProtocolError(f"{name}: say what it is, or give it values")
            # Of any value: what it will be is not known.
            description = Constraint.of(*(Predicate(one, "present") for one in values))
        kind = ModelType(model) if model else ModelType.DYNAMIC if values else ModelType.STATIC
        registered: str = self._node.call(
            self.machine.register, name, as_description(description), kind, values, lease
        )
        return registered

    def update(self, name: str, values: Mapping[str, Value] | None = None, **more: Value) -> None:
        """Change some values of a dynamic resource; the others stay."""
        self._node.call(self.machine.update, name, {**(values or {}), **more})

    def unregister(self, name: str) -> None:
        """Nobody finds it any more."""
        self._node.call(self.machine.unregister, name)

    # -- finding --------------------------------------------------------------------------------

    async def find(
        self,
        query: Query,
        *,
        limit: int = 0,
        model: Model = "any",
        nearest: bool = False,
        fresh: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - brokers must know it, too
    ) -> Findings:
        """All that match, or `limit` of them; `nearest`: the shortest round trip first.

        Values may be up to `resources.expiry` old, where others asked for the like before; `fresh`
        ones are not. Its `complete` tells whether all have answered within `timeout` seconds.
        """
        wanted = as_query(query)
        check_model(model)
        most = 0 if nearest else limit
        found: tuple[Resource, ...] = ()
        complete, reason = True, "all answered"
        if limit < 0:
            raise LocalProtocolError(f"a limit of {limit}: give 0 (all) or more")
        if model != "dynamic":
            found = self._node.call(self.machine.find_static, wanted, most, False)
        if model != "static" and not (most and len(found) >= most):
            end = await self._find_dynamic(wanted, most and most - len(found), timeout, fresh)
            found += end.resources
            complete, reason = end.complete, end.reason
        if nearest:
            measured = await self._distances.measure({one.owner for one in found})
            found = tuple(replace(one, distance=measured.get(one.owner)) for one in found)
            found = tuple(sorted(found, key=_nearness)[: limit or None])
        return Findings(found, complete=complete, reason=reason)

    async def _find_dynamic(
        self,
        wanted: Constraint,
        limit: int,
        timeout: float | None,  # noqa: ASYNC109
        fresh: bool,
    ) -> FindEnded:
        with self._node.events(FindEnded) as ends:
            find = partial(self.machine.find, fresh=fresh)
            number = self._node.call(find, wanted, limit, False, timeout)
            async for end in ends:
                if end.find == number:
                    return end
        raise LocalProtocolError(f"{self._node.name} stopped before the find ended")

    def watch(self, query: Query, *, model: Model = "any") -> ResourceWatch:
        """What matches now and later, until it is closed."""
        check_model(model)
        kinds = {
            "static": (ModelType.STATIC_CONTINUOUS,),
            "dynamic": (ModelType.DYNAMIC_CONTINUOUS,),
            "any": (ModelType.STATIC_CONTINUOUS, ModelType.DYNAMIC_CONTINUOUS),
        }[model]
        return ResourceWatch(self._node, as_query(query), kinds)


def as_query(query: Query) -> Constraint:
    """A constraint, or its readable form."""
    return Constraint.parse(query) if isinstance(query, str) else query


def as_description(description: Description) -> Constraint:
    """The same; a mapping fixes the value of each attribute."""
    if isinstance(description, Mapping):
        return Constraint.exactly(check_item(description))
    return as_query(description)


def as_values(text: str) -> dict[str, Value]:
    """Values in the readable form: `memory = 1.5, system = "Linux"`."""
    values: dict[str, Value] = {}
    for predicate in Constraint.parse(text).wire():
        if predicate.operator != "=" or predicate.value is None:
            raise PredicateError(f"{predicate.attribute}: give one value, as `memory = 1.5`")
        values[predicate.attribute] = predicate.value
    return values


def check_model(model: str) -> None:
    """Raise LocalProtocolError unless there is such a model."""
    if model not in MODELS:
        raise LocalProtocolError(f"no model {model[:20]!a}: use one of {', '.join(MODELS)}")


def _nearness(resource: Resource) -> tuple[bool, float, int, str]:
    distance = resource.distance
    return distance is None, distance or 0.0, resource.hops, resource.id


def plain(values: Mapping[str, Value]) -> dict[str, Any]:
    """Values for JSON: times and dates as text."""
    return {
        name: value if isinstance(value, bool | int | float | str) else str(value)
        for name, value in values.items()
    }
