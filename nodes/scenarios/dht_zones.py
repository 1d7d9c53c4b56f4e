"""Scenarios of the hash table in several zones: a whole zone may be lost, come, and go."""

from __future__ import annotations

from nodes.scenarios.dht_federation import Federation
from nodes.scenarios.dht_world import SETTLING
from nodes.scenarios.registry import scenario
from overlay.scenario import Scenario, Stage, Until
from protocols.dht import Dht, Kind, Operation, Status


@scenario("dht-zones", nodes=9, both_worlds=False)
def zones(stage: Stage) -> Scenario:
    """Three storage zones: every shard lies in all of them, and everybody reaches it."""
    store = Federation(stage)
    yield from store.start()
    yield from store.load(40)
    yield from store.finish()


@scenario("dht-zone-lost", nodes=9, both_worlds=False)
def zone_lost(stage: Stage) -> Scenario:
    """A whole zone crashes at once: nothing acknowledged is lost, and later it comes back."""
    store = Federation(stage)
    yield from store.start()
    yield from store.load(25)
    lost = stage.rng.choice("abc")
    for name in store.by_zone[lost]:
        store.crash(name)
    yield from store.load(60)
    yield store.quiet()
    yield from store.read_all()
    yield store.settled()
    yield from store.load(10)
    for name in store.by_zone[lost]:
        stage.restart(name)
    yield from store.load(30)
    yield from store.finish()


@scenario("dht-zone-added", nodes=6, both_worlds=False)
def zone_added(stage: Stage) -> Scenario:
    """Storage zones are added and removed at run time, under load."""
    store = Federation(stage, ("a", "b"))
    yield from store.start()
    yield from store.load(15)
    store.add_zone("c", 3)
    yield from store.load(60)
    yield store.settled()
    yield from store.load(10)
    gone = stage.rng.choice("abc")
    for name in store.by_zone[gone]:
        stage.call(name, lambda host: host.protocol(Dht).retire)
        store.members.remove(name)
    tables = [store.dht(name) for name in store.by_zone[gone]]
    yield from store.load(60)
    yield Until(lambda: not any(one.seats for one in tables), SETTLING, "an empty zone")
    for name in store.by_zone[gone]:
        store.busy.pop(name, None)
        stage.stop(name)
    yield from store.finish()


@scenario("dht-zone-apart", nodes=9, both_worlds=False)
def zone_apart(stage: Stage) -> Scenario:
    """A zone is cut off: the others go on, it refuses, and afterwards all is one again."""
    store = Federation(stage)
    yield from store.start()
    yield from store.load(15)
    here = store.by_zone[stage.rng.choice("abc")]
    stage.partition([here, [name for name in stage.names if name not in here]])
    yield from store.load(stage.rng.choice((10, 150, 300)))
    stage.heal()
    yield from store.load(30)
    yield from store.finish()


@scenario("dht-clients", nodes=9, both_worlds=False)
def clients(stage: Stage) -> Scenario:
    """A zone that keeps nothing asks through servers of others, some of which crash."""
    store = Federation(stage, ("a", "b"), clients=("x",))
    yield from store.start()
    yield from store.load(40)
    for _ in range(2):
        victim = stage.rng.choice(store.servers())
        store.crash(victim)
        yield from store.load(50)
        yield store.settled()
        stage.restart(victim)
        yield from store.load(20)
        yield store.settled()
    yield from store.finish()
    assert all(store.dht(name).counts.done for name in store.by_zone["x"])
    assert sum(store.dht(name).counts.proxied for name in store.servers())


@scenario("dht-tables-meet", nodes=6, both_worlds=False)
def tables_meet(stage: Stage) -> Scenario:
    """Two zones that never met have a table each; when they meet, one has all the keys."""
    store = Federation(stage, ("a", "b"))
    stage.partition([store.by_zone["a"], store.by_zone["b"]])
    for name in store.members:
        stage.start(name, store.recipe(name))
    tables = [store.dht(name) for name in store.members]
    yield Until(lambda: all(one.table for one in tables), SETTLING, "two tables")
    keys = {zone: [b"%s%d" % (zone.encode(), at) for at in range(12)] for zone in "ab"}
    for zone, of_zone in keys.items():
        for key in of_zone:
            store.ask(store.by_zone[zone][0], Operation(Kind.PUT, key, b"value of " + key))
            yield store.quiet()
    assert all(one.status is Status.DONE for one in store.outcomes)
    stage.heal()
    yield store.settled()
    yield from store.read_all([*keys["a"], *keys["b"]])
    store.history.check()
