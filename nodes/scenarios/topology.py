"""Scenarios of a zone's topology: both ends agree on each link, and the zone holds together."""

from __future__ import annotations

from collections.abc import Collection

from nodes.scenarios.registry import scenario
from overlay.host import Host
from overlay.ids import NodeId, Ring
from overlay.protocol import Scope
from overlay.scenario import Pause, Scenario, Stage, Until
from overlay.sim import Delay, Duplicate, OneWay, Reorder, SimStage
from protocols.membership.config import MembershipSettings
from protocols.membership.machine import Membership
from protocols.topology import Topology, TopologySettings
from protocols.topology.interface import TOPICS, interests

ZONE: Scope = "hall"
SEEDS: tuple[NodeId, ...] = ("n0", "n1", "n2")  # whom everybody asks to be let in

# Shorter than the defaults, so that a story is short; the proportions are the same.
QUICK_MEMBERSHIP = MembershipSettings(probe_period=0.5, suspicion_min=1.0, suspicion_max=4.0)
QUICK = TopologySettings(check_period=2.0, silence=3.0, avoid=4.0)
NARROW = TopologySettings(check_period=2.0, silence=3.0, avoid=4.0, max_degree=4)
TOPIC_NAMES = ("ants", "bees", "cats", "dogs", "eels", "fish")
SETTLING = 60.0  # seconds, at most, until links follow a change


def add_membership(host: Host) -> Membership:
    """Add the members of the zone, as this node sees them."""
    return host.add(Membership, QUICK_MEMBERSHIP, ZONE, zone=ZONE, contacts=SEEDS)


def linked(host: Host) -> None:
    """A member with links."""
    host.add(Topology, QUICK, ZONE, members=add_membership(host).view)


def narrow(host: Host) -> None:
    """A member that may have few links besides the ring's."""
    host.add(Topology, NARROW, ZONE, members=add_membership(host).view)


def names_for(stage: Stage) -> list[NodeId]:
    """Return the names of a stage's nodes."""
    return [f"n{index}" for index in range(stage.size)]


def topology(stage: Stage, name: NodeId) -> Topology:
    """Return a member's links."""
    return stage.protocol(name, Topology, ZONE)


def views_agree(stage: Stage, names: Collection[NodeId]) -> bool:
    """Say whether these see exactly each other."""
    here = tuple(Ring(names))
    return all(stage.protocol(name, Membership, ZONE).view.members() == here for name in names)


def is_symmetric(stage: Stage, names: Collection[NodeId]) -> bool:
    """Say whether both ends hold each link."""
    return all(
        topology(stage, peer).is_neighbour(name)
        for name in names
        for peer in topology(stage, name).neighbours()
        if peer in names
    )


def is_ring(stage: Stage, names: Collection[NodeId]) -> bool:
    """Say whether each is linked to its nearest on either side."""
    ring = Ring(names)
    k = QUICK.ring_links
    return all(
        topology(stage, name).is_neighbour(peer)
        for name in names
        for peer in (*ring.successors(name, k), *ring.predecessors(name, k))
    )


def is_connected(stage: Stage, names: Collection[NodeId]) -> bool:
    """Say whether links lead from each of these to each other one."""
    start = next(iter(names))
    reached, todo = {start}, [start]
    while todo:
        for peer in topology(stage, todo.pop()).neighbours():
            if peer in names and peer not in reached:
                reached.add(peer)
                todo.append(peer)
    return len(reached) == len(names)


def is_whole(stage: Stage, names: Collection[NodeId]) -> bool:
    """Say whether these form one zone as it should be."""
    return (
        views_agree(stage, names)
        and all(topology(stage, name).settled for name in names)
        and is_ring(stage, names)
        and is_symmetric(stage, names)
        and is_connected(stage, names)
    )


def whole(stage: Stage, names: Collection[NodeId] | None = None) -> Until:
    """Wait until the zone, or these of its members, is as it should be."""
    return Until(
        lambda: is_whole(stage, stage.names if names is None else names),
        within=SETTLING,
        what="one ring with links that both ends hold",
    )


def start_all(stage: Stage) -> list[NodeId]:
    """Start everybody at once, with plain links."""
    names = names_for(stage)
    for name in names:
        stage.start(name, linked)
    return names


def disturb(stage: Stage, rounds: int) -> Scenario:
    """Let members crash, stop and come back, one after the other."""
    for _ in range(rounds):
        victim = stage.rng.choice(stage.names)
        if stage.rng.random() < 0.7:
            stage.crash(victim)
        else:
            stage.stop(victim)
        yield Pause(stage.rng.choice((0.05, 0.5, 3.0)))
        stage.restart(victim)


@scenario("topology-forming", nodes=16)
def forming(stage: Stage) -> Scenario:
    """Everybody starts at once; soon there is one ring, and nobody has too many links."""
    names = start_all(stage)
    yield whole(stage)
    for name in names:
        assert topology(stage, name).degree <= 2 * QUICK.ring_links + QUICK.max_degree
    before = [topology(stage, name).neighbours() for name in names]
    yield Pause(3 * QUICK.check_period)
    after = [topology(stage, name).neighbours() for name in names]
    assert before == after, "links of an idle zone changed"


