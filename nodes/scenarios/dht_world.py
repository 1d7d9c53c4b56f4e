"""The stage for scenarios of the hash table: servers, clients that ask at random, and a history."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from nodes.scenarios.zones import QUICK_MEMBERSHIP
from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.scenario import Pause, Scenario, Stage, Until
from overlay.sim import linearizable
from overlay.sim.linearizable import History
from protocols.dht import Dht, DhtSettings, Kind, Operation, Outcome, Status
from protocols.dht.layout import Terms, layout_of
from protocols.membership.machine import Membership
from protocols.routing import Routing, RoutingSettings
from protocols.topology import Topology, TopologySettings

# Shorter than the defaults, so that a story is short; the proportions are the same.
QUICK = DhtSettings(
    serve=True,
    shard_bits=3,
    found_after=1.0,
    settle=0.5,
    compare=0.5,
    silence=2.0,
    retry=0.1,
    operation_timeout=3.0,
    watch_renew=1.0,
)
DURABLE = msgspec.structs.replace(QUICK, storage="sqlite")
HOP_BY_HOP = msgspec.structs.replace(QUICK, direct=False)
SETTLING = 60.0  # s
ZONE = "z"
KEYS = [b"apple", b"pear", b"plum", b"quince", b"fig", b"\x00\xff"]

NAMES: dict[Kind, linearizable.Kind] = {
    Kind.GET: "get",
    Kind.CONTAINS: "contains",
    Kind.PUT: "put",
    Kind.PUT_AND_RETRIEVE: "put_and_retrieve",
    Kind.PUT_IF_ABSENT: "put_if_absent",
    Kind.REPLACE: "replace",
    Kind.REPLACE_VALUE: "replace_if",
    Kind.REMOVE: "remove",
    Kind.REMOVE_VALUE: "remove_if",
}
TELLS_VALUE = (Kind.GET, Kind.PUT_AND_RETRIEVE, Kind.REPLACE)
EACH = [*NAMES, Kind.GET, Kind.GET, Kind.PUT, Kind.REPLACE_VALUE]


class Store:
    """Servers of one zone, and everything that was asked of them."""

    def __init__(self, stage: Stage, settings: DhtSettings = QUICK) -> None:
        self.stage = stage
        self.settings = settings
        self.history = History()
        self.members = [f"n{index}" for index in range(stage.size)]
        # More clients have more keys: the checker tries all orders of what overlaps on one.
        self.keys = [*KEYS, *(b"key-%d" % at for at in range(2 * stage.size - len(KEYS)))]
        self.busy: dict[NodeId, None] = {}  # whose client waits for an answer
        self.outcomes: list[Outcome] = []
        self.founded = False
        self._values = 0
        self._lives: dict[NodeId, int] = {}

    # -- nodes ------------------------------------------------------------------------------------

    def recipe(self, name: NodeId) -> Recipe:
        """A server; the first two members are everybody's contacts."""

        def add(host: Host) -> None:
            contacts = [one for one in self.stage.names or self.members[:2] if one != name]
            base = host.add(Membership, QUICK_MEMBERSHIP, ZONE, zone=ZONE, contacts=contacts)
            settings = self.settings
            if self.founded:  # whoever comes later joins the table that is there
                settings = msgspec.structs.replace(settings, founders=0)
            router = None
            if not settings.direct:
                links = host.add(Topology, TopologySettings(), ZONE, members=base.view)
                router = host.add(Routing, RoutingSettings(), ZONE, members=base.view, links=links)
            host.add(Dht, settings, base=base, router=router)

        return add

    def start(self) -> Scenario:
        """Start everybody, and wait until all is in order."""
        for name in self.members:
            self.stage.start(name, self.recipe(name))
        yield self.settled()
        self.founded = True

    def join(self, name: NodeId) -> None:
        """Start one more server."""
        self.members.append(name)
        self.stage.start(name, self.recipe(name))

    def crash(self, name: NodeId, keep: str = "none") -> None:
        """Kill a server; what its client waits for stays unknown."""
        self.busy.pop(name, None)
        self._lives[name] = self._lives.get(name, 0) + 1
        self.stage.crash(name, keep)  # type: ignore[arg-type]

    def leave(self, name: NodeId) -> Scenario:
        """Let a server retire, wait until others have its shards, and stop it."""
        self.members.remove(name)
        self.stage.call(name, lambda host: host.protocol(Dht).retire)
        table = self.dht(name)
        yield Until(lambda: table.seats == 0, SETTLING, f"{name} without shards")
        self.busy.pop(name, None)
        self.stage.stop(name)

    def dht(self, name: NodeId) -> Dht:
        """The table of one who runs."""
        return self.stage.protocol(name, Dht)

    # -- clients ----------------------------------------------------------------------------------

    def ask(self, name: NodeId, operation: Operation) -> None:
        """Let the client of a node begin an operation, and write down what comes of it."""
        told = self.history.call(
            NAMES[operation.kind],
            operation.key,
            operation.value or None,
            expected=operation.expected or None,
            who=name,
        )
        life = self._lives.get(name, 0)
        self.busy[name] = None

        def answer(outcome: Outcome) -> None:
            if self._lives.get(name, 0) != life:
                return
            self.busy.pop(name, None)
            self.outcomes.append(outcome)
            if outcome.status is Status.REFUSED:
                self.history.refuse(told)
            elif outcome.status is Status.DONE:
                says_value = operation.kind in TELLS_VALUE
                self.history.returned(told, outcome.value if says_value else outcome.applied)

        self.stage.call(name, lambda host: host.protocol(Dht).submit, operation, answer)

    def some_operation(self) -> Operation:
        """Any operation on any key, with a value that nobody else writes."""
        rng = self.stage.rng
        self._values += 1
        value = b"v%d" % self._values
        expected = b"v%d" % rng.randint(max(1, self._values - 6), self._values)
        kind = rng.choice(EACH)
        writes = kind not in (Kind.GET, Kind.CONTAINS, Kind.REMOVE, Kind.REMOVE_VALUE)
        compares = kind in (Kind.REPLACE_VALUE, Kind.REMOVE_VALUE)
        return Operation(
            kind,
            rng.choice(self.keys),
            value if writes else b"",
            expected if compares else b"",
        )

    def load(self, steps: int) -> Scenario:
        """Let every client that waits for nothing ask something, again and again."""
        rng = self.stage.rng
        for _ in range(steps):
            for name in self.stage.names:
                if name not in self.busy and name in self.members and rng.random() < 0.6:
                    self.ask(name, self.some_operation())
            yield Pause(rng.uniform(0.0, 0.04))

    def quiet(self) -> Until:
        """All answers are there."""
        return Until(lambda: not self.busy, SETTLING, "an answer to everything")

    def read_all(self, keys: Collection[bytes] = ()) -> Scenario:
        """Have several clients read every key, at a time when all must answer."""
        yield self.quiet()
        for key in keys or self.keys:
            for name in self.stage.rng.sample(self.stage.names, min(3, len(self.stage.names))):
                if name in self.members:
                    self.ask(name, Operation(Kind.GET, key))
            yield self.quiet()
            assert self.outcomes[-1].status is Status.DONE, self.outcomes[-1]

    # -- what must come true ----------------------------------------------------------------------

    def problem(self) -> str:
        """What is not in order; empty when everything is."""
        names = [name for name in self.stage.names if name in self.members]
        if not names:
            return ""
        tables = {self.dht(name).table for name in names}
        if len(tables) != 1 or 0 in tables:
            return f"tables {tables}"
        settings = self.settings
        terms = Terms(
            settings.shard_bits, settings.node_points, settings.replicas, settings.lateral
        )
        layout = layout_of(tuple(sorted(names)), terms)
        for number in range(1 << settings.shard_bits):
            wanted = layout.names(number, settings.replicas)
            problem = self.shard_problem(number, wanted, names)
            if problem:
                return problem
        return ""

    def shard_problem(
        self, number: int, wanted: Collection[NodeId], names: Collection[NodeId]
    ) -> str:
        """What is not in order about one shard."""
        held = {name: self.dht(name).shards().get(number) for name in names}
        seated = {name: one for name, one in held.items() if one is not None and one.seated}
        leaders = [name for name, one in seated.items() if one.reign is not None]
        if leaders != [next(iter(wanted))]:
            return f"shard {number}: {leaders} lead, not the first of {wanted}"
        leader = seated[leaders[0]]
        if leader.group.names() != tuple(wanted):
            return f"shard {number}: {leader.group.names()}, not {wanted}"
        assert leader.reign is not None
        if leader.reign.recovering or leader.reign.frozen:
            return f"shard {number}: {leaders[0]} is not ready"
        for name, one in seated.items():
            if name not in wanted:
                return f"shard {number}: {name} is seated"
            if one.shelf.digest != leader.shelf.digest or one.promised != leader.promised:
                return f"shard {number}: {name} and {leaders[0]} differ"
        if len(seated) != len(wanted):
            return f"shard {number}: only {list(seated)} know"
        return ""

    def settled(self) -> Until:
        """Every shard has its group, its leader, and the same records everywhere."""
        return Until(lambda: not self.problem(), SETTLING, "a table in order")

    def finish(self) -> Scenario:
        """In the end all is in order, can be read, and was linearizable."""
        yield self.quiet()
        yield self.settled()
        yield from self.read_all()
        self.history.check()
