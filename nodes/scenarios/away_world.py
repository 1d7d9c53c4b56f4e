"""Brokers that keep, subscribers that come and go, and an oracle of what each must have got."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from nodes.scenarios.content_world import QUICK, ContentWorld
from overlay.host import Host
from overlay.ids import NodeId
from overlay.predicates import Constraint
from overlay.scenario import Pause, Scenario, Stage, Until
from protocols.content import Content, ContentSettings
from protocols.mobility import (
    Follower,
    Gap,
    Keeper,
    KeepingSettings,
    Mobility,
    MobilitySettings,
    Received,
)

# Shorter than the defaults, so that a story is short; the proportions are the same.
KEEPING = KeepingSettings(beat=0.3, lease=1.0, overlap=1.0, resend=0.2, fetch_within=4.0)
MOVING = MobilitySettings(retry=0.2, patience=4.0)
WANTED = Constraint.parse("x >= 0")
STORY = "s"  # what each subscriber calls its subscription


class AwayWorld(ContentWorld):
    """A content world whose brokers keep, with mobile subscribers beside its clients."""

    def __init__(
        self,
        stage: Stage,
        edges: Iterable[tuple[NodeId, NodeId]],
        keeping: KeepingSettings = KEEPING,
        settings: ContentSettings = QUICK,
    ) -> None:
        self.keeping = keeping
        self.received: dict[NodeId, list[Received | Gap]] = {}
        self.published: dict[NodeId, list[int]] = {}  # by publisher, what each item says
        super().__init__(stage, edges, settings)

    def _start(self, name: NodeId, **changed: object) -> None:
        settings = replace(self.settings, **changed)

        def add(host: Host) -> None:
            content = host.add(Content, settings)
            host.add(Mobility, MOVING, content=content)
            if settings.role == "broker":
                host.add(Keeper, self.keeping, content=content)

        self.advertised[name], self.wanted[name] = {}, {}
        self.stage.start(name, add)

    def start_subscriber(self, name: NodeId, broker: NodeId) -> None:
        """A mobile subscriber, which is with that broker first."""
        told = self.received.setdefault(name, [])

        def add(host: Host) -> None:
            content = host.add(Content, replace(self.settings, role="client"))
            host.add(Mobility, MOVING, content=content)
            host.add(Follower, self.keeping)
            host.listen(Received, told.append)
            host.listen(Gap, told.append)

        self.stage.start(name, add)
        self.arrive(name, broker)

    def arrive(self, name: NodeId, broker: NodeId) -> None:
        """Its application wants what it wants, and turns to a broker."""
        self.stage.call(name, lambda host: host.protocol(Follower).subscribe, STORY, WANTED)
        self.move(name, broker)

    def move(self, name: NodeId, broker: NodeId) -> None:
        """It is with that broker from now on."""
        self.stage.call(name, lambda host: host.protocol(Follower).settle, broker)

    def leave(self, name: NodeId) -> None:
        """It says that it goes away."""
        self.stage.call(name, lambda host: host.protocol(Follower).leave)

    def follower(self, name: NodeId) -> Follower:
        """The machine of a subscriber."""
        return self.stage.protocol(name, Follower)

    def keeper(self, name: NodeId) -> Keeper:
        """The machine of a broker."""
        return self.stage.protocol(name, Keeper)

    def start_publishers(self, names: Iterable[NodeId], brokers: Iterable[NodeId]) -> None:
        """Clients, none of whose advertisements covers another's."""
        for name, broker in zip(names, brokers, strict=True):
            self.start_client(name, broker)
            self.advertise(name, "p", Constraint.parse(f'x >= 0, by = "{name}"'))
            self.published[name] = []

    def move_out(self, name: NodeId) -> None:
        """A publisher leaves its broker."""
        del self.client_of[name]
        self.stage.call(name, lambda host: host.protocol(Mobility).moveout)

    def move_in(self, name: NodeId, broker: NodeId) -> None:
        """A publisher turns to a broker."""
        self.client_of[name] = broker
        self.stage.call(name, lambda host: host.protocol(Mobility).movein, broker)

    def publish_some(self) -> None:
        """Each publisher publishes its next number."""
        for name, items in self.published.items():
            items.append(len(items))
            self.publish(name, "p", {"x": items[-1], "by": name})

    # -- waiting, and the oracle ----------------------------------------------------------------

    def settled(self) -> Scenario:
        """All subscribers are kept for, and every publisher's broker knows them all."""
        yield Pause(1.0)  # links come up, and the shortest ways are found
        yield Until(
            lambda: all(self.follower(name).broker for name in self.received), 10, "brokers"
        )
        yield Until(self._all_known, 10, "subscriptions at the publishers' brokers")

    def _all_known(self) -> bool:
        hosts = [self.follower(name).broker for name in self.received]
        return all(host and self._reaches(name, host) for name in self.published for host in hosts)

    def _reaches(self, publisher: NodeId, host: NodeId) -> bool:
        """Whether subscriptions lead all the way from that host to the publisher."""
        at: NodeId = host
        for _ in range(len(self.brokers) + 1):
            content = self.stage.protocol(at, Content)
            one = content.advertisement(f"{publisher}/p")
            if one is None:
                return False
            if one.hop == publisher:
                return any(True for _ in content.subscriptions())
            upstream = self.stage.protocol(one.hop, Content)
            if not any(True for _ in upstream.subscriptions(at)):
                return False
            at = one.hop
        return False

    def numbers(self, subscriber: NodeId, publisher: NodeId) -> list[int]:
        """What a subscriber got from a publisher, in the order in which it came."""
        return [
            int(event.item["x"])  # type: ignore[arg-type]
            for event in self.received[subscriber]
            if isinstance(event, Received) and event.publisher == publisher
        ]

    def gaps(self, subscriber: NodeId) -> list[Gap]:
        """The gaps that it was told of."""
        return [event for event in self.received[subscriber] if isinstance(event, Gap)]

    def check_all(self, within: float = 20) -> Scenario:
        """Every subscriber got everything, once and in order, and knows of no gap."""
        yield Until(self._has_all, within, "all publications at all subscribers")
        for name in self.received:
            assert not self.gaps(name), f"{name} was told {self.gaps(name)}"
            for publisher, items in self.published.items():
                came = self.numbers(name, publisher)
                assert came == items, f"{name} got {_strange(came, items)} of {publisher}"

    def _has_all(self) -> bool:
        return all(
            len(self.numbers(name, publisher)) >= len(items)
            for name in self.received
            for publisher, items in self.published.items()
        )

    def check_order(self) -> None:
        """Whatever a subscriber got came once, and in order."""
        for name in self.received:
            for publisher in self.published:
                came = self.numbers(name, publisher)
                assert came == sorted(set(came)), f"{name} got {came} of {publisher}"

    def check_nothing_left(self, within: float = 20) -> Scenario:
        """Old boxes are gone: each subscriber has one, where it is, and it is empty."""
        yield Until(self._is_tidy, within, "one empty box for each subscriber")

    def _is_tidy(self) -> bool:
        found: dict[NodeId, list[NodeId]] = {}
        for broker in self.brokers:
            if broker in self.stage.names:
                for box in self.keeper(broker).boxes():
                    if box.lines or box.held or box.by:
                        return False
                    found.setdefault(box.client, []).append(broker)
        return found == {name: [self.follower(name).broker] for name in self.received}


def _strange(came: list[int], items: list[int]) -> str:
    missing = sorted(set(items) - set(came))
    return f"{len(came)} of {len(items)}; missing {missing[:9]}; in order: {came == sorted(came)}"
