"""Brokers in any graph, clients, and an oracle that knows what everybody wished for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from random import Random

from msgspec.structs import replace

from overlay.host import Host
from overlay.ids import NodeId
from overlay.predicates import Constraint, Item, Predicate, determines, matches
from overlay.scenario import Pause, Scenario, Stage, Until
from protocols.content import Content, ContentSettings, Delivered, EntryId, entry_id

# Shorter than the defaults, so that a story is short; the proportions are the same.
QUICK = ContentSettings(beat=0.5, lease=2.0, client_lease=3.0, patience=1.0, settle=0.1)
SETTLED = 8.0  # s: leases run out, and each ledger is compared some times
VALUES = range(3)
ITEMS: tuple[dict[str, int], ...] = (
    *({"x": x, "y": y} for x, y in product(VALUES, VALUES)),
    *({name: value} for name in "xy" for value in VALUES),
)


def some_constraint(rng: Random, *, both: float) -> Constraint:
    """Ranges over one or two small attributes, which often cover each other."""
    predicates: list[Predicate] = []
    for name in ("x", "y") if rng.random() < both else (rng.choice("xy"),):
        low = rng.choice((0, 0, 0, 1, 2))
        high = rng.choice((2, 2, 2, low, max(low, 1)))
        predicates += [Predicate(name, ">=", low), Predicate(name, "<=", high)]
    return Constraint.of(*predicates)


def random_graph(
    rng: Random, names: Sequence[NodeId], extra: int = 0
) -> list[tuple[NodeId, NodeId]]:
    """The edges of a connected graph: a tree, and so many edges more."""
    edges = {tuple(sorted((name, rng.choice(names[:at])))) for at, name in enumerate(names) if at}
    for _ in range(extra):
        edges.add(tuple(sorted(rng.sample(names, 2))))
    return sorted((one, other) for one, other in edges)


class ContentWorld:
    """The nodes of a scenario, and the oracle."""

    def __init__(
        self,
        stage: Stage,
        edges: Iterable[tuple[NodeId, NodeId]],
        settings: ContentSettings = QUICK,
    ) -> None:
        self.stage = stage
        self.settings = settings
        self.edges = list(edges)
        self.brokers = list(dict.fromkeys(name for edge in self.edges for name in edge))
        self.client_of: dict[NodeId, NodeId] = {}
        self.first_broker: dict[NodeId, NodeId] = {}  # whom a client turns to when it starts
        self.advertised: dict[NodeId, dict[str, Constraint]] = {}
        self.wanted: dict[NodeId, dict[str, Constraint]] = {}
        self.delivered: list[Delivered] = []
        for name in self.brokers:
            links = [
                one if other == name else other for one, other in self.edges if name in (one, other)
            ]
            self._start(name, role="broker", links=tuple(links))

    def _start(self, name: NodeId, **changed: object) -> None:
        settings = replace(self.settings, **changed)

        def add(host: Host) -> None:
            host.add(Content, settings)
            host.listen(Delivered, self.delivered.append)

        self.advertised[name], self.wanted[name] = {}, {}
        self.stage.start(name, add)

    # -- what happens ---------------------------------------------------------------------------

    def start_client(self, name: NodeId, broker: NodeId) -> None:
        """A client of that broker."""
        self.client_of[name] = self.first_broker[name] = broker
        self._start(name, role="client", broker=broker)

    def crash(self, name: NodeId) -> None:
        """It dies with what its application wished for."""
        self.advertised[name], self.wanted[name] = {}, {}
        self.stage.crash(name)

    def stop(self, name: NodeId) -> None:
        """It leaves."""
        self.advertised[name], self.wanted[name] = {}, {}
        self.stage.stop(name)

    def restart(self, name: NodeId) -> None:
        """It returns, and knows nothing."""
        self.stage.restart(name)

    def attach(self, client: NodeId, broker: NodeId) -> None:
        """A client turns to another broker."""
        self.client_of[client] = broker
        self.stage.call(client, lambda host: host.protocol(Content).attach, broker)

    def advertise(
        self, name: NodeId, entry: str, constraint: Constraint, *, whole: bool = False
    ) -> None:
        """Advertise."""
        self.advertised[name][entry] = constraint
        self.stage.call(
            name,
            lambda host: partial(host.protocol(Content).advertise, whole=whole),
            entry,
            constraint,
        )

    def subscribe(self, name: NodeId, entry: str, constraint: Constraint) -> None:
        """Subscribe."""
        self.wanted[name][entry] = constraint
        self.stage.call(name, lambda host: host.protocol(Content).subscribe, entry, constraint)

    def unadvertise(self, name: NodeId, entry: str) -> None:
        """Withdraw."""
        del self.advertised[name][entry]
        self.stage.call(name, lambda host: host.protocol(Content).unadvertise, entry)

    def unsubscribe(self, name: NodeId, entry: str) -> None:
        """End."""
        del self.wanted[name][entry]
        self.stage.call(name, lambda host: host.protocol(Content).unsubscribe, entry)

    def publish(self, name: NodeId, entry: str, item: Item) -> int:
        """Publish; the sequence number."""
        command = self.stage.call(name, lambda host: host.protocol(Content).publish, entry, item)
        assert isinstance(command, int)
        return command

    def churn(self, names: Collection[NodeId] | None = None) -> None:
        """One random wish of a random node."""
        rng = self.stage.rng
        here = [one for one in self.stage.names if names is None or one in names]
        name = rng.choice(here)
        act = rng.random()
        if act < 0.35:
            constraint = some_constraint(rng, both=0.7)
            self.advertise(name, rng.choice("pqr"), constraint, whole=rng.random() < 0.2)
        elif act < 0.75:
            self.subscribe(name, rng.choice("stu"), some_constraint(rng, both=0.3))
        elif act < 0.87 and self.advertised[name]:
            self.unadvertise(name, rng.choice(list(self.advertised[name])))
        elif self.wanted[name]:
            self.unsubscribe(name, rng.choice(list(self.wanted[name])))

    # -- the oracle -----------------------------------------------------------------------------

    def component(self, name: NodeId) -> set[NodeId]:
        """Whom the links lead to, of those that run."""
        running = set(self.stage.names)
        edges = (*self.edges, *self.client_of.items())
        up = [edge for edge in edges if running.issuperset(edge)]
        found = {name}
        while more := {end for edge in up if found & set(edge) for end in edge} - found:
            found |= more
        return found

    def expected(self, publisher: NodeId, item: Item) -> set[EntryId]:
        """The subscriptions that must get an item."""
        near = self.component(publisher)
        return {
            entry_id(name, entry)
            for name, wishes in self.wanted.items()
            if name in near
            for entry, wish in wishes.items()
            if matches(item, wish)
        }

    def publications(self) -> Iterator[tuple[NodeId, str, dict[str, int]]]:
        """Everything that anybody may publish."""
        for name in self.stage.names:
            for entry, constraint in self.advertised.get(name, {}).items():
                for item in ITEMS:
                    if determines(constraint, item):
                        yield name, entry, item

    def check(self, settled: float = SETTLED) -> Scenario:
        """Once all is quiet, everything reaches exactly those who want it, once."""
        yield Pause(settled)
        self.check_tables()
        self.delivered.clear()
        due: list[tuple[EntryId, EntryId, int]] = []
        for name, entry, item in self.publications():
            sequence = self.publish(name, entry, item)
            due += [
                (wanting, entry_id(name, entry), sequence) for wanting in self.expected(name, item)
            ]
        yield Until(
            lambda: len(self.delivered) >= len(due), within=5, what=f"{len(due)} deliveries"
        )
        yield Pause(0.5)  # for what must not come
        came = [(one.subscription, one.advertisement, one.sequence) for one in self.delivered]
        missing, extra = set(due) - set(came), set(came) - set(due)
        assert sorted(came) == sorted(due), f"{missing=} {extra=} {len(came)} of {len(due)}"
        self.check_order()

    def check_tables(self) -> None:
        """Nobody knows of an entry that is gone, or out of reach."""
        for name in self.stage.names:
            content = self.stage.protocol(name, Content)
            near = self.component(name)
            advertised = {entry_id(one, e) for one in near for e in self.advertised[one]}
            wanted = {entry_id(one, e) for one in near for e in self.wanted[one]}
            orphans = {one.id for one in content.router.srt} - advertised
            orphans |= {row.id for row in content.subscriptions()} - wanted
            assert not orphans, f"{name} still knows {orphans}"
            content.router.audit()

    def check_order(self) -> None:
        """Each subscription got each publisher's in growing order, none twice."""
        last: dict[tuple[EntryId, EntryId], tuple[int, int]] = {}
        for one in self.delivered:
            key = (one.subscription, one.advertisement)
            place = (one.epoch, one.sequence)
            assert place > last.get(key, (0, 0)), f"{key}: {place} after {last[key]}"
            last[key] = place
