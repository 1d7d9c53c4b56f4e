"""Scenarios on real sockets: the same scripts that the simulator plays, on nodes over loopback.

The script runs in a thread, so that it may act and look between two lines without awaiting; every
act is carried out by the trio loop that the nodes run in.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import trio

from nodes.node import Node, only_error
from nodes.settings import node_config
from overlay.errors import LocalProtocolError
from overlay.host import Recipe
from overlay.ids import NodeId
from overlay.protocol import NODE_SCOPE, OverlayProtocol, Scope
from overlay.scenario import CommandGetter, Keep, Pause, ScenarioFailed, Script, Stage, Until

P = TypeVar("P", bound=OverlayProtocol)

PATIENCE = 60.0  # seconds for any condition: a busy machine is no reason to fail
LOOK_AGAIN = 0.005  # seconds between two looks at a condition


async def play(
    script: Script,
    *,
    size: int,
    seed: int = 0,
    secure: bool = False,
    settings: Sequence[str] = (),
) -> None:
    """Run a scenario to its end; ScenarioFailed when a wait was in vain."""
    with tempfile.TemporaryDirectory(prefix="overlay-stage-") as folder:
        try:
            async with trio.open_nursery() as nursery:
                stage = NetStage(nursery, Path(folder), size, seed, secure, settings)
                await trio.to_thread.run_sync(stage.perform, script)
                await stage.close()
        except BaseExceptionGroup as group:
            raise only_error(group) from None


class Life:
    """One node from its start to its end; a restart is a new life."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.scope = trio.CancelScope()
        self.over = trio.Event()

    async def live(self, task_status: trio.TaskStatus[None]) -> None:
        """Run until stopped, or cancelled as in a crash: then no protocol says goodbye."""
        try:
            with self.scope:
                async with self.node:
                    task_status.started()
                    await self.node.run()
        finally:
            self.over.set()


class NetStage(Stage):
    """Nodes of one process on loopback; each learns the others' addresses when it starts."""

    def __init__(
        self,
        nursery: trio.Nursery,
        folder: Path,
        size: int,
        seed: int,
        secure: bool,
        settings: Sequence[str],
    ) -> None:
        self.rng = Random(f"{seed}/scenario")
        self.size = size
        self._nursery = nursery
        self._folder = folder
        self._secure = secure
        self._settings = settings
        self._recipes: dict[NodeId, tuple[Recipe, str]] = {}
        self._lives: dict[NodeId, Life] = {}

    def perform(self, script: Script) -> None:
        """Play the script; called in a thread of its own."""
        for wait in script(self):
            if isinstance(wait, Pause):
                trio.from_thread.run(trio.sleep, wait.seconds)
            else:
                trio.from_thread.run(self._wait, wait)

    async def close(self) -> None:
        """Stop what still runs."""
        for life in self._lives.values():
            life.node.stop()
        for life in self._lives.values():
            await life.over.wait()

    async def _wait(self, until: Until) -> None:
        with trio.move_on_after(max(until.within, PATIENCE)):
            while not until.condition():
                self._check_invariants()
                await trio.sleep(LOOK_AGAIN)
            return
        raise ScenarioFailed(f"over ZeroMQ, waited {PATIENCE:g} s in vain for {until.what}")

    def _check_invariants(self) -> None:
        for life in self._lives.values():
            life.node.driver.host.check_invariants()

    # -- what scripts call, from their thread --------------------------------------------------

    @property
    def names(self) -> list[NodeId]:
        """The nodes that run now, in the order in which they were first started."""
        return [name for name in self._recipes if name in self._lives]

    def start(self, name: NodeId, recipe: Recipe, *, zone: str = "") -> None:
        """Start a new node, and wait until it is bound."""
        if name in self._recipes:
            raise LocalProtocolError(f"{name} was started before: restart it")
        self._recipes[name] = (recipe, zone)
        if self._secure:
            self._issue_keys(name)
        trio.from_thread.run(self._begin, name)

    def crash(self, name: NodeId, keep: Keep = "all") -> None:
        """Cut it off; its protocols are not told. A process that is killed: `overlay demo`."""
        trio.from_thread.run(self._end, name, True)
        if keep == "none":
            shutil.rmtree(self._folder / "state" / name, ignore_errors=True)

    def restart(self, name: NodeId) -> None:
        """Start it again, at another port, with what its disk kept."""
        if name in self._lives:
            raise LocalProtocolError(f"{name} runs already")
        trio.from_thread.run(self._begin, name)

    def stop(self, name: NodeId) -> None:
        """Stop it gracefully."""
        trio.from_thread.run(self._end, name, False)

    def partition(self, groups: Sequence[Collection[NodeId]]) -> None:
        """Not on one loopback interface."""
        raise LocalProtocolError("a partition of real sockets needs network namespaces")

    def loss(self, p: float) -> None:
        """Not on one loopback interface."""
        raise LocalProtocolError("loss on real sockets needs network namespaces")

    def heal(self) -> None:
        """Nothing to mend."""

    def call(self, name: NodeId, command: CommandGetter, *args: Any) -> Any:
        """Run a command of a node's protocol in the nodes' loop."""
        node = self._lives[name].node
        return trio.from_thread.run_sync(node.call, command(node.driver.host), *args)

    def protocol(self, name: NodeId, cls: type[P], scope: Scope = NODE_SCOPE) -> P:
        """Return the running instance, to look at."""
        return self._lives[name].node.protocol(cls, scope)

    # -- in the nodes' loop -------------------------------------------------------------------

    async def _begin(self, name: NodeId) -> None:
        recipe, zone = self._recipes[name]
        config = node_config(
            name,
            zone=zone,
            insecure=not self._secure,
            keys=self._folder / "keys" if self._secure else None,
            state=self._folder / "state" / name,
            control=False,
            profile="local",
            sets=self._settings,
            bind=("tcp://127.0.0.1:0",),
        )
        life = Life(Node(config, recipe))
        await self._nursery.start(life.live)
        for other, known in self._lives.items():
            known.node.learn(name, life.node.endpoints)
            life.node.learn(other, known.node.endpoints)
        self._lives[name] = life

    async def _end(self, name: NodeId, at_once: bool) -> None:
        life = self._lives.pop(name)
        if at_once:
            life.scope.cancel()
        else:
            life.node.stop()
        await life.over.wait()

    def _issue_keys(self, name: NodeId) -> None:
        from overlay.security.authority import Authority
        from overlay.security.rights import Rights

        keys = self._folder / "keys"
        authority = Authority.load(keys) if keys.exists() else Authority.create(keys, "stage")
        authority.issue(name, Rights(zones=("*",)), 1).save(keys)
