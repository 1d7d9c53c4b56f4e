"""Topics while messages are lost, doubled and overtaken, and receivers crash or do not read."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis.stateful import initialize, rule
from hypothesis.strategies import (
    floats,
    integers,
    sampled_from,
)
from msgspec.structs import replace

from overlay.ids import NodeId
from protocols.gateways.events import GatewayAppointed
from protocols.gateways.interface import RemoteGateway
from protocols.membership.events import AttributesChanged, MemberFailed, MemberJoined
from protocols.topics import (
    Gap,
    Publisher,
    PublisherAppeared,
    Replay,
    Subscription,
    SubscriptionFailed,
    TopicConfig,
    Topics,
    TopicsSettings,
)
from protocols.topics.names import word_of
from tests.property.chaos import Chaos
from tests.property.network import Network
from tests.recording import Recorded, RecordingEffects, TickEnd
from tests.unit.topics.node import FixedBook, FixedLinks
from tests.unit.zones.node import FixedMembership

TOPIC = "plant/7"
RECEIVERS = ("b", "c", "d")
TIMES = TopicsSettings(
    heartbeat=0.5, silence=100.0, fail_after=3600.0, handshake_within=600.0, lost_grace=600.0,
    tree_from=3, tree_until=2, nack_tries=1000, pending_bytes=1024,
)  # fmt: skip


class TickingNetwork(Network):
    """What is put off to the end of a tick is done after each input."""

    def settle(self, name: NodeId) -> None:
        effects = self.effects[name]
        done: list[Recorded] = []
        while recorded := effects.drain():
            done += [one for one in recorded if not isinstance(one, TickEnd)]
            put_off = [one.callback for one in recorded if isinstance(one, TickEnd)]
            for callback in dict.fromkeys(put_off):
                callback(self.now)
        effects.recorded = done
        super().settle(name)


class Reader:
    """One life of a receiver: what it got, and what it was told never to get."""

    def __init__(self, topics: Topics, one: Subscription, born: int) -> None:
        self.born = born  # how much was heard before
        self.topics = topics
        self.one = one
        self.numbers: list[int] = []
        self.owed_from: int | None = None
        self.own_gaps: list[Gap] = []  # in what was replayed to it
        one.tell_gap = self.own_gaps.append

    def read(self, batches: int) -> None:
        while batches and self.one.queue:
            batch = self.one.take()
            batches -= 1
            for place, item in enumerate(batch.items):
                assert item == batch.first + place, (item, batch)
            if self.numbers:
                assert batch.first > self.numbers[-1], (batch.first, self.numbers[-1])
            self.numbers += batch.items


class TopicsUnderChaos(Chaos):
    """One publisher and up to three receivers; "b" may crash and come back."""

    config: Mapping[str, Any]
    zones = False  # whether the receivers are in another zone, behind two gateways
    gaps_allowed = False
    times = TIMES

    @initialize(seed=integers(0, 99), count=integers(1, 3))
    def start(self, seed: int, count: int) -> None:
        self.network = TickingNetwork()
        self.names = RECEIVERS[:count]
        self.lives = 0
        self.seed = seed
        self.bases: dict[NodeId, FixedMembership] = {}
        self.readers: dict[NodeId, Reader] = {}
        self.seconds: dict[NodeId, Reader] = {}  # who came later, and wanted a replay
        self.published = 0
        topics = self.add("a")
        for gateway in ("ga", "gb") if self.zones else ():
            self.add(gateway)
            self.introduce(gateway)
        for name in self.names:
            self.enter(name)
        self.publisher: Publisher = topics.publish(TOPIC, TopicConfig(**self.config), 0.0)
        self.network.settle("a")
        for gateway in ("ga", "gb") if self.zones else ():
            self.network.tell(gateway, GatewayAppointed(TOPIC))

    def zone_of(self, name: NodeId) -> str:
        return "far" if self.zones and name not in ("a", "ga") else "near"

    def add(self, name: NodeId) -> Topics:
        self.lives += 1
        zone = self.zone_of(name)
        base = self.bases[name] = FixedMembership(zone, name)
        rng = Random(f"{self.seed}/{name}/{self.lives}")
        links, book = FixedLinks(), FixedBook(name)
        links.peers = tuple(one for one in ("a", "ga", "gb", *self.names) if one != name)
        if self.zones:
            book.gateway = "ga" if zone == "near" else "gb"
            book.remote = {
                "ga": {"gb": RemoteGateway("far", publishes=False, subscribes=True)},
                "gb": {"ga": RemoteGateway("near", publishes=True, subscribes=False)},
            }.get(name, {})
            book.publishers, book.subscribers = (("a",), ()) if zone == "near" else ((), self.names)

        def make(effects: RecordingEffects) -> Topics:
            return Topics(name, effects, rng, self.times, base=base, links=links, book=book)

        return self.network.add(name, make)

    def enter(self, name: NodeId) -> None:
        """A receiver starts, and everybody in its zone knows at once what it wants."""
        born = len(self.network.heard)
        topics = self.add(name)
        one = topics.subscribe(TOPIC, self.network.now, capacity=200)
        self.readers[name] = Reader(topics, one, born)
        self.introduce(name)
        self.network.settle(name)

    def introduce(self, name: NodeId) -> None:
        for other in list(self.network.machines):
            if other != name and self.zone_of(other) == self.zone_of(name):
                self.tell(other, name)
                self.tell(name, other)

    def tell(self, observer: NodeId, subject: NodeId) -> None:
        zone, fresh = self.zone_of(subject), subject not in self.bases[observer]
        said = {"topics": word_of(TOPIC)} if subject in self.names else {}
        self.bases[observer].put(subject, 100, **said)
        if fresh:
            self.network.tell(observer, MemberJoined(zone, subject, 100))
        self.network.tell(observer, AttributesChanged(zone, subject, ("topics",)))

    # -- rules ------------------------------------------------------------------------------------

    @rule(count=integers(1, 5), size=sampled_from([10, 60, 300]))
    def publish(self, count: int, size: int) -> None:
        """A few, each in a chunk of its own, or all in one."""
        before = self.published
        if size == 10:
            items = list(range(before + 1, before + count + 1))
            ends = [size * place for place in range(1, count + 1)]
            self.published += self.publisher.put_many(items, ends, 0, self.network.now)
        else:
            for _ in range(count):
                if self.publisher.put(self.published + 1, size, self.network.now):
                    self.published += 1
        for reader in self.readers.values():
            begun = any(stream.begun for stream in reader.topics.streams)
            if begun and reader.owed_from is None:
                reader.owed_from = before + 1
        self.network.settle("a")

    @rule(name=sampled_from(RECEIVERS), batches=integers(1, 5))
    def read(self, name: NodeId, batches: int) -> None:
        if name in self.readers:
            self.read_some(name, batches)

    def read_some(self, name: NodeId, batches: int) -> None:
        for readers in (self.readers, self.seconds):
            if name in readers:
                reader = readers[name]
                reader.read(batches)
                if reader.one.held:
                    reader.topics.resume(reader.one, self.network.now)
                self.network.settle(name)

    @rule(name=sampled_from(RECEIVERS), last=sampled_from([0, 3, 1000]))
    def subscribe_once_more(self, name: NodeId, last: int) -> None:
        """A second subscription on the same node, or the end of one."""
        if name not in self.readers:
            return
        topics, now = self.readers[name].topics, self.network.now
        if name in self.seconds:
            topics.unsubscribe(self.seconds.pop(name).one, now)
        else:
            born = len(self.network.heard)
            one = topics.subscribe(TOPIC, now, replay=Replay.last(last), capacity=200)
            self.seconds[name] = Reader(topics, one, born)
        self.network.settle(name)

    @rule(seconds=floats(0.0, 0.5))
    def all_is_well_for_a_while(self, seconds: float) -> None:
        self.network.run(seconds)

    @rule(luck=integers(0, 3))
    def crash(self, luck: int) -> None:
        """The first receiver dies, and a new life of it subscribes; not each time."""
        if luck:
            return
        name = self.names[0]
        self.readers.pop(name).read(1000)
        self.seconds.pop(name, None)
        self.network.kill(name)
        for other in list(self.network.machines):
            if name in self.bases[other]:
                self.bases[other].drop(name)
                self.network.tell(other, MemberFailed(self.zone_of(name), name))
        self.enter(name)

    # -- the end ----------------------------------------------------------------------------------

    def teardown(self) -> None:
        """The network is good and all read: everybody has everything, once and in order."""
        if not hasattr(self, "network"):
            return
        for _ in range(20):
            self.network.run(0.5)
            for name in self.names:
                self.read_some(name, 1000)
        assert self.publisher.history.newest == self.published
        assert [error.reason for error in self.network.refused] == []
        told = [event for _, event in self.network.heard if isinstance(event, SubscriptionFailed)]
        assert self.gaps_allowed or told == []
        for readers in (self.readers, self.seconds):
            for name, reader in readers.items():
                self.check(name, reader, alone=readers is self.readers)
        if self.config["reliability"] == "ack":
            assert self.publisher.all_settled
            assert self.publisher.history.messages <= self.config.get("keep", 0)

    def check(self, name: NodeId, reader: Reader, *, alone: bool) -> None:
        """What this life has, or was told to be gone, is all from where it began."""
        heard = [event for who, event in self.network.heard[reader.born :] if who == name]
        assert not alone or any(isinstance(event, PublisherAppeared) for event in heard)
        of_all = [event for event in heard if isinstance(event, Gap)]
        gaps = of_all + reader.own_gaps
        # In ack mode what all have is trimmed, though somebody's replay may be in the midst of it.
        wrong = of_all if self.config["reliability"] == "ack" else gaps
        assert self.gaps_allowed or not wrong, wrong
        gone = [number for gap in gaps for number in range(gap.first, gap.last + 1)]
        known = sorted(reader.numbers + gone)
        begin = known[0] if known else self.published + 1
        assert known == list(range(begin, self.published + 1)), name
        if reader.owed_from is not None:
            assert begin <= reader.owed_from, name


class AckUnderChaos(TopicsUnderChaos):
    """Everything arrives; the publisher waits."""

    config: Mapping[str, Any] = {"reliability": "ack", "history_messages": 40, "window_bytes": 1024}


class KeepingAckUnderChaos(AckUnderChaos):
    """Some of it is kept for who comes later; it gives way to what is new."""

    config: Mapping[str, Any] = AckUnderChaos.config | {"keep": 10}  # type: ignore[operator]
    gaps_allowed = True  # of a replay, when what was kept gave way in the midst of it


class OrderedUnderChaos(TopicsUnderChaos):
    """What arrives is in order, once; who comes later gets what is kept."""

    config: Mapping[str, Any] = {"reliability": "ordered", "keep": 10}

    def check(self, name: NodeId, reader: Reader, *, alone: bool) -> None:
        """Messages may be lost; their order is looked at as they are read."""


class AckAcrossZonesUnderChaos(AckUnderChaos):
    """Everything arrives through two gateways."""

    zones = True


class KeepingAckAcrossZonesUnderChaos(KeepingAckUnderChaos):
    """Gateways keep some, too."""

    zones = True


class NackUnderChaos(TopicsUnderChaos):
    """Everything arrives, since the history is large enough."""

    config: Mapping[str, Any] = {"reliability": "nack"}


class NackAcrossZonesUnderChaos(NackUnderChaos):
    """Everything arrives through two gateways."""

    zones = True


class ShortNackUnderChaos(TopicsUnderChaos):
    """What fell out of the history is a Gap."""

    config: Mapping[str, Any] = {"reliability": "nack", "history_messages": 4}
    gaps_allowed = True


class ImpatientAckUnderChaos(TopicsUnderChaos):
    """Who is silent or slow fails, and is told: nothing is lost in silence."""

    config: Mapping[str, Any] = {
        "reliability": "ack", "history_messages": 8, "window_bytes": 1024, "slow": "disconnect",
    }  # fmt: skip
    gaps_allowed = True
    times = replace(TIMES, fail_after=1.0, lost_grace=0.5, handshake_within=1.0)


class DroppingAckUnderChaos(ImpatientAckUnderChaos):
    """What is dropped for the slow is a Gap."""

    config: Mapping[str, Any] = ImpatientAckUnderChaos.config | {"slow": "drop-oldest"}  # type: ignore[operator]


class ImpatientAckAcrossZonesUnderChaos(ImpatientAckUnderChaos):
    """The same through two gateways."""

    zones = True


MACHINES = (
    ImpatientAckUnderChaos,
    DroppingAckUnderChaos,
    ImpatientAckAcrossZonesUnderChaos,
    AckUnderChaos,
    AckAcrossZonesUnderChaos,
    KeepingAckUnderChaos,
    KeepingAckAcrossZonesUnderChaos,
    OrderedUnderChaos,
    NackUnderChaos,
    NackAcrossZonesUnderChaos,
    ShortNackUnderChaos,
)
for machine in MACHINES:
    machine.TestCase.settings = settings(max_examples=40, stateful_step_count=40)
TestAckUnderChaos = AckUnderChaos.TestCase
TestAckAcrossZonesUnderChaos = AckAcrossZonesUnderChaos.TestCase
TestKeepingAckUnderChaos = KeepingAckUnderChaos.TestCase
TestKeepingAckAcrossZonesUnderChaos = KeepingAckAcrossZonesUnderChaos.TestCase
TestOrderedUnderChaos = OrderedUnderChaos.TestCase
TestNackUnderChaos = NackUnderChaos.TestCase
TestNackAcrossZonesUnderChaos = NackAcrossZonesUnderChaos.TestCase
TestShortNackUnderChaos = ShortNackUnderChaos.TestCase
TestImpatientAckUnderChaos = ImpatientAckUnderChaos.TestCase
TestDroppingAckUnderChaos = DroppingAckUnderChaos.TestCase
TestImpatientAckAcrossZonesUnderChaos = ImpatientAckAcrossZonesUnderChaos.TestCase
del machine
