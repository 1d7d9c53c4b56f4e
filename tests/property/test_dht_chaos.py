"""The hash table, whatever order messages come in: linearizable, and each operation ends once."""

from __future__ import annotations

from functools import partial
from random import Random

from hypothesis import given
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from hypothesis.strategies import (
    DataObject,
    binary,
    booleans,
    data,
    dictionaries,
    floats,
    integers,
    lists,
    none,
    sampled_from,
    tuples,
)

from nodes.scenarios.dht_world import EACH, NAMES, TELLS_VALUE
from overlay.ids import NodeId
from overlay.sim.linearizable import History
from protocols.dht import Dht, DhtSettings, Kind, Operation, Outcome, Status
from protocols.dht.interface import DHT
from protocols.dht.placement import spread
from protocols.dht.shelf import Shelf
from tests.property.network import Network
from tests.recording import RecordingEffects, TickEnd
from tests.unit.dht.node import KNOWN, LIVES, TABLE, Base, View

SETTINGS = DhtSettings(
    serve=True, shard_bits=0, retry=0.1, operation_timeout=2.0, compare=0.5, silence=1.5, settle=0.2
)
KEYS = (b"apple", b"pear")


class Ticks(Network):
    """Each message is a tick of its own."""

    def settle(self, name: NodeId) -> None:
        """Run what was put off to the end of the tick, then take up everything."""
        effects, everything = self.effects[name], []
        while recorded := effects.drain():
            everything += recorded
            ends = [one.callback for one in recorded if isinstance(one, TickEnd)]
            for callback in dict.fromkeys(ends):
                callback(self.now)
        effects.recorded = [one for one in everything if not isinstance(one, TickEnd)]
        super().settle(name)


class Chaos(RuleBasedStateMachine):
    """Three replicas of one shard, and clients on each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.network = Ticks()
        self.history = History()
        self.busy: dict[NodeId, None] = {}
        self.values = 0
        for name in LIVES:
            view = View(name, tuple(LIVES))
            for other, life in LIVES.items():
                view.shown[other][DHT] = f"{life:x}:{TABLE:x}"
            machine = self.network.add(name, partial(self._make, name, view))
            machine._core.life = LIVES[name]
            machine.message_handlers()[type(KNOWN)]("b", KNOWN, self.network.now)
            self.network.settle(name)

    @staticmethod
    def _make(name: NodeId, view: View, effects: RecordingEffects) -> Dht:
        return Dht(name, effects, Random(name), SETTINGS, base=Base(view))

    @rule(name=sampled_from(list(LIVES)), kind=sampled_from(EACH), key=sampled_from(KEYS))
    def ask(self, name: NodeId, kind: Kind, key: bytes) -> None:
        if name in self.busy:
            return
        self.values += 1
        writes = kind not in (Kind.GET, Kind.CONTAINS, Kind.REMOVE, Kind.REMOVE_VALUE)
        compares = kind in (Kind.REPLACE_VALUE, Kind.REMOVE_VALUE)
        value = b"v%d" % self.values if writes else b""
        expected = b"v%d" % max(1, self.values - 2) if compares else b""
        told = self.history.call(
            NAMES[kind], key, value or None, expected=expected or None, who=name
        )
        self.busy[name] = None

        def answer(outcome: Outcome) -> None:
            del self.busy[name]
            if outcome.status is Status.REFUSED:
                self.history.refuse(told)
            elif outcome.status is Status.DONE:
                says = outcome.value if kind in TELLS_VALUE else outcome.applied
                self.history.returned(told, says)

        machine = self.network.machines[name]
        assert isinstance(machine, Dht)
        machine.submit(Operation(kind, key, value, expected), answer, self.network.now)
        self.network.settle(name)

    @precondition(lambda self: self.network.under_way)
    @rule(data=data(), keep=booleans())
    def deliver(self, data: DataObject, keep: bool) -> None:
        at = data.draw(integers(0, len(self.network.under_way) - 1))
        self.network.deliver(at, keep=keep and len(self.network.under_way) < 60)

    @precondition(lambda self: self.network.under_way)
    @rule(data=data())
    def lose(self, data: DataObject) -> None:
        del self.network.under_way[data.draw(integers(0, len(self.network.under_way) - 1))]

    @rule(seconds=floats(0.01, 1.0))
    def wait(self, seconds: float) -> None:
        self.network.pass_time(seconds)

    @rule(seconds=floats(0.1, 1.0))
    def go_well(self, seconds: float) -> None:
        self.network.run(seconds)

    def teardown(self) -> None:
        """When everything arrives again, everything ends, and all replicas have the same."""
        self.network.run(8.0)
        assert not self.busy
        self.history.check()
        machines = [one for one in self.network.machines.values() if isinstance(one, Dht)]
        assert len({one.shards()[0].shelf.digest for one in machines}) == 1
        assert not self.network.refused


TestChaos = Chaos.TestCase


@given(
    sizes=lists(integers(0, 6), min_size=1, max_size=6),
    replicas=integers(1, 7),
    lateral=integers(1, 7),
)
def test_no_zone_holds_half_of_a_group_in_three_zones(
    sizes: list[int], replicas: int, lateral: int
) -> None:
    zones = [(f"z{at}", [f"z{at}-{n}" for n in range(size)]) for at, size in enumerate(sizes)]
    present = [zone for zone, members in zones if members]
    group = spread(zones, replicas, lateral)
    assert len(set(group)) == len(group)
    assert bool(group) == bool(present)
    counts = [sum(name.startswith(f"{zone}-") for name in group) for zone in present]
    if len(present) >= 3:
        assert all(2 * count < len(group) for count in counts)
    elif len(present) == 2:
        assert all(counts)


rows = dictionaries(
    binary(max_size=3),
    tuples(none() | binary(max_size=3), integers(1, 3), integers(1, 9)),
    max_size=12,
)


@given(leader=rows, follower=rows)
def test_leaves_that_differ_are_all_that_must_be_copied(
    leader: dict[bytes, tuple[bytes | None, int, int]],
    follower: dict[bytes, tuple[bytes | None, int, int]],
) -> None:
    shelves = []
    for content in (leader, follower):
        shelf = Shelf()
        for key, (value, ballot, sequence) in content.items():
            shelf.put(key, value, ballot, sequence, 0.0)
        shelves.append(shelf)
    mine, theirs = shelves
    differ = theirs.differing(mine.tree())
    for key in theirs.keys_in(differ):
        theirs.drop(key)
    for key in mine.keys_in(differ):
        record = mine.records[key]
        theirs.put(key, record.value, record.ballot, record.sequence, 0.0)
    assert (theirs.digest, theirs.tree()) == (mine.digest, mine.tree())
    stamps = {key: record.stamp for key, record in mine.records.items()}
    assert {key: record.stamp for key, record in theirs.records.items()} == stamps


@given(binary(max_size=40))
def test_no_key_is_too_strange(key: bytes) -> None:
    view = View("a", ("a",))
    network = Ticks()
    machine = network.add(
        "a", lambda effects: Dht("a", effects, Random(1), SETTINGS, base=Base(view))
    )
    machine.submit(Operation(Kind.PUT, key, b"v"), lambda _: None, network.now)
    assert machine.open_operations == 1
