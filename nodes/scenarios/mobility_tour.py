"""A tour: publishers walk along the leaves of a tree of brokers, and what that costs is told."""

from __future__ import annotations

from statistics import median
from typing import Any

from msgspec.structs import replace

from nodes.scenarios.content_world import QUICK
from nodes.scenarios.mobility_world import ALGORITHMS, MobileWorld
from nodes.scenarios.registry import Entry, find, scenario
from overlay.errors import ConfigError
from overlay.ids import NodeId
from overlay.predicates import Constraint
from overlay.scenario import Pause, Scenario, Stage
from overlay.sim import Exponential, NetworkModel
from protocols.content import Content, EntryId
from protocols.mobility import Mobility, MobilitySettings

HANDOVERS = ("best-effort", "sounded", "lossless")
DEGREE = 3
PUBLISHERS = 3
MOVES = 6  # of each publisher
PROBES = 10  # after each move
PROBE_EVERY = 0.1  # s
AWAY = 1.0  # s between two brokers
CITY = NetworkModel(latency=Exponential(0.005, 0.01))


class Tour:
    """One tour by one algorithm, and its report."""

    def __init__(self, algorithm: str = "delayed", handover: str = "lossless") -> None:
        if algorithm not in ALGORITHMS:
            raise ConfigError(f"--algorithm {algorithm}: one of {', '.join(ALGORITHMS)}")
        if handover not in HANDOVERS:
            raise ConfigError(f"--handover {handover}: one of {', '.join(HANDOVERS)}")
        self.algorithm = algorithm
        self.handover = handover
        self.report: dict[str, Any] = {}

    def entry(self) -> Entry:
        """The scenario `mobility`, played by this tour."""
        known = find("mobility")
        return Entry(
            known.name,
            self.script,
            known.nodes,
            known.long,
            known.faults,
            known.network,
            known.both_worlds,
        )

    def script(self, stage: Stage) -> Scenario:
        """Publishers walk along the leaves of a tree of brokers, and publish at each of them."""
        names = [f"b{index}" for index in range(stage.size)]
        edges = [(names[(at - 1) // DEGREE], name) for at, name in enumerate(names) if at]
        leaves = names[(stage.size - 2) // DEGREE + 1 :]
        moving = replace(
            MobilitySettings(predictor="perfect"),
            algorithm=self.algorithm,
            handover=self.handover,
        )
        world = MobileWorld(stage, edges, replace(QUICK, client_lease=10.0), moving)
        at = {f"m{index}": stage.rng.randrange(len(leaves)) for index in range(PUBLISHERS)}
        for name, leaf in at.items():
            world.start_mover(name, leaves[leaf])
        yield Pause(1.5)
        for number, name in enumerate(at):
            world.advertise(name, "p", Constraint.parse(f"of = {number}"))
            for wanting in stage.rng.sample(leaves, max(1, len(leaves) // 2)):
                world.subscribe(wanting, f"of-{name}", Constraint.parse(f"of = {number}"))
        yield Pause(2.0)
        world.delivered.clear()
        before = self._told(stage)
        due: dict[EntryId, list[int]] = {}
        for _ in range(MOVES):
            yield from self._move(world, leaves, at)
            for _ in range(PROBES):
                for number, name in enumerate(at):
                    sequence = world.publish(name, "p", {"of": number})
                    due.setdefault(f"{name}/p", []).append(sequence)
                yield Pause(PROBE_EVERY)
        yield Pause(moving.teardown + 1.0)
        self._tell(world, before, due)

    def _move(self, world: MobileWorld, leaves: list[NodeId], at: dict[NodeId, int]) -> Scenario:
        """Everybody goes to a leaf beside its own."""
        rng = world.stage.rng
        for name, leaf in at.items():
            step = rng.choice((-1, 1))
            at[name] = leaf + step if 0 <= leaf + step < len(leaves) else leaf - step
            world.plans[name] = leaves[at[name]]
            world.moveout(name)
        yield Pause(AWAY)
        for name, leaf in at.items():
            world.movein(name, leaves[leaf])

    def _told(self, stage: Stage) -> int:
        return sum(stage.protocol(name, Content).counts.lines for name in stage.names)

    def _tell(self, world: MobileWorld, before: int, due: dict[EntryId, list[int]]) -> None:
        stage = world.stage
        wanted = sum(
            len(due[f"{name}/p"])
            for name in world.of_client
            for wishes in world.wanted.values()
            if f"of-{name}" in wishes
        )
        came = {(one.subscription, one.advertisement, one.sequence) for one in world.delivered}
        doubled = len(world.delivered) - len(came)
        waits = sorted(one.waited for one in world.ready)
        moves = MOVES * PUBLISHERS
        self.report = {
            "algorithm": self.algorithm,
            "handover": self.handover,
            "moves": moves,
            "lines_per_move": (self._told(stage) - before) / moves,
            "waves": sum(stage.protocol(name, Mobility).counts.waves for name in stage.names),
            "tree_ready_median_s": median(waits) if waits else None,
            "tree_ready_most_s": waits[-1] if waits else None,
            "delivered": len(came) / wanted,
            "doubled": doubled,
        }
        assert not doubled, f"{doubled} publications came twice"
        if self.handover == "lossless":
            assert len(came) == wanted, f"{len(came)} of {wanted} arrived"


scenario("mobility", nodes=13, network=CITY)(Tour().script)
