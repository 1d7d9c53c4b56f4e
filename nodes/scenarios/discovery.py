"""Scenarios of discovery: the nearest broker, or a clear error, within the timeout."""

from __future__ import annotations

from nodes.scenarios.discovery_flooder import Flooder, add_flooder
from nodes.scenarios.discovery_world import (
    BDN,
    LATENCY,
    SETTLED,
    Client,
    address_of,
    bdn,
    broker,
    check_bar,
    linked,
    nearest,
    place,
    random_distances,
    simulator,
    start_brokers,
)
from nodes.scenarios.registry import scenario
from overlay.scenario import Pause, Scenario, Stage, Until
from overlay.sim import Duplicate, Loss
from protocols.discovery import (
    Bdn,
    BdnSettings,
    Broker,
    BrokerFound,
    BrokerSettings,
    DiscoverySettings,
    Usage,
)
from protocols.discovery.interface import Moment

APART = 0.004  # s between the round trips of two brokers
ASKING = DiscoverySettings(bdns=(BDN,))


def topology(stage: Stage, shape: str) -> Scenario:
    """A client finds the nearest of all brokers, in no more time than the bar allows."""
    distances = random_distances(stage, stage.size, APART)
    stage.start("bdn", bdn())
    start_brokers(stage, distances, shape)
    client = Client(stage, "client", ASKING)
    yield Pause(SETTLED)
    for _ in range(2):  # the second time with a cookie
        yield client.discover()
        found = client.found
        assert found.winner.name == nearest(distances), (found.winner, distances)
        assert found.responses == len(distances), f"{found.responses} of {len(distances)}"
        assert found.attempts == 1, "nothing was lost, so nothing had to be asked again"
        check_bar(found, distances)
        yield Pause(0.1)


@scenario("discovery-unconnected", nodes=5, both_worlds=False)
def unconnected(stage: Stage) -> Scenario:
    """No broker is linked to another; the BDN hands the request to all of them."""
    yield from topology(stage, "unconnected")
    injected = stage.protocol("bdn", Bdn).counts
    assert injected.injections == 2 * stage.size, injected


@scenario("discovery-star", nodes=5, both_worlds=False)
def star(stage: Stage) -> Scenario:
    """All brokers are linked to one; the BDN injects at the closest and the farthest."""
    yield from topology(stage, "star")
    injected = stage.protocol("bdn", Bdn).counts
    assert injected.injections <= 4, injected


@scenario("discovery-linear", nodes=5, both_worlds=False)
def linear(stage: Stage) -> Scenario:
    """Only the first broker of a line is known to the BDN; the line hands the request on."""
    yield from topology(stage, "linear")


@scenario("discovery-islands", nodes=8, both_worlds=False)
def islands(stage: Stage) -> Scenario:
    """Two stars and a loner: the BDN injects in each component, so nobody is missed."""
    distances = random_distances(stage, stage.size, APART)
    names = list(distances)
    half = stage.size // 2
    stage.start("bdn", bdn())
    for index, name in enumerate(names):
        hub = names[0] if index < half else names[half]
        links = () if name == hub or index == stage.size - 1 else (hub,)
        stage.start(name, broker(BrokerSettings(bdns=(BDN,), links=links)))
    place(stage, "client", distances)
    client = Client(stage, "client", ASKING)
    yield Pause(SETTLED)
    yield client.discover()
    assert client.found.winner.name == nearest(distances)
    assert client.found.responses == stage.size


@scenario("discovery-loss", nodes=5, faults=(Loss(0.5, traffic="datagrams"),), both_worlds=False)
def loss(stage: Stage) -> Scenario:
    """Half of all requests, responses and pings are lost; what was measured is judged rightly."""
    distances = random_distances(stage, stage.size, 2 * APART)
    stage.start("bdn", bdn())
    start_brokers(stage, distances, stage.rng.choice(("unconnected", "star", "linear")))
    client = Client(stage, "client", ASKING)
    bdn_counts = stage.protocol("bdn", Bdn)
    wanted = 1 if not stage.protocol("b1", Broker).config.bdns else stage.size
    yield Until(lambda: len(bdn_counts.brokers()) == wanted, within=60, what="all advertisements")
    yield client.discover()
    end = client.ends[-1]
    if isinstance(end, BrokerFound):
        measured = {one.name: distances[one.name] for one in end.candidates if one.answered}
        assert end.winner.name == nearest(measured), (end.winner, measured)
    else:
        assert "answered" in end.reason, end.reason


