"""Brokers, and clients that move between them; the oracle compares with a system built fresh."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from nodes.scenarios.content_world import ITEMS, QUICK, SETTLED, ContentWorld
from overlay.host import Host
from overlay.ids import NodeId
from overlay.predicates import Constraint
from overlay.scenario import Pause, Scenario, Stage, Until
from overlay.sim import SimStage, Simulator
from protocols.content import Advertised, Content, ContentSettings, Delivered, EntryId, entry_id
from protocols.mobility import Mobility, MobilitySettings, TreeStands

# Shorter than the defaults, so that a story is short; the proportions are the same.
SWIFT = MobilitySettings(
    teardown=2.0, expected=3.0, proxy_lease=4.0, retry=0.2, patience=4.0, reanchor=1.0
)
ALGORITHMS = ("standard", "prefetching", "proxy", "delayed", "prefetching+delayed")


def ways(content: Content, one: Advertised) -> set[NodeId]:
    """Where the publisher of an advertisement is, as seen from one node: the last hops."""
    if not content.is_broker:
        return {one.hop}
    found = {hop for hop in content.router.towards(one) if hop in content.neighbours()}
    offers = content.router.srt.offers(one.id).values()
    return found | {offer.hop for offer in offers if not offer.path and offer.hop != content.me}


class MobileWorld(ContentWorld):
    """Brokers in any graph, and clients that move."""

    def __init__(
        self,
        stage: Stage,
        edges: Iterable[tuple[NodeId, NodeId]],
        settings: ContentSettings = QUICK,
        moving: MobilitySettings = SWIFT,
    ) -> None:
        self.moving = moving
        self.of_client: dict[NodeId, MobilitySettings] = {}
        self.plans: dict[NodeId, NodeId] = {}  # where a client goes next, for the perfect predictor
        self.ready: list[TreeStands] = []
        self.whole: set[EntryId] = set()
        super().__init__(stage, edges, settings)

    def _start(self, name: NodeId, **changed: object) -> None:
        settings = replace(self.settings, **changed)

        def add(host: Host) -> None:
            content = host.add(Content, settings)
            host.add(
                Mobility,
                self.of_client.get(name, self.moving),
                content=content,
                plan=lambda: self.plans.get(name, ""),
            )
            host.listen(Delivered, self.delivered.append)
            host.listen(TreeStands, self.ready.append)

        self.advertised[name], self.wanted[name] = {}, {}
        self.stage.start(name, add)

    # -- what happens ---------------------------------------------------------------------------

    def start_mover(self, name: NodeId, broker: NodeId, **changed: object) -> None:
        """A client that moves by settings of its own."""
        self.of_client[name] = replace(self.moving, **changed)
        self.start_client(name, broker)

    def moveout(self, client: NodeId) -> None:
        """A client leaves its broker."""
        self.client_of.pop(client, None)
        self.stage.call(client, lambda host: host.protocol(Mobility).moveout)

    def movein(self, client: NodeId, broker: NodeId) -> None:
        """A client turns to a broker."""
        self.client_of[client] = broker
        self.stage.call(client, lambda host: host.protocol(Mobility).movein, broker)

    def advertise(
        self, name: NodeId, entry: str, constraint: Constraint, *, whole: bool = False
    ) -> None:
        """Advertise."""
        moving = self.of_client.get(name)
        whole = whole or (moving is not None and moving.handover == "lossless")
        (self.whole.add if whole else self.whole.discard)(entry_id(name, entry))
        super().advertise(name, entry, constraint, whole=whole)

    def stay_or_leave(self, client: NodeId) -> None:
        """One random step of a client: out, in, or from one to the next without a word between."""
        rng = self.stage.rng
        to = self.plans.get(client) or rng.choice(self.brokers)
        self.plans[client] = rng.choice(self.brokers)
        is_there = self.stage.protocol(client, Mobility).is_somewhere
        if client in self.client_of and is_there and rng.random() < 0.5:
            self.plans[client] = to if rng.random() < 0.7 else self.plans[client]
            self.moveout(client)
        else:
            self.movein(client, to)

    # -- the oracle -----------------------------------------------------------------------------

    def settle(self, seconds: float = SETTLED) -> Scenario:
        """Everybody is somewhere; stand-ins and leases run out."""
        for name in [one for one in self.of_client if one in self.stage.names]:
            if name not in self.client_of:
                self.movein(name, self.stage.rng.choice(self.brokers))
        yield Pause(seconds)

    def check_fresh(self) -> None:
        """The tables are those of a system built in this placement.

        The same last hops of all advertisements; and, for everything that may be published, the
        same hops that want it: which of several subscriptions stands for another is history.
        """
        fresh = self._fresh()
        for name in self.stage.names:
            here = self.stage.protocol(name, Content)
            there = fresh.stage.protocol(name, Content)
            hops = {one.id: ways(here, one) for one in here.router.srt}
            anew = {one.id: ways(there, one) for one in there.router.srt}
            assert hops == anew, f"{name}: advertisements {hops}, in a fresh system {anew}"
            for item in ITEMS:
                wanting = set(here.router.prt.matching(item, ""))
                due = set(there.router.prt.matching(item, ""))
                assert wanting == due, f"{name}: {item} to {wanting}, in a fresh system to {due}"

    def _fresh(self) -> ContentWorld:
        """The same placement and wishes, advertised in the same order, with no history."""
        stage = SimStage(Simulator(1))
        running = set(self.stage.names)
        edges = [edge for edge in self.edges if running.issuperset(edge)]
        world = ContentWorld(stage, edges, self.settings)
        for client, broker in self.client_of.items():
            if client in running:
                world.start_client(client, broker)
        stage.sim.run_for(1.5)
        for name in world.stage.names:
            for entry, constraint in self.wanted[name].items():
                world.subscribe(name, entry, constraint)
        for _, name, entry in sorted(self._epochs()):
            whole = entry_id(name, entry) in self.whole
            world.advertise(name, entry, self.advertised[name][entry], whole=whole)
            stage.sim.run_for(0.05)
        stage.sim.run_for(3.0)
        return world

    def epochs(self) -> dict[EntryId, int]:
        """In which epochs the trees of all movers are."""
        return {entry_id(name, entry): epoch for epoch, name, entry in self._epochs()}

    def _epochs(self) -> list[tuple[int, NodeId, str]]:
        found = []
        for name in self.stage.names:
            content = self.stage.protocol(name, Content)
            at = content if content.is_broker else None
            for entry in self.advertised[name]:
                here = self.stage.protocol(self.client_of.get(name, name), Content)
                one = (at or here).advertisement(entry_id(name, entry))
                assert one is not None, f"{name}/{entry} is not known at its broker"
                found.append((one.epoch, name, entry))
        return found

    def until_ready(self, number: int, within: float = 8.0) -> Until:
        """So many trees stand."""
        return Until(lambda: len(self.ready) >= number, within, f"{number} trees that stand")

    def arrived(self) -> dict[EntryId, dict[EntryId, list[int]]]:
        """Sequence numbers of what came, by subscription and advertisement, in order."""
        found: dict[EntryId, dict[EntryId, list[int]]] = {}
        for one in self.delivered:
            streams = found.setdefault(one.subscription, {})
            streams.setdefault(one.advertisement, []).append(one.sequence)
        return found
