"""Registering, updating and watching: exact effects, and every refusal."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from overlay.errors import LocalProtocolError
from overlay.predicates import Constraint, PredicateError
from protocols.resources import (
    ModelType,
    ResourceExpired,
    ResourceFound,
    ResourceGone,
    ResourceRegistered,
    ResourcesSettings,
)
from tests.brokers import Brokers

BOX = Constraint.parse("memory <= 64, system = 'Linux'")


def told(world: Brokers, at: str) -> Sequence[object]:
    events = [event for name, event in world.heard if name == at]
    world.heard.clear()
    return events


def register_static(world: Brokers, at: str, name: str, text: str) -> str:
    made = world.machines[at].register(
        name, Constraint.parse(text), ModelType.STATIC, None, 0.0, world.now
    )
    world.settle(at)
    return made


def test_a_static_resource_is_found_at_every_broker_without_a_message() -> None:
    world = Brokers(("AB", "BC"))
    register_static(world, "A", "printer", "kind = 'printer', pages <= 100, colour = true")
    assert told(world, "A") == [ResourceRegistered("A/printer", ModelType.STATIC, "registered")]
    wanted = Constraint.parse("pages > 50")
    (found,) = world.machines["C"].find_static(wanted, 0, False, world.now)
    assert (found.id, found.owner, found.name) == ("A/printer", "A", "printer")
    assert found.item == {"kind": "printer", "colour": True}
    assert found.description == 'colour = true, kind = "printer", pages <= 100'
    assert world.machines["C"].find_static(Constraint.parse("pages > 100"), 0, False, 0.0) == ()
    assert world.sent == []
    world.machines["A"].unregister("printer", world.now)
    world.settle("A")
    assert world.machines["C"].find_static(wanted, 0, False, world.now) == ()


def test_a_limit_takes_so_many() -> None:
    world = Brokers(("AB",))
    for index in range(5):
        register_static(world, "A", f"p{index}", "kind = 'printer'")
    found = world.machines["B"].find_static(Constraint.parse("kind present"), 3, False, 0.0)
    assert [one.name for one in found] == ["p0", "p1", "p2"]
    for index in range(5):
        world.register("A", f"d{index}", "memory <= 64", {"memory": index})
    number = world.find("B", "memory >= 0", limit=3)
    world.calm()
    end = world.ended(number)
    assert end is not None
    assert (len(end.resources), end.complete, end.reason) == (3, True, "limit")


def test_who_watches_static_resources_hears_of_each_once() -> None:
    world = Brokers(("AB",))
    register_static(world, "A", "old", "kind = 'printer'")
    told(world, "B")
    wanted = Constraint.parse("kind = 'printer'")
    watch = world.machines["B"].watch(wanted, ModelType.STATIC_CONTINUOUS, world.now)
    world.settle("B")
    (first,) = told(world, "B")
    assert isinstance(first, ResourceFound)
    assert (first.watch, first.resource.id) == (watch, "A/old")
    register_static(world, "A", "new", "kind = 'printer', pages = 5")
    register_static(world, "A", "lamp", "kind = 'lamp'")
    (second,) = told(world, "B")
    assert isinstance(second, ResourceFound)
    assert second.resource.id == "A/new"
    world.machines["A"].unregister("old", world.now)
    world.settle("A")
    (gone,) = told(world, "B")
    assert isinstance(gone, ResourceGone)
    assert gone.resource.id == "A/old"
    world.machines["B"].unwatch(watch, world.now)
    register_static(world, "A", "newer", "kind = 'printer'")
    assert told(world, "B") == []


def test_who_watches_dynamic_resources_hears_of_what_matches() -> None:
    world = Brokers(("AB",), ResourcesSettings(update_interval=0.0))
    world.register("A", "box", "memory <= 64", {"memory": 8})
    told(world, "B")
    watch = world.machines["B"].watch(
        Constraint.parse("memory >= 4"), ModelType.DYNAMIC_CONTINUOUS, world.now
    )
    world.settle("B")
    world.calm()
    (first, _end) = told(world, "B")
    assert isinstance(first, ResourceFound)
    assert (first.watch, first.resource.item) == (watch, {"memory": 8})
    world.update("A", "box", {"memory": 2})
    world.update("A", "box", {"memory": 16})
    (second,) = told(world, "B")
    assert isinstance(second, ResourceFound)
    assert second.resource.item == {"memory": 16}
    world.register("A", "other", "memory <= 64", {"memory": 5})
    world.run(1.0)
    ids = [event.resource.id for event in told(world, "B") if isinstance(event, ResourceFound)]
    assert ids == ["A/other"]
    assert len(world.subscribed) == 1
    world.machines["B"].unwatch(watch, world.now)
    assert world.subscribed == {}


def test_updates_in_quick_succession_are_published_as_one() -> None:
    world = Brokers(("AB",), ResourcesSettings(update_interval=1.0))
    world.register("A", "box", "memory <= 64", {"memory": 1})
    published = world.sequence
    for memory in (2, 3, 4):
        world.update("A", "box", {"memory": memory})
    assert world.sequence == published
    number = world.find("B", "memory = 4")  # who asks gets the latest
    world.calm()
    assert world.found(number) == ["A/box"]
    world.pass_time(1.0)
    assert world.sequence == published + 1
    assert world.machines["A"].counts.coalesced == 2


def test_a_lease_ends_what_is_not_updated() -> None:
    world = Brokers(("AB",))
    machine = world.machines["A"]
    machine.register("box", BOX, ModelType.DYNAMIC, {"memory": 1}, 10.0, world.now)
    world.pass_time(8.0)
    world.update("A", "box", {"memory": 2})
    told(world, "A")
    world.pass_time(9.0)
    assert [one.name for one in machine.own] == ["box"]
    world.pass_time(1.5)
    assert told(world, "A") == [
        ResourceRegistered("A/box", ModelType.DYNAMIC, "expired"),
        ResourceExpired("box"),
    ]
    assert machine.own == ()
    assert world.advertised == {}


def test_what_is_wrong_is_refused_and_changes_nothing() -> None:
    world = Brokers(("AB",), ResourcesSettings(max_resources=2, max_item=200))
    machine = world.machines["A"]

    def register(name: str, model: ModelType = ModelType.DYNAMIC, **more: object) -> None:
        given: dict[str, object] = {"description": BOX, "item": None, "lease": 0.0, **more}
        machine.register(
            name,
            given["description"],  # type: ignore[arg-type]
            model,
            given["item"],  # type: ignore[arg-type]
            given["lease"],  # type: ignore[arg-type]
            0.0,
        )

    for name in ("", "a/b", "x" * 65, "line\nbreak"):
        with pytest.raises(LocalProtocolError, match="cannot be called"):
            register(name)
    with pytest.raises(LocalProtocolError, match="static or dynamic"):
        register("x", ModelType.STATIC_CONTINUOUS)
    with pytest.raises(LocalProtocolError, match="without any attribute"):
        register("x", description=Constraint.of())
    with pytest.raises(LocalProtocolError, match="lease"):
        register("x", lease=-1.0)
    with pytest.raises(PredicateError, match="finite"):
        register("x", item={"memory": float("nan")})
    with pytest.raises(LocalProtocolError, match="outside of what is registered"):
        register("x", item={"memory": 65})
    with pytest.raises(LocalProtocolError, match="outside of what is registered"):
        register("x", item={"memory": "much"})
    with pytest.raises(LocalProtocolError, match="more than 200 bytes"):
        register("x", description=Constraint.exactly({"a": "x" * 150, "b": "x" * 150}))
    with pytest.raises(LocalProtocolError, match="no values besides"):
        register("x", ModelType.STATIC, item={"memory": 1})
    assert machine.own == ()
    register("one")
    register("two")
    with pytest.raises(LocalProtocolError, match="2 resources are registered"):
        register("three")
    register("two", description=Constraint.parse("memory <= 4"))  # again: it is changed
    with pytest.raises(LocalProtocolError, match="outside of what is registered"):
        machine.update("two", {"memory": 5}, 0.0)
    with pytest.raises(LocalProtocolError, match="no resource 'four'"):
        machine.update("four", {"memory": 5}, 0.0)
    with pytest.raises(LocalProtocolError, match="no resource 'four'"):
        machine.unregister("four", 0.0)
