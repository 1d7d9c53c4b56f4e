"""A small simulated world."""

from __future__ import annotations

from typing import Any

from overlay.sim import NetworkModel, Simulator
from tests.sim.actors import Witness, witness


class World(Simulator):
    """A simulator full of witnesses, with shorter words for telling them what to do."""

    def __init__(self, *names: str, network: NetworkModel | None = None, **options: Any) -> None:
        super().__init__(options.pop("seed", 1), network, **options)
        for name in names:
            self.add_node(name, witness)

    def at_node(self, name: str) -> Witness:
        return self.protocol(name, Witness)

    def tell(self, name: str, peer: str, *numbers: int) -> None:
        """One frame for each number."""
        for number in numbers:
            self.call(name, self.at_node(name).tell, peer, number)
