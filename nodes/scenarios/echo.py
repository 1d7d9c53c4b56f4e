"""Scenarios of echo: every request ends exactly once, whatever the network and the power do."""

from __future__ import annotations

from nodes.scenarios.registry import scenario
from overlay.host import Host
from overlay.ids import NodeId
from overlay.scenario import Pause, Scenario, Stage, Until
from overlay.sim import Delay, Duplicate, Reorder, SimStage
from protocols.echo import Echo, EchoConfig

PATIENT = EchoConfig(timeout=0.5, retries=20)  # outlives every fault of these scenarios
HASTY = EchoConfig(timeout=0.2, retries=1)
ASKS = 10  # requests of each node in one round


def patient(host: Host) -> None:
    """A node that asks until it hears."""
    host.add(Echo, PATIENT)


def hasty(host: Host) -> None:
    """A node that gives up soon."""
    host.add(Echo, HASTY)


def names_for(stage: Stage) -> list[NodeId]:
    """Return the names of a stage's nodes."""
    return [f"n{index}" for index in range(stage.size)]


def ask(stage: Stage, name: NodeId, peer: NodeId, payload: bytes = b"hello") -> None:
    """Let one node ask another."""
    stage.call(name, lambda host: host.protocol(Echo).ask, peer, payload)


def ask_around(stage: Stage) -> None:
    """Let every running node ask others, chosen at random."""
    names = stage.names
    for name in names:
        others = [other for other in names if other != name]
        for number in range(ASKS):
            ask(stage, name, stage.rng.choice(others), b"%d" % number)


def all_answered(stage: Stage) -> bool:
    """Say whether every request of every running node was answered."""
    counts = [stage.protocol(name, Echo).counts for name in stage.names]
    return all(count.asked == count.answered for count in counts)


def all_ended(stage: Stage) -> bool:
    """Say whether no request is open."""
    return all(stage.protocol(name, Echo).open_requests == 0 for name in stage.names)


def total(stage: Stage, count: str) -> int:
    """Sum one count over the running nodes."""
    return sum(getattr(stage.protocol(name, Echo).counts, count) for name in stage.names)


@scenario("echo-basic", nodes=8)
def basic(stage: Stage) -> Scenario:
    """Everybody asks around, and hears every echo at the first try."""
    for name in names_for(stage):
        stage.start(name, patient)
    ask_around(stage)
    yield Until(lambda: all_answered(stage), within=30, what="all echoes")
    assert total(stage, "served") >= ASKS * stage.size


@scenario("echo-loss", nodes=8)
def loss(stage: Stage) -> Scenario:
    """One frame in ten is lost; retries bring every echo home."""
    for name in names_for(stage):
        stage.start(name, patient)
    stage.loss(0.1)
    ask_around(stage)
    yield Until(lambda: all_answered(stage), within=60, what="all echoes in spite of loss")
    stage.heal()
    ask_around(stage)
    yield Until(lambda: all_answered(stage), within=30, what="all echoes after the loss")


@scenario("echo-duplication", nodes=8, faults=(Duplicate(0.3, within=0.05),))
def duplication(stage: Stage) -> Scenario:
    """Frames arrive twice; every request still ends once."""
    for name in names_for(stage):
        stage.start(name, patient)
    ask_around(stage)
    yield Until(lambda: all_answered(stage), within=30, what="all echoes")
    yield Pause(1)  # the last copies are under way
    assert total(stage, "answered") == ASKS * stage.size
    assert total(stage, "late") > 0, "no reply came twice"


@scenario("echo-reordering", nodes=8, faults=(Reorder(0.3, by=0.05), Delay(0.001, jitter=0.02)))
def reordering(stage: Stage) -> Scenario:
    """Frames overtake each other, and every reply still finds its request."""
    for name in names_for(stage):
        stage.start(name, patient)
    for _ in range(3):
        ask_around(stage)
        yield Pause(0.01)
    yield Until(lambda: all_answered(stage), within=30, what="all echoes")


