"""A scenario is written once and runs in both worlds: in the simulator and over ZeroMQ.

It is a generator that acts on a `Stage` and yields what it waits for:

    def echo_basic(stage: Stage) -> Scenario:
        stage.start("a", recipe)
        stage.start("b", recipe)
        stage.call("a", lambda host: host.protocol(Echo).ask, "b", b"hello")
        echo = stage.protocol("a", Echo)
        yield Until(lambda: echo.counts.answered == 1, within=5, what="an echo")
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, TypeAlias, TypeVar

from overlay.errors import OverlayError
from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.protocol import NODE_SCOPE, OverlayProtocol, Scope

P = TypeVar("P", bound=OverlayProtocol)

Keep: TypeAlias = Literal["all", "none", "power-cut"]
"""What a crash leaves on disk; over ZeroMQ a power cut can only be a kill ("all")."""

CommandGetter: TypeAlias = Callable[[Host], Callable[..., Any]]
"""Finds a command on a node's host, where that runs: `lambda host: host.protocol(Echo).ask`."""


@dataclass(frozen=True, slots=True)
class Until:
    """Go on when `condition` holds; the scenario fails if that takes longer than `within`."""

    condition: Callable[[], bool]
    within: float  # seconds
    what: str  # for people: "three members"


@dataclass(frozen=True, slots=True)
class Pause:
    """Let time pass, for what must *not* happen; never to wait for something."""

    seconds: float


Wait: TypeAlias = Until | Pause
Scenario: TypeAlias = Generator[Wait, None, None]
Script: TypeAlias = "Callable[[Stage], Scenario]"


class ScenarioFailed(OverlayError):
    """A wait was in vain, or a check at the end did not hold."""


class Stage(ABC):
    """Where a scenario plays: it starts, breaks and mends nodes, and looks at their protocols."""

    rng: Random  # of the scenario's own choices, forked from the seed
    size: int  # how many nodes the scenario is asked to start

    @property
    @abstractmethod
    def names(self) -> list[NodeId]:
        """The nodes that run now, in the order in which they were first started."""

    @abstractmethod
    def start(self, name: NodeId, recipe: Recipe, *, zone: str = "") -> None:
        """Start a new node; nodes of one zone share a LAN, which multicast does not leave."""

    @abstractmethod
    def crash(self, name: NodeId, keep: Keep = "all") -> None:
        """Kill it at once."""

    @abstractmethod
    def restart(self, name: NodeId) -> None:
        """Start it again with its recipe and what its disk kept."""

    @abstractmethod
    def stop(self, name: NodeId) -> None:
        """Stop it gracefully."""

    @abstractmethod
    def partition(self, groups: Sequence[Collection[NodeId]]) -> None:
        """Let nothing pass between the groups, until `heal`."""

    @abstractmethod
    def loss(self, p: float) -> None:
        """Lose each frame and datagram with probability `p`, until `heal`."""

    @abstractmethod
    def heal(self) -> None:
        """Mend partitions and loss."""

    @abstractmethod
    def call(self, name: NodeId, command: CommandGetter, *args: Any) -> Any:
        """Run a command of a node's protocol as an application does; `now` is appended."""

    @abstractmethod
    def protocol(self, name: NodeId, cls: type[P], scope: Scope = NODE_SCOPE) -> P:
        """Return the running instance, to look at."""
