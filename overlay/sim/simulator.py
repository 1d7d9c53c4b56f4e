"""The deterministic simulator: one agenda, virtual time, and hosts that never notice."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Hashable
from random import Random
from typing import Any, TypeVar

from overlay.errors import LocalProtocolError, OverlayError
from overlay.host import Host, Instance, Recipe
from overlay.ids import NodeId
from overlay.protocol import (
    NODE_SCOPE,
    ContactLearned,
    LinkLost,
    LinkUp,
    OverlayProtocol,
    Scope,
)
from overlay.scenario import Keep
from overlay.sim.agenda import Agenda, Entry
from overlay.sim.clock import NodeClock
from overlay.sim.failure import SimulationFailed
from overlay.sim.faults import Faults, Rule
from overlay.sim.network import NetworkModel
from overlay.sim.node import SimEffects, SimNode
from overlay.sim.storage import Disk
from overlay.sim.trace import TraceHash, TraceReader
from overlay.sim.tracing import SimTraces
from overlay.sim.traffic import Traffic
from overlay.tracing import Kind
from overlay.tracing.kinds import CRASHED, PAUSED, RESUMED, STOPPED

P = TypeVar("P", bound=OverlayProtocol)
T = TypeVar("T")

SWEEP_FROM = 10_000  # stale timers, from which on a sweep pays
# Nodes, from which on they are hidden from the garbage collector while they run: it would walk over
# all of them again and again. Small worlds are not, since many of them come and go in one process.
FREEZE_FROM = 500


class Simulator:
    """Runs hosts in virtual time; everything follows from `seed` and the calls made."""

    def __init__(
        self,
        seed: int | str,
        network: NetworkModel | None = None,
        *,
        wire: bool = False,
        check_every: int = 1,
        replay: str = "",
    ) -> None:
        self.seed = seed
        self.now = 0.0
        self.wire = wire
        self.network = network or NetworkModel()
        self.replay = replay or f"Simulator(seed={seed!r})"
        self.rng = Random(f"{seed}/simulator")
        self.nodes: dict[NodeId, SimNode] = {}
        self.faults = Faults(self._on_rule_added, self._on_rule_removed)
        self.checks: list[Callable[[], None]] = []  # global invariants, after every checked step
        self.reader: TraceReader | None = None  # reads every step, at a price
        self.traces: SimTraces | None = None  # records what nodes trace; set before they start
        self.counts: Counter[str] = Counter()
        self.steps = 0
        self._ended_seconds = 0.0  # of all lives that ended
        self.agenda = Agenda()
        self.stale_timers = 0
        self._sweep_from = SWEEP_FROM
        self.fire_timer = self._fire  # bound once: a sweep recognises timers by it
        self.hash = TraceHash()
        self.check_every = check_every
        self._until_check = check_every
        self.stepping: SimNode | None = None  # who is to blame if a step fails
        self.traffic = Traffic(self)

    # -- nodes --------------------------------------------------------------------------------

    def add_node(
        self,
        name: NodeId,
        recipe: Recipe,
        *,
        lan: str = "",
        offset: float = 0.0,
        drift: float = 0.0,
    ) -> Host:
        """Make a node and start it."""
        if name in self.nodes:
            raise LocalProtocolError(f"node {name} exists already; use restart")
        clock = NodeClock(offset, drift) if offset or drift else None
        self.nodes[name] = node = SimNode(name, len(self.nodes), recipe, lan, clock)
        return self._start(node)

    def restart(self, name: NodeId) -> Host:
        """Start a node that crashed or stopped, from what its disk kept."""
        node = self.node(name)
        if node.host is not None:
            raise LocalProtocolError(f"node {name} runs; crash or stop it first")
        return self._start(node)

    def node(self, name: NodeId) -> SimNode:
        """Return the simulator's view of a node, alive or not."""
        try:
            return self.nodes[name]
        except KeyError:
            raise LocalProtocolError(f"there is no node {name}") from None

    def host(self, name: NodeId) -> Host:
        """Return the host of a node that runs."""
        host = self.node(name).host
        if host is None:
            raise LocalProtocolError(f"node {name} does not run")
        return host

    def is_running(self, name: NodeId) -> bool:
        """Say whether a node of that name lives."""
        return name in self.nodes and self.nodes[name].host is not None

    def _start(self, node: SimNode) -> Host:
        node.life += 1
        node.born = self.now

        def make_effects(host: Host, instance: Instance) -> SimEffects:
            effects = SimEffects(self, node, host, instance)
            node.effects[instance.key] = effects
            return effects

        host = Host(
            node.name, make_effects, f"{self.seed}/{node.life}", on_removed=node.forget_instance
        )
        node.recipe(host)
        if self.traces is not None:
            self.traces.started(node, host)
        host.listen(ContactLearned, node.learn)
        node.host = host
        self.note(node, "start", node.life)
        now = self.clock_of(node)
        host.start(now, lambda instance: self._kept(node, instance.key))
        self.settle(node, host, now)
        return host

    def crash(self, name: NodeId, keep: Keep = "all") -> None:
        """Kill a node at once; `keep` says what its disk still holds when it restarts."""
        node = self.node(name)
        if node.host is None:
            return
        self.counts["crashed"] += 1
        self.note(node, "crash", keep)
        self._trace(node, CRASHED, keep)
        if node.disk is not None:
            node.disk.crash(keep, self.rng)
        self.traffic.hang_up(node, "crashed")
        self._bury(node)

    def stop(self, name: NodeId) -> None:
        """Stop a node gracefully: what it says on leaving still leaves."""
        node = self.node(name)
        host = node.host
        if host is None:
            return
        self.note(node, "stop", None)
        now = self.clock_of(node)
        host.stop(now)
        self.settle(node, host, now)
        self._trace(node, STOPPED)
        if node.disk is not None:
            node.disk.crash("all", self.rng)
        self.traffic.hang_up(node, "stopped")
        self._bury(node)

    def _bury(self, node: SimNode) -> None:
        self._ended_seconds += self.now - node.born
        node.forget_life()

    @property
    def node_seconds(self) -> float:
        """How long all nodes together have lived."""
        alive = (self.now - node.born for node in self.nodes.values() if node.host is not None)
        return self._ended_seconds + sum(alive)

    def pause(self, name: NodeId) -> None:
        """Freeze a process as SIGSTOP does: nothing is lost, nothing is handled."""
        node = self.node(name)
        if node.host is not None and node.backlog is None:
            self.note(node, "pause", None)
            self._trace(node, PAUSED)
            node.backlog = []
            self.traffic.watch_silence(node)

    def resume(self, name: NodeId) -> None:
        """Let it go on with everything that piled up."""
        node = self.node(name)
        backlog, node.backlog = node.backlog, None
        if backlog is None:
            return
        self.note(node, "resume", len(backlog))
        self._trace(node, RESUMED)
        for entry in backlog:
            if entry[2] is self.fire_timer:
                effects, key = entry[3], entry[4]
                if effects.timers.get(key) is entry:
                    effects.set_timer(key, entry[5])
                self.stale_timers -= 1  # the old entry left the agenda long ago
            else:
                self.schedule(self.now, *entry[2:])

    def jump_clock(self, name: NodeId, by: float) -> None:
        """Set a node's clock forward or back; its timers follow its clock."""
        node = self.node(name)
        self.note(node, "clock", by)
        if node.clock is None:
            node.clock = NodeClock()
        node.clock.jump(by, self.now)
        for effects in node.effects.values():
            effects.reschedule_timers()

    def clock_of(self, node: SimNode) -> float:
        """Return what a node's clock shows now."""
        return self.now if node.clock is None else node.clock.read(self.now)

    # -- what applications and scenarios do -----------------------------------------------------

    def call(self, name: NodeId, command: Callable[..., T], *args: Any) -> T:
        """Run a command of the application on a node, as a tick of its own."""
        node, host = self.node(name), self.host(name)
        self.note(node, "call", getattr(command, "__name__", ""))
        now = self.clock_of(node)
        result = host.call(command, *args, now=now)
        self.settle(node, host, now)
        return result

    def protocol(self, name: NodeId, cls: type[P], scope: Scope = NODE_SCOPE) -> P:
        """Return the running instance of a protocol on a node."""
        return self.host(name).protocol(cls, scope)

    def add_instance(
        self, name: NodeId, cls: type[P], config: Any, scope: Scope = NODE_SCOPE, **views: Any
    ) -> P:
        """Start one more protocol on a running node."""
        node, host = self.node(name), self.host(name)
        protocol = host.add(cls, config, scope, **views)
        now = self.clock_of(node)
        host.call(host.launch, protocol, now=now)
        self.settle(node, host, now)
        return protocol

    def remove_instance(self, name: NodeId, protocol: OverlayProtocol) -> None:
        """Stop one protocol of a running node; its timers go with it."""
        node, host = self.node(name), self.host(name)
        now = self.clock_of(node)
        host.call(host.remove, protocol, now=now)
        self.settle(node, host, now)

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do something at a time of the world: a fault of a scenario's script."""
        self.schedule(max(when, self.now), self._act, action)

    def _act(self, entry: Entry) -> None:
        entry[3]()

    # -- running --------------------------------------------------------------------------------

    def run_for(self, seconds: float) -> None:
        """Let that much time of the world pass."""
        self._run_to(self.now + seconds)

    def run_until(
        self, condition: Callable[[], bool], deadline: float, *, every: float = 0.01
    ) -> bool:
        """Run until `condition` holds; False when it does not within `deadline` seconds.

        The condition is asked each `every` seconds of the world.
        """
        limit = self.now + deadline
        while not condition():
            if self.now >= limit:
                return False
            self._run_to(min(self.now + every, limit))
        return True

    def _run_to(self, limit: float) -> None:
        agenda = self.agenda
        today = agenda.today
        steps = 0
        large = len(self.nodes) >= FREEZE_FROM
        if large:
            gc.freeze()
        try:
            while True:
                while today and today[-1][0] <= limit:
                    entry = today.pop()
                    self.now = entry[0]
                    entry[2](entry)
                    steps += 1
                self.hash.digest_chunk()
                if not agenda.turn_page(limit):
                    break
                if self.stale_timers > self._sweep_from:
                    self._sweep_if_it_pays()
        except SimulationFailed:
            raise
        except Exception as error:
            cause = str(error) if isinstance(error, OverlayError) else repr(error)
            blamed = self.stepping.name if self.stepping else ""
            raise SimulationFailed(self.now, blamed, cause, self.replay) from error
        finally:
            if large:
                gc.unfreeze()
            self.steps += steps
        self.now = limit

    def schedule(self, at: float, action: Callable[[Entry], None], *what: Any) -> None:
        """Put one step on the agenda: `action((at, sequence, action, *what))`."""
        self.agenda.push((at, self.agenda.next_sequence(), action, *what))

    def settle(self, node: SimNode, host: Host, now: float) -> None:
        """End a node's tick: late callbacks, then what it sends, then its invariants."""
        if host.tick_end_callbacks:
            host.end_tick(now)
        if node.outbox or node.bulk_outbox or node.casts:
            self.traffic.flush(node)
        if self.check_every:
            self._until_check -= 1
            if not self._until_check:
                self._until_check = self.check_every
                host.check_invariants()
                for check in self.checks:
                    check()

    def note(self, node: SimNode, kind: str, detail: Hashable) -> None:
        """Take one step into the trace."""
        self.stepping = node
        self.hash.note(self.now, node.index, kind, detail)
        if self.reader is not None:
            self.reader((self.now, node.name, kind, detail))

    # -- timers and storage ----------------------------------------------------------------------

    def _fire(self, entry: Entry) -> None:
        effects: SimEffects = entry[3]
        key: Hashable = entry[4]
        timers = effects.timers
        if timers.get(key) is not entry:
            self.stale_timers -= 1
            return
        node = effects.node
        if node.backlog is not None:
            node.backlog.append(entry)
            return
        host = node.host
        assert host is not None, "a dead node's timers are forgotten"
        del timers[key]
        self.note(node, "timer", key)
        now = self.now if node.clock is None else node.clock.read(self.now)
        host.fire(effects.instance, key, now)
        self.settle(node, host, now)

    def _sweep_if_it_pays(self) -> None:
        """Sweep when half of the agenda is stale; to count it all at every step would not pay."""
        half = len(self.agenda) // 2
        if self.stale_timers > half:
            self._sweep_timers()
            half = 0
        self._sweep_from = max(SWEEP_FROM, half)

    def _sweep_timers(self) -> None:
        fire = self.fire_timer
        self.agenda.discard(
            lambda entry: entry[2] is fire and entry[3].timers.get(entry[4]) is not entry
        )
        self.stale_timers = 0

    def begin_write(
        self, effects: SimEffects, key: bytes, value: bytes | None, token: Hashable
    ) -> None:
        """Start a write of a protocol; `on_stored` follows after the storage delay."""
        node = effects.node
        if node.disk is None:
            node.disk = Disk()
        node.disk.begin((effects.instance.key, key, value))
        delay = self.network.storage_delay
        self.schedule(self.now + delay, self._stored, effects, node.life, token)
        if node.cut_in_write:
            node.cut_in_write = False
            self.at(
                self.now + delay * self.rng.random(), lambda: self.crash(node.name, "power-cut")
            )

    def cut_power_in_next_write(self, name: NodeId) -> None:
        """Cut the power of a node between its next `store` and the `on_stored` for it."""
        self.node(name).cut_in_write = True

    def _stored(self, entry: Entry) -> None:
        effects: SimEffects
        _, _, _, effects, life, token = entry
        node = effects.node
        host = node.host
        if host is None or node.life != life:
            return
        if node.backlog is not None:
            node.backlog.append(entry)
            return
        assert node.disk is not None, "begin_write made it"
        node.disk.finish()
        self.note(node, "stored", token)
        now = self.clock_of(node)
        host.stored(effects.instance, token, now)
        self.settle(node, host, now)

    def _kept(self, node: SimNode, instance: str) -> dict[bytes, bytes]:
        return {} if node.disk is None else node.disk.kept(instance)

    # -- link hints --------------------------------------------------------------------------------

    def announce(self, node: SimNode, event: LinkUp | LinkLost) -> None:
        """Tell a node what its driver noticed about a link."""
        host = node.host
        if host is None:
            return
        self.note(node, type(event).__name__, event.peer)
        now = self.clock_of(node)
        host.announce(event, now)
        self.settle(node, host, now)

    def _on_rule_added(self, rule: Rule) -> None:
        self.traffic.watch_cut(rule)
        if self.traces is not None:
            self.traces.fault(rule, begins=True)

    def _on_rule_removed(self, rule: Rule) -> None:
        if self.traces is not None:
            self.traces.fault(rule, begins=False)

    def _trace(self, node: SimNode, kind: Kind, detail: str = "") -> None:
        if self.traces is not None:
            self.traces.happened(node, kind, detail)
