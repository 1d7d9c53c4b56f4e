"""Membership on a bad network, with bad clocks, and with members that are only slow."""

from __future__ import annotations

from nodes.scenarios.membership import REMOVAL, SEEDS, Zone
from nodes.scenarios.registry import scenario
from overlay.scenario import Pause, Scenario, Stage, Until
from overlay.sim import Delay, Duplicate, OneWay, Reorder, SimStage, Slow


@scenario("membership-loss", nodes=8, both_worlds=False)
def loss(stage: Stage) -> Scenario:
    """One frame in five is lost: nobody is removed but the dead, and newcomers still get in."""
    zone = Zone(stage)
    stage.loss(0.2)
    newcomer = zone.names[-1]
    yield from zone.start(zone.names[:-1])
    yield Pause(20)
    assert zone.failed == []
    victim = zone.names[-2]
    stage.crash(victim)
    yield zone.without(victim)
    stage.start(newcomer, zone.member({"new": True}))
    yield from zone.settled()
    assert zone.removed_but([victim]) == []


@scenario("membership-duplication", nodes=8, faults=(Duplicate(0.5, within=3.0),))
def duplication(stage: Stage) -> Scenario:
    """Frames come again up to three seconds later: old news never wins."""
    zone = Zone(stage)
    yield from zone.start()
    yield from _a_crash_and_a_return(zone)


@scenario(
    "membership-reordering", nodes=8, faults=(Reorder(0.3, by=0.4), Delay(0.001, jitter=0.05))
)
def reordering(stage: Stage) -> Scenario:
    """Three frames in ten are held back, for longer than a probe waits, while others overtake."""
    zone = Zone(stage)
    yield from zone.start()
    yield from _a_crash_and_a_return(zone)


def _a_crash_and_a_return(zone: Zone) -> Scenario:
    stage = zone.stage
    writer = stage.rng.choice(zone.names[:SEEDS])
    for step in range(10):
        zone.set(writer, "step", step)
        yield Pause(stage.rng.uniform(0, 0.3))
    victim = stage.rng.choice(zone.names[SEEDS:])
    stage.crash(victim)
    yield zone.without(victim)
    stage.restart(victim)
    yield from zone.settled()
    assert zone.removed_but([victim]) == []


@scenario("membership-partition", nodes=8, both_worlds=False)
def partition(stage: Stage) -> Scenario:
    """Both sides bury each other, change, and merge by themselves when the network heals."""
    zone = Zone(stage)
    yield from zone.start()
    names = zone.names
    stage.rng.shuffle(names)
    cut = stage.rng.randint(1, stage.size - 1)
    sides = names[:cut], names[cut:]
    stage.partition(sides)
    yield Pause(stage.rng.uniform(0, 60))
    for side in sides:
        zone.set(stage.rng.choice(side), "side", len(side))
    stage.heal()
    yield from zone.settled()


@scenario("membership-asymmetric", nodes=8, both_worlds=False)
def asymmetric(stage: Stage) -> Scenario:
    """Where one direction of a pair is cut, helpers show that both live; a mute one is removed."""
    assert isinstance(stage, SimStage)
    zone = Zone(stage)
    yield from zone.start()
    mute, deaf = stage.rng.sample(zone.names, 2)
    cut = stage.sim.faults.add(OneWay(mute, deaf))
    yield Pause(30)
    assert zone.suspected == [], "helpers can reach both"
    stage.sim.faults.remove(cut)
    others = [name for name in zone.names if name != mute]
    cut = stage.sim.faults.add(OneWay(mute, others))
    yield Until(
        lambda: all(mute not in zone.membership(name).view for name in others),
        within=REMOVAL,
        what="views without the mute one",
    )
    stage.sim.faults.remove(cut)
    yield from zone.settled()
    # The mute one heard no answers and may have buried everybody; nobody else did.
    assert all(who == mute for who, _ in zone.removed_but([mute]))


@scenario("membership-slow", nodes=8, both_worlds=False)
def slow(stage: Stage) -> Scenario:
    """Members are busy for 20 ms with each frame, and freeze for up to 2 s: nobody is removed."""
    assert isinstance(stage, SimStage)
    zone = Zone(stage)
    yield from zone.start()
    slow = stage.rng.sample(zone.names, 2)
    busy = stage.sim.faults.add(Slow(slow, 0.02))
    for _ in range(10):
        name = stage.rng.choice(slow)
        stage.sim.pause(name)
        yield Pause(stage.rng.uniform(0, 2))
        stage.sim.resume(name)
        yield Pause(stage.rng.uniform(0, 2))
    assert zone.failed == []
    stage.sim.faults.remove(busy)
    frozen = slow[0]
    stage.sim.pause(frozen)
    others = [name for name in zone.names if name != frozen]
    yield Until(
        lambda: all(frozen not in zone.membership(name).view for name in others),
        within=8,
        what="views without the frozen one",
    )
    yield Pause(stage.rng.uniform(0, 20))
    stage.sim.resume(frozen)
    yield from zone.settled()
    assert zone.removed_but([frozen]) == [], "one who woke up accused the others"


@scenario("membership-clock-jumps", nodes=8, both_worlds=False)
def clock_jumps(stage: Stage) -> Scenario:
    """Clocks are off by hours, drift and jump: nobody is removed but the dead."""
    assert isinstance(stage, SimStage)
    zone = Zone(stage)
    for name in zone.names:
        offset, drift = stage.rng.uniform(-1e4, 1e4), stage.rng.uniform(-0.05, 0.05)
        stage.sim.add_node(name, zone.member(), offset=offset, drift=drift)
    yield from zone.settled()
    for _ in range(8):
        name = stage.rng.choice(zone.names)
        frozen = stage.rng.choice(zone.names)
        stage.sim.pause(frozen)
        yield Pause(stage.rng.uniform(0, 2))  # long enough to be suspected when clocks jump
        stage.sim.jump_clock(name, stage.rng.choice((-3600.0, -5.0, -0.1, 0.1, 5.0, 3600.0)))
        yield Pause(0.1)
        stage.sim.resume(frozen)
        zone.set(name, "jumps", stage.rng.random())
        yield Pause(stage.rng.uniform(0, 2))
    assert zone.failed == []
    victim = stage.rng.choice(zone.names[SEEDS:])
    before = zone.membership(victim).incarnation
    stage.crash(victim, keep=stage.rng.choice(("all", "none")))
    stage.sim.jump_clock(victim, -7200.0)
    yield zone.without(victim)
    stage.restart(victim)
    yield from zone.settled()
    assert zone.removed_but([victim]) == []
    assert zone.membership(victim).incarnation > before
