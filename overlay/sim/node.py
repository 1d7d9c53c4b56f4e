"""One simulated node: host, links, clock and disk, and the effects of its protocols."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

from overlay.host import Host, HostEffects, Instance, Recipe
from overlay.ids import NodeId
from overlay.protocol import ContactLearned, Group, Message, Scope, UdpAddress
from overlay.sim.agenda import Entry
from overlay.sim.clock import NodeClock
from overlay.sim.storage import Disk

if TYPE_CHECKING:
    from overlay.sim.simulator import Simulator

Sections: TypeAlias = list[Any]
"""One frame: a scope, its batch, the next scope, its batch, … in the order of sending."""


class Link:
    """One direction between two nodes: two lanes, each of them ordered."""

    __slots__ = (
        "arrives",
        "bandwidth",
        "bulk_arrives",
        "bulk_free_at",
        "free_at",
        "source",
        "target",
        "up",
    )

    def __init__(self, source: SimNode, target: SimNode, bandwidth: float = inf) -> None:
        self.source = source
        self.target = target
        self.bandwidth = bandwidth  # bytes per second
        self.arrives = 0.0  # no later frame arrives before this
        self.free_at = 0.0  # when the line has sent what is queued
        self.bulk_arrives = 0.0  # the same for what goes by the bulk lane
        self.bulk_free_at = 0.0
        self.up = False


class SimNode:
    """What the simulator knows about one node, alive or not."""

    __slots__ = (
        "backlog",
        "born",
        "bulk_outbox",
        "busy_until",
        "casts",
        "clock",
        "contacts",
        "cut_in_write",
        "disk",
        "effects",
        "host",
        "index",
        "lan",
        "life",
        "links",
        "name",
        "outbox",
        "recipe",
    )

    def __init__(
        self, name: NodeId, index: int, recipe: Recipe, lan: str, clock: NodeClock | None
    ) -> None:
        self.name = name
        self.index = index
        self.recipe = recipe
        self.lan = lan
        self.clock = clock  # None: the clock of the world, the usual and the fastest case
        self.life = 0  # how often it was started
        self.born = 0.0  # when this life began
        self.host: Host | None = None  # None: it does not run
        self.disk: Disk | None = None  # None: nothing was ever stored
        self.effects: dict[str, SimEffects] = {}  # by instance key
        self.links: dict[NodeId, Link] = {}  # outgoing
        self.contacts: dict[NodeId, tuple[str, ...]] = {}
        self.outbox: dict[NodeId, Sections] = {}  # one frame for each peer leaves in a tick
        self.bulk_outbox: dict[NodeId, Sections] = {}  # and one more, of what may wait
        self.casts: list[tuple[UdpAddress | Group, Scope, Message]] = []
        self.backlog: list[Entry] | None = None  # a list while the node is paused
        self.busy_until = 0.0
        self.cut_in_write = False

    def learn(self, contact: ContactLearned) -> None:
        """Keep how a peer can be reached."""
        self.contacts[contact.peer] = contact.endpoints

    def forget_instance(self, instance: Instance) -> None:
        """Lose the timers of a protocol that was removed."""
        self.effects.pop(instance.key).forget_timers()

    def forget_life(self) -> None:
        """Lose everything that a dead process loses."""
        for effects in self.effects.values():
            effects.forget_timers()
        self.host = None
        self.effects = {}
        self.links = {}
        self.contacts = {}
        self.outbox = {}
        self.bulk_outbox = {}
        self.casts = []
        self.backlog = None
        self.busy_until = 0.0
        self.cut_in_write = False


class SimEffects(HostEffects):
    """Effects that end up in the simulator's agenda."""

    __slots__ = (
        "_bulk_outbox",
        "_casts",
        "_next",
        "_outbox",
        "_push",
        "_scope",
        "_sim",
        "instance",
        "node",
        "timers",
    )

    def __init__(self, sim: Simulator, node: SimNode, host: Host, instance: Instance) -> None:
        super().__init__(host, instance)
        self.node = node
        self.instance = instance
        self.timers: dict[Hashable, Entry] = {}
        self._sim = sim
        self._next = sim.agenda.next_sequence
        self._push = sim.agenda.push
        self._outbox = node.outbox
        self._bulk_outbox = node.bulk_outbox
        self._scope = instance.scope
        self._casts = node.casts

    def send(self, to: NodeId | Sequence[NodeId], msg: Message) -> None:
        """Add to the frame that leaves for `to` at the end of this tick: one for each lane."""
        outbox = self._bulk_outbox if msg.bulk else self._outbox
        scope = self._scope
        for peer in (to,) if isinstance(to, str) else to:
            if peer not in outbox:
                outbox[peer] = [scope, [msg]]
            elif outbox[peer][-2] == scope:
                outbox[peer][-1].append(msg)
            else:
                outbox[peer] += (scope, [msg])

    def cast(self, address: UdpAddress | Group, msg: Message, reader: NodeId = "") -> None:
        """Send one datagram at the end of this tick; nothing is sealed here."""
        self._casts.append((address, self._scope, msg))

    def set_timer(self, key: Hashable, at: float) -> None:
        """File it; a replaced entry stays on the agenda and is recognised when it comes up."""
        sim = self._sim
        clock = self.node.clock
        due = at if clock is None else clock.when(at)
        if due < sim.now:
            due = sim.now
        timers = self.timers
        if key in timers:
            sim.stale_timers += 1
        timers[key] = entry = (due, self._next(), sim.fire_timer, self, key, at)
        self._push(entry)

    def cancel_timer(self, key: Hashable) -> None:
        """Forget it; its entry stays on the agenda until it comes up or is swept."""
        if self.timers.pop(key, None) is not None:
            self._sim.stale_timers += 1

    def forget_timers(self) -> None:
        """Forget all of them: the instance or its node is gone."""
        self._sim.stale_timers += len(self.timers)
        self.timers.clear()

    def reschedule_timers(self) -> None:
        """File all timers again: the node's clock was set."""
        for key, entry in list(self.timers.items()):
            self.set_timer(key, entry[5])

    def store(self, key: bytes, value: bytes | None, token: Hashable) -> None:
        """Write to the simulated disk."""
        self._sim.begin_write(self, key, value, token)