@scenario("discovery-duplicates", nodes=5, faults=(Duplicate(0.6, within=0.05),), both_worlds=False)
def duplicates(stage: Stage) -> Scenario:
    """Much arrives twice; a broker answers each attempt once, and a BDN propagates it once."""
    distances = random_distances(stage, stage.size, APART)
    stage.start("bdn", bdn())
    start_brokers(stage, distances, "star")
    client = Client(stage, "client", ASKING)
    yield Pause(SETTLED)
    yield client.discover()
    assert client.found.winner.name == nearest(distances)
    yield Pause(0.5)  # the last copies are under way
    assert stage.protocol("bdn", Bdn).counts.propagated == client.found.attempts
    for name in distances:
        answered = stage.protocol(name, Broker).counts.answered
        assert answered <= client.found.attempts, f"{name} answered {answered} times"


@scenario("discovery-liar", nodes=5, both_worlds=False)
def liar(stage: Stage) -> Scenario:
    """A far broker claims to be near and idle, by false timestamps: the pings decide."""
    distances = random_distances(stage, stage.size - 1, APART)
    lie = stage.rng.choice((-3600.0, -0.2, 0.03, 0.0, 3600.0))
    stage.start("bdn", bdn())
    start_brokers(stage, distances, "unconnected")
    distances["liar"] = 0.08
    idle = Usage(memory_total=1 << 40)
    stage.start(
        "liar", broker(BrokerSettings(bdns=(BDN,)), idle, clock=lambda now: Moment(now + lie, 0.0))
    )
    place(stage, "client", {"liar": 0.08})
    client = Client(stage, "client", ASKING)
    yield Pause(SETTLED)
    yield client.discover()
    found = client.found
    assert found.winner.name == nearest(distances), (found.winner, lie)
    told = next(one for one in found.candidates if one.name == "liar")
    assert told.plausible == (lie in (0.03, 0.0)), told


@scenario("discovery-visitor", nodes=5, both_worlds=False)
def visitor(stage: Stage) -> Scenario:
    """A client whose clock is minutes off estimates each delay within the error that it states."""
    sim = simulator(stage)
    distances = random_distances(stage, stage.size, APART)
    stage.start("bdn", bdn())
    for name, links in linked(list(distances), stage.rng.choice(("unconnected", "star"))).items():
        off = stage.rng.uniform(-0.004, 0.004)
        recipe = broker(
            BrokerSettings(bdns=(BDN,), links=links), clock=lambda now: Moment(now, 0.004)
        )
        sim.add_node(name, recipe, offset=off)
    place(stage, "client", distances)
    client = Client(stage, "client", ASKING, offset=stage.rng.choice((-300.0, -0.3, 0.02, 300.0)))
    yield Pause(SETTLED)
    for _ in range(2):
        yield client.discover()
        assert client.found.winner.name == nearest(distances)
        for one in client.found.candidates:
            assert one.plausible, one
            off = abs(one.estimated_delay - distances[one.name] / 2)
            assert off <= one.delay_error + LATENCY, (off, one)
            assert one.delay_error <= 0.03, one
        yield Pause(0.1)


@scenario("discovery-dead-responder", nodes=5, both_worlds=False)
def dead_responder(stage: Stage) -> Scenario:
    """The nearest broker answers and dies before it is pinged: the next nearest is chosen."""
    distances = random_distances(stage, stage.size, APART)
    stage.start("bdn", bdn())
    start_brokers(stage, distances, "unconnected")
    # The farthest of all makes the requester wait, and the nearest dies in that time.
    distances["far"] = 0.2
    stage.start("far", broker(BrokerSettings(bdns=(BDN,))))
    place(stage, "client", {"far": 0.2})
    client = Client(stage, "client", ASKING)
    yield Pause(SETTLED)
    victim = nearest(distances)
    end = client.discover()
    yield Until(
        lambda: stage.protocol(victim, Broker).counts.answered == 1, 4, "the victim's answer"
    )
    yield Pause(distances[victim])
    stage.crash(victim)
    yield end
    del distances[victim]
    assert client.found.winner.name == nearest(distances)
    told = next(one for one in client.found.candidates if one.name == victim)
    assert told.verdict.startswith("answered none of"), told
    assert client.found.phases.total < 1.5, client.found.phases