@scenario("topology-churn", nodes=12)
def churn(stage: Stage) -> Scenario:
    """Members crash, leave and come back; links follow."""
    start_all(stage)
    yield whole(stage)
    yield from disturb(stage, 6)
    yield whole(stage)


@scenario("topology-loss", nodes=12, both_worlds=False)
def loss(stage: Stage) -> Scenario:
    """One frame in five is lost, while links are made and while members go."""
    stage.loss(0.2)
    names = start_all(stage)
    yield whole(stage)
    stage.crash(names[-1])
    yield whole(stage)
    stage.heal()
    yield whole(stage)


@scenario(
    "topology-disorder",
    nodes=12,
    faults=(Duplicate(0.3, within=0.2), Reorder(0.3, by=0.1), Delay(0.001, jitter=0.02)),
)
def disorder(stage: Stage) -> Scenario:
    """Frames come twice and overtake each other; ends agree all the same."""
    names = start_all(stage)
    yield whole(stage)
    stage.stop(names[-1])
    stage.crash(names[-2])
    yield Pause(0.5)
    stage.restart(names[-1])
    yield whole(stage)


@scenario("topology-partition", nodes=12, both_worlds=False)
def partition(stage: Stage) -> Scenario:
    """Each half becomes a ring of its own, and both one again afterwards."""
    names = start_all(stage)
    yield whole(stage)
    stage.rng.shuffle(names)
    halves = names[: stage.size // 2], names[stage.size // 2 :]
    stage.partition(halves)
    for half in halves:
        yield whole(stage, half)
    stage.heal()
    yield whole(stage)


@scenario("topology-one-way", nodes=10, both_worlds=False)
def one_way(stage: Stage) -> Scenario:
    """One neighbour does not hear another any more: neither holds the link, the zone holds."""
    assert isinstance(stage, SimStage)
    names = start_all(stage)
    yield whole(stage)
    deaf = stage.rng.choice(names)
    mute = topology(stage, deaf).neighbours()[0]
    cut = stage.sim.faults.add(OneWay(mute, deaf))

    def parted() -> bool:
        ends = topology(stage, deaf).is_neighbour(mute), topology(stage, mute).is_neighbour(deaf)
        return ends == (False, False) and is_connected(stage, names)

    yield Until(parted, within=SETTLING, what="an end of the link on both sides")
    stage.sim.faults.remove(cut)
    yield whole(stage)


@scenario("topology-massacre", nodes=20)
def massacre(stage: Stage) -> Scenario:
    """Half of the zone dies at one moment; the others close the ring."""
    names = start_all(stage)
    yield whole(stage)
    victims = stage.rng.sample(names, stage.size // 2)
    for victim in victims:
        stage.crash(victim)
    yield whole(stage)
    for victim in victims:
        stage.restart(victim)
    yield whole(stage)


@scenario("topology-narrow", nodes=24)
def narrow_bound(stage: Stage) -> Scenario:
    """The degree bound refuses many links, never one of the ring."""
    for name in names_for(stage):
        stage.start(name, narrow)

    def closed() -> bool:
        return views_agree(stage, stage.names) and is_ring(stage, stage.names)

    yield Until(closed, within=SETTLING, what="one ring")
    yield from disturb(stage, 2)
    yield Until(closed, within=SETTLING, what="one ring again")
    assert is_connected(stage, stage.names)
    for name in stage.names:
        assert topology(stage, name).degree <= 2 * NARROW.ring_links + NARROW.max_degree


def is_covered(stage: Stage) -> bool:
    """Say whether each member has as many neighbours as it wants for each of its topics."""
    wanted = QUICK.greedy_coverage + QUICK.random_coverage
    view = stage.protocol(stage.names[0], Membership, ZONE).view
    topics = {name: interests(view.attributes(name)) for name in stage.names}
    for name in stage.names:
        for topic in topics[name]:
            sharers = sum(topic in topics[other] for other in stage.names) - 1
            near = sum(topic in topics[peer] for peer in topology(stage, name).neighbours())
            if near < min(wanted, sharers):
                return False
    return True


@scenario("topology-interests", nodes=24)
def interest_links(stage: Stage) -> Scenario:
    """Each topic has its neighbours, also after members changed their minds."""
    names = start_all(stage)

    def choose() -> None:
        for name in names:
            words = ",".join(stage.rng.sample(TOPIC_NAMES, stage.rng.randint(1, 3)))
            stage.call(
                name,
                lambda host: host.protocol(Membership, ZONE).set_attribute,
                TOPICS,
                words,
            )

    for _ in range(2):
        choose()
        yield whole(stage)
        yield Until(lambda: is_covered(stage), within=SETTLING, what="neighbours for each topic")


@scenario("topology-clocks", nodes=10, both_worlds=False)
def clocks(stage: Stage) -> Scenario:
    """Clocks drift and jump; no link is lost for good."""
    assert isinstance(stage, SimStage)
    names = names_for(stage)
    for name in names:
        offset, drift = stage.rng.uniform(0, 1e4), stage.rng.uniform(-0.05, 0.05)
        stage.sim.add_node(name, linked, offset=offset, drift=drift)
    yield whole(stage)
    for name in names:
        stage.sim.jump_clock(name, stage.rng.choice((-3600.0, -1.0, 3600.0)))
    yield Pause(1)
    stage.crash(names[-1])
    yield whole(stage)
    stage.restart(names[-1])
    yield whole(stage)