@scenario("echo-churn", nodes=8)
def churn(stage: Stage) -> Scenario:
    """Nodes crash, stop and restart under load; no request of a survivor stays open."""
    names = names_for(stage)
    for name in names:
        stage.start(name, hasty)
    for _ in range(10):
        ask_around(stage)
        victim = stage.rng.choice(stage.names)
        if stage.rng.random() < 0.7:
            stage.crash(victim)
        else:
            stage.stop(victim)
        yield Pause(stage.rng.uniform(0.0, 0.3))
        stage.restart(victim)
    yield Until(lambda: all_ended(stage), within=30, what="an end of every request")
    assert stage.names == names
    yield from _a_quiet_round(stage)


@scenario("echo-partition", nodes=8)
def partition(stage: Stage) -> Scenario:
    """A partition costs the echoes that cross it, no others, and healing brings them back."""
    names = names_for(stage)
    for name in names:
        stage.start(name, hasty)
    left, right = names[: stage.size // 2], names[stage.size // 2 :]
    stage.partition([left, right])
    for here, there in ((left, right), (right, left)):
        ask(stage, here[0], there[0])
        ask(stage, here[0], here[-1])
    yield Until(lambda: all_ended(stage), within=30, what="an end of every request")
    for side in (left, right):
        counts = stage.protocol(side[0], Echo).counts
        assert (counts.answered, counts.timed_out) == (1, 1), counts
    stage.heal()
    yield from _a_quiet_round(stage)


@scenario("echo-clock-drift", nodes=8, both_worlds=False)
def clock_drift(stage: Stage) -> Scenario:
    """Clocks are off by hours, run fast and slow, and jump; timeouts follow each node's own."""
    assert isinstance(stage, SimStage)
    names = names_for(stage)
    for name in names:
        offset, drift = stage.rng.uniform(-1e4, 1e4), stage.rng.uniform(-0.05, 0.05)
        stage.sim.add_node(name, hasty, offset=offset, drift=drift)
    ask_around(stage)
    for name in names[1:]:  # the first one only drifts: its timeout is measured below
        stage.sim.jump_clock(name, stage.rng.choice((-3600.0, -0.1, 0.05, 3600.0)))
    # A clock set back makes a node wait longer for what it asked before, by as much.
    yield Until(lambda: all_ended(stage), within=2 * 3600, what="an end of every request")
    yield from _a_quiet_round(stage)
    stage.crash(names[-1])
    asked_at = stage.sim.now
    ask(stage, names[0], names[-1])
    yield Until(lambda: all_ended(stage), within=5, what="a timeout")
    waited = stage.sim.now - asked_at
    assert 0.37 < waited < 0.45, f"two tries of 0.2 s took {waited} s"


@scenario("echo-power-cut", nodes=8)
def power_cut(stage: Stage) -> Scenario:
    """Half of the nodes lose power with echoes under way; what is left over harms no new life."""
    names = names_for(stage)
    for name in names:
        stage.start(name, hasty)
    for _ in range(3):
        ask_around(stage)
        victims = stage.rng.sample(names, stage.size // 2)
        yield Pause(stage.rng.uniform(0.0, 0.003))
        for victim in victims:
            stage.crash(victim, keep="power-cut")
        yield Pause(stage.rng.uniform(0.0, 0.01))
        for victim in victims:
            stage.restart(victim)
    yield Until(lambda: all_ended(stage), within=30, what="an end of every request")
    yield from _a_quiet_round(stage)


def _a_quiet_round(stage: Stage) -> Scenario:
    """Nothing is broken any more, so everybody hears every echo."""
    before = total(stage, "answered")
    ask_around(stage)
    expected = before + ASKS * len(stage.names)
    yield Until(lambda: total(stage, "answered") == expected, within=30, what="all new echoes")