@scenario("discovery-dead-bdns", nodes=5, both_worlds=False)
def dead_bdns(stage: Stage) -> Scenario:
    """All BDNs are dead: the last target set, or one broker in reach of multicast, is enough."""
    distances = random_distances(stage, stage.size, APART)
    sim = simulator(stage)
    stage.start("bdn", bdn())
    # Nobody but b0 shares a LAN with the client; the others are behind b0.
    for name in distances:
        links = () if name == "b0" else ("b0",)
        lan = "here" if name == "b0" else "elsewhere"
        recipe = broker(BrokerSettings(bdns=(BDN,), links=links))
        sim.add_node(name, recipe, lan=lan)
    place(stage, "client", distances)
    asking = DiscoverySettings(bdns=(BDN, "gone:7400"))
    client = Client(stage, "client", asking)
    sim.node("client").lan = "here"
    yield Pause(SETTLED)
    stage.crash("bdn")
    yield client.discover()  # nothing is known yet: only multicast is left
    assert client.found.winner.name == nearest(distances), client.found
    assert client.found.responses == stage.size
    assert "multicast" in client.found.sources
    yield Pause(0.1)
    sim.node("client").lan = "nowhere"
    stage.crash("client")
    stage.restart("client")  # it still knows its target set
    yield client.discover()
    assert client.found.winner.name == nearest(distances), client.found
    for name in distances:
        stage.crash(name)
    yield client.discover()
    assert "no broker answered within 4 s" in client.failed.reason, client.failed.reason


@scenario("discovery-multicast", nodes=6, both_worlds=False)
def multicast(stage: Stage) -> Scenario:
    """A LAN without any BDN: linked or not, all brokers answer, and nobody is waited for long."""
    names = [f"b{index}" for index in range(stage.size)]
    shape = stage.rng.choice(("unconnected", "star", "linear"))
    for name, links in linked(names, shape).items():
        stage.start(name, broker(BrokerSettings(links=links)))
    client = Client(stage, "client", DiscoverySettings())
    yield Pause(SETTLED)
    yield client.discover()
    assert client.found.responses == stage.size
    check_bar(client.found, dict.fromkeys(names, 0.0))


@scenario("discovery-flood", nodes=5, both_worlds=False)
def flood(stage: Stage) -> Scenario:
    """One address floods the BDN and a broker; others are served as ever."""
    distances = random_distances(stage, stage.size, APART)
    stage.start("bdn", bdn(BdnSettings(capacity=stage.size + 3)))
    start_brokers(stage, distances, "star")
    client = Client(stage, "client", ASKING)
    stage.start("flooder", add_flooder)
    yield Pause(SETTLED)
    sim = simulator(stage)
    flooder = stage.protocol("flooder", Flooder)
    for _ in range(20):
        for target in ("bdn", "b0"):
            sim.call("flooder", flooder.flood, address_of(target), 100)
        yield Pause(0.01)
    yield client.discover()
    assert client.found.winner.name == nearest(distances)
    counts = stage.protocol("bdn", Bdn).counts
    assert counts.rate_limited > 500, counts
    assert len(stage.protocol("bdn", Bdn).brokers()) <= stage.size + 3


@scenario("discovery-churn", nodes=6, both_worlds=False)
def churn(stage: Stage) -> Scenario:
    """Brokers and the BDN come and go; a watching client ends at the nearest that lives."""
    distances = random_distances(stage, stage.size, 3 * APART)
    stage.start("bdn", bdn())
    start_brokers(stage, distances, "star")
    watching = DiscoverySettings(bdns=(BDN,), every=1.0, timeout=2.0)
    client = Client(stage, "client", watching)
    yield Pause(SETTLED)
    stage.call("client", lambda host: host.protocol(type(client.requester)).watch)
    names = [*distances, "bdn"]
    for _ in range(6):
        victim = stage.rng.choice(names)
        stage.crash(victim)
        yield Pause(stage.rng.uniform(0.2, 2.0))
        stage.restart(victim)
    yield Until(lambda: _settled(client, nearest(distances)), 120, "the nearest broker again")


def _settled(client: Client, name: str) -> bool:
    current = client.requester.current
    return current is not None and current.name == name


@scenario("discovery-steady", nodes=4, both_worlds=False)
def steady(stage: Stage) -> Scenario:
    """Two brokers are equally near, within jitter: a client stays; then a better one comes."""
    sim = simulator(stage)
    stage.start("bdn", bdn())
    for name in ("b0", "b1"):
        stage.start(name, broker(BrokerSettings(bdns=(BDN,))))
    place(stage, "client", {"b0": 0.02, "b1": 0.0205, "b2": 0.005})
    watching = DiscoverySettings(bdns=(BDN,), every=0.5)
    client = Client(stage, "client", watching)
    yield Pause(SETTLED)
    stage.call("client", lambda host: host.protocol(type(client.requester)).watch)
    yield Pause(30)
    assert len(client.moves) == 1, client.moves
    stage.start("b2", broker(BrokerSettings(bdns=(BDN,))))
    yield Until(lambda: _settled(client, "b2"), 10, "the move to the nearer broker")
    assert len(client.moves) == 2, client.moves
    sim.crash("b2")
    yield Until(lambda: not _settled(client, "b2"), 15, "the move away from a dead broker")
