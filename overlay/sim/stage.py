"""The simulator as a stage for scenarios."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import Any

from overlay.host import Recipe
from overlay.ids import NodeId
from overlay.protocol import NODE_SCOPE, Scope
from overlay.scenario import CommandGetter, Keep, P, ScenarioFailed, Script, Stage, Until
from overlay.sim.failure import SimulationFailed
from overlay.sim.faults import Loss, Partition, Rule
from overlay.sim.simulator import Simulator


class SimStage(Stage):
    """Plays a scenario in virtual time; `sim` is there for faults that only a simulator has."""

    def __init__(self, sim: Simulator, *, nodes: int = 0) -> None:
        self.sim = sim
        self.size = nodes
        self.rng = Random(f"{sim.seed}/scenario")
        self.checks = sim.checks
        self._broken: list[int] = []

    @property
    def names(self) -> list[NodeId]:
        """The nodes that run now."""
        return [node.name for node in self.sim.nodes.values() if node.host is not None]

    def start(self, name: NodeId, recipe: Recipe, *, zone: str = "") -> None:
        """Start a new node."""
        self.sim.add_node(name, recipe, lan=zone)

    def crash(self, name: NodeId, keep: Keep = "all") -> None:
        """Kill it at once."""
        self.sim.crash(name, keep)

    def restart(self, name: NodeId) -> None:
        """Start it again."""
        self.sim.restart(name)

    def stop(self, name: NodeId) -> None:
        """Stop it gracefully."""
        self.sim.stop(name)

    def partition(self, groups: Sequence[Collection[NodeId]]) -> None:
        """Cut the network into groups."""
        self._break(Partition([tuple(group) for group in groups]))

    def loss(self, p: float) -> None:
        """Lose frames and datagrams."""
        self._break(Loss(p))

    def heal(self) -> None:
        """Mend what `partition` and `loss` broke."""
        for handle in self._broken:
            self.sim.faults.remove(handle)
        self._broken.clear()

    def _break(self, rule: Rule) -> None:
        self._broken.append(self.sim.faults.add(rule))

    def call(self, name: NodeId, command: CommandGetter, *args: Any) -> Any:
        """Run a command of a node's protocol."""
        return self.sim.call(name, command(self.sim.host(name)), *args)

    def protocol(self, name: NodeId, cls: type[P], scope: Scope = NODE_SCOPE) -> P:
        """Return the running instance."""
        return self.sim.protocol(name, cls, scope)

    def play(self, script: Script, on_wait: Callable[[str], None] | None = None) -> None:
        """Run a scenario to its end; a failure carries the line that replays it."""
        sim = self.sim
        try:
            for wait in script(self):
                if not isinstance(wait, Until):
                    sim.run_for(wait.seconds)
                    continue
                if on_wait is not None:
                    on_wait(wait.what)
                if not sim.run_until(wait.condition, wait.within):
                    raise ScenarioFailed(f"no {wait.what} within {wait.within} s")
        except SimulationFailed:
            raise
        except Exception as error:  # the scenario's outermost loop: its asserts fail here too
            cause = str(error) if isinstance(error, ScenarioFailed) else repr(error)
            raise SimulationFailed(sim.now, "", cause, sim.replay) from error
