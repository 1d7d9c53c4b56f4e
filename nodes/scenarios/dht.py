"""Scenarios of the hash table in one zone: whatever breaks, each key is linearizable."""

from __future__ import annotations

from nodes.scenarios.dht_world import DURABLE, HOP_BY_HOP, Store
from nodes.scenarios.registry import scenario
from overlay.scenario import Scenario, Stage
from overlay.sim import Delay, Duplicate, Reorder, SimStage
from protocols.dht import Status


@scenario("dht-one-zone", nodes=5)
def one_zone(stage: Stage) -> Scenario:
    """Everybody asks for everything, nothing breaks, and nothing is refused."""
    store = Store(stage)
    yield from store.start()
    yield from store.load(40)
    yield from store.finish()
    assert all(one.status is Status.DONE for one in store.outcomes)


@scenario("dht-crash", nodes=6)
def crash(stage: Stage) -> Scenario:
    """Servers crash and come back with nothing, while clients ask."""
    store = Store(stage)
    yield from store.start()
    for _ in range(2):
        yield from store.load(10)
        victim = stage.rng.choice(stage.names)
        store.crash(victim)
        yield from store.load(40)
        yield store.settled()
        yield from store.load(5)
        stage.restart(victim)
        yield from store.load(20)
        yield store.settled()
    yield from store.finish()


@scenario("dht-partition", nodes=6, both_worlds=False)
def partition(stage: Stage) -> Scenario:
    """The zone is split: where a majority of a shard is, it goes on; elsewhere it is refused."""
    store = Store(stage)
    yield from store.start()
    for _ in range(2):
        yield from store.load(8)
        names = list(store.members)
        stage.rng.shuffle(names)
        cut = stage.rng.randint(1, len(names) - 1)
        stage.partition([names[:cut], names[cut:]])
        yield from store.load(stage.rng.choice((5, 40, 120)))
        stage.heal()
        yield from store.load(15)
        yield store.settled()
    yield from store.finish()


@scenario("dht-churn", nodes=5)
def churn(stage: Stage) -> Scenario:
    """Servers join, leave and crash under load, one after the other."""
    store = Store(stage)
    yield from store.start()
    for step in range(6):
        yield from store.load(stage.rng.choice((3, 10, 25)))
        running = [name for name in stage.names if name in store.members]
        act = stage.rng.random()
        if act < 0.5 or len(running) < 4:
            store.join(f"late{step}")
        elif act < 0.75:
            yield from store.leave(stage.rng.choice(running))
        else:
            yield store.settled()  # in memory a group survives one crash at a time
            store.crash(stage.rng.choice(running))
            yield from store.load(30)
            yield store.settled()
    yield from store.finish()


@scenario(
    "dht-bad-network",
    nodes=5,
    faults=(Duplicate(0.2, within=1.0), Reorder(0.2, by=0.1), Delay(0.001, jitter=0.02)),
)
def bad_network(stage: Stage) -> Scenario:
    """Frames are lost, copied and overtaken; servers crash and join meanwhile."""
    store = Store(stage)
    yield from store.start()
    stage.loss(0.1)
    for step in range(3):
        yield from store.load(40)
        if step == 1:
            store.crash(stage.rng.choice(stage.names))
        else:
            store.join(f"late{step}")
    yield from store.load(40)
    stage.heal()
    yield from store.finish()


@scenario("dht-pauses", nodes=5, both_worlds=False)
def pauses(stage: Stage) -> Scenario:
    """Servers hang for a while and go on as if nothing had happened."""
    store = Store(stage)
    yield from store.start()
    assert isinstance(stage, SimStage)
    for _ in range(3):
        yield from store.load(8)
        victim = stage.rng.choice(stage.names)
        stage.sim.pause(victim)
        yield from store.load(stage.rng.choice((5, 60, 150)))
        stage.sim.resume(victim)
        yield from store.load(15)
    yield from store.finish()


@scenario("dht-power-cut", nodes=4, both_worlds=False)
def power_cut(stage: Stage) -> Scenario:
    """Single servers, then all of them, lose power in the middle of writing: nothing
    acknowledged is lost."""
    store = Store(stage, DURABLE)
    yield from store.start()
    for victims in (1, 2, len(store.members)):
        yield from store.load(25)
        chosen = stage.rng.sample(store.members, victims)
        for name in chosen:
            store.crash(name, "power-cut")
        yield from store.load(stage.rng.choice((0, 20, 60)))
        for name in chosen:
            stage.restart(name)
        yield from store.load(20)
        yield store.settled()
    yield from store.finish()


@scenario("dht-hop-by-hop", nodes=8, both_worlds=False)
def hop_by_hop(stage: Stage) -> Scenario:
    """Requests take the links of the zone, while a server crashes and another one joins."""
    store = Store(stage, HOP_BY_HOP)
    yield from store.start()
    yield from store.load(30)
    store.crash(stage.rng.choice(stage.names))
    yield from store.load(40)
    store.join("late")
    yield from store.load(30)
    yield from store.finish()


@scenario("dht-quick-restart", nodes=5, both_worlds=False)
def quick_restart(stage: Stage) -> Scenario:
    """Servers lose their memory and are back before anybody missed them; frames get lost."""
    store = Store(stage)
    yield from store.start()
    for _ in range(3):
        stage.loss(0.15)
        yield from store.load(15)
        victim = stage.rng.choice(stage.names)
        store.crash(victim)
        yield from store.load(stage.rng.choice((0, 2, 8)))
        stage.restart(victim)
        yield from store.load(20)
        stage.heal()
        yield store.settled()
    yield from store.finish()


@scenario(
    "dht-storm",
    nodes=5,
    faults=(Duplicate(0.1, within=0.5), Reorder(0.1, by=0.2), Delay(0.0, jitter=0.01)),
)
def storm(stage: Stage) -> Scenario:
    """Power cuts, partitions, pauses, joins and loss, several at a time; disks keep promises."""
    store = Store(stage, DURABLE)
    yield from store.start()
    assert isinstance(stage, SimStage)
    rng = stage.rng
    dark: list[str] = []
    still: list[str] = []
    for step in range(14):
        running = [name for name in stage.names if name not in still]
        act = rng.random()
        if act < 0.3:
            names = list(stage.names)
            rng.shuffle(names)
            cut = rng.randint(1, max(1, len(names) - 1))
            stage.partition([names[:cut], names[cut:]])
        elif act < 0.5 and len(running) > 1:
            victim = rng.choice(running)
            store.crash(victim, "power-cut")
            dark.append(victim)
        elif act < 0.65 and len(running) > 1:
            still.append(rng.choice(running))
            stage.sim.pause(still[-1])
        elif act < 0.75 and len(store.members) < 8:
            store.join(f"late{step}")
        elif act < 0.85:
            stage.loss(0.2)
        if rng.random() < 0.5:
            stage.heal()
        if dark and rng.random() < 0.6:
            stage.restart(dark.pop(rng.randrange(len(dark))))
        if still and rng.random() < 0.6:
            stage.sim.resume(still.pop(rng.randrange(len(still))))
        yield from store.load(rng.choice((3, 20, 60)))
    stage.heal()
    for name in dark:
        stage.restart(name)
    for name in still:
        stage.sim.resume(name)
    yield from store.load(20)
    yield from store.finish()
