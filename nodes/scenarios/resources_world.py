"""Brokers on a graph with resources that change and people who look for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec.structs import replace

from nodes.scenarios.resources_oracle import Oracle
from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.predicates import Constraint, Item
from overlay.scenario import Scenario, Stage, Until
from overlay.sim import SimStage
from protocols.content import ContentSettings
from protocols.content.machine import Content
from protocols.resources import FindEnded, ModelType, Resources, ResourcesSettings

Forwarding: TypeAlias = Literal["normal", "similarity", "direct"]

EXPIRY = 5.0  # s: short, so that results grow old within a story
RANGES = Constraint.parse("disk <= 100, memory <= 100, system present")
SETTLING = 40.0
QUICK = ContentSettings(role="broker", beat=0.3, lease=1.5, client_lease=3.0, patience=0.6)


class World:
    """Brokers, what they registered, and every find with its end."""

    def __init__(
        self, stage: Stage, forwarding: Forwarding = "similarity", *, circles: bool = True
    ) -> None:
        self.stage = stage
        self.oracle = Oracle()
        self.brokers = [f"b{index}" for index in range(stage.size)]
        self.links = self._graph(circles)
        self.settings = ResourcesSettings(
            forwarding=forwarding, expiry=EXPIRY, update_interval=0.0, timeout=4.0, resend=0.1
        )
        self.ends: list[tuple[NodeId, FindEnded, float]] = []
        self.asked: dict[tuple[NodeId, int], tuple[Constraint, float]] = {}
        self.broker_of: dict[NodeId, NodeId] = {}
        self.judged = 0
        self.complete = 0
        self._made = 0

    def _graph(self, circles: bool) -> dict[NodeId, tuple[NodeId, ...]]:
        """A random tree, and some links more."""
        rng, names = self.stage.rng, self.brokers
        links: dict[NodeId, list[NodeId]] = {name: [] for name in names}
        for index in range(1, len(names)):
            links[names[index]].append(names[rng.randrange(index)])
        for _ in range(rng.randrange(len(names) // 2 + 1) if circles else 0):
            one, other = rng.sample(names, 2)
            if other not in links[one] and one not in links[other]:
                links[one].append(other)
        return {name: tuple(others) for name, others in links.items()}

    @property
    def now(self) -> float:
        """The time of the world, which all clocks here follow."""
        assert isinstance(self.stage, SimStage)
        return self.stage.sim.now

    def add_client(self, name: NodeId, broker: NodeId) -> None:
        """One that is no broker, and has one."""
        self.broker_of[name] = broker

    # -- nodes ----------------------------------------------------------------------------------

    def recipe(self, name: NodeId) -> Recipe:
        """A broker with its links."""

        def add(host: Host) -> None:
            broker = self.broker_of.get(name, "")
            role: Literal["broker", "client"] = "client" if broker else "broker"
            links = self.links.get(name, ())
            settings = replace(QUICK, role=role, broker=broker, links=links)
            content = host.add(Content, settings)
            host.add(Resources, self.settings, content=content)
            host.listen(FindEnded, lambda event: self.ends.append((name, event, self.now)))

        return add

    def start(self) -> Scenario:
        """Start everybody, and wait until all are linked."""
        for name in self.brokers:
            self.stage.start(name, self.recipe(name))
        yield self.settled()

    def crash(self, name: NodeId) -> None:
        """Kill a broker: its resources and finds are gone with it."""
        self.stage.crash(name)
        self.oracle.note_all_gone(name, self.now)
        self.forget_finds_of(name)

    def forget_finds_of(self, name: NodeId) -> None:
        """Nobody waits for their ends."""
        self.judge(owed=False)
        self.asked = {key: value for key, value in self.asked.items() if key[0] != name}

    def settled(self) -> Until:
        """Every broker knows exactly the resources that there are, and every link is up."""
        return Until(self.is_settled, SETTLING, "all brokers knowing all resources")

    def is_settled(self) -> bool:
        """Whether that is so now."""
        running = self.stage.names
        present = sorted(self.oracle.present())
        for name in running:
            if name in self.broker_of:
                continue
            content = self.stage.protocol(name, Content)
            linked = content.neighbours()
            if any(one not in linked for one in self.links[name] if one in running):
                return False
            if any(one not in running for one in linked):
                return False
            if sorted(one.id for one in content.advertisements(None, "dynamic")) != present:
                return False
        return True

    # -- resources ------------------------------------------------------------------------------

    def values(self) -> dict[str, int | str]:
        """Anything within the ranges."""
        rng = self.stage.rng
        return {
            "disk": rng.randrange(0, 101, 10),
            "memory": rng.randrange(0, 101, 10),
            "system": rng.choice(("Linux", "BSD")),
        }

    def register(self, at: NodeId) -> str:
        """A new resource at that broker."""
        self._made += 1
        name, item = f"r{self._made}", self.values()
        made: str = self.stage.call(
            at,
            lambda host: host.protocol(Resources).register,
            *(name, RANGES, ModelType.DYNAMIC, item, 0.0),
        )
        self.oracle.note(made, item, self.now)
        return made

    def change(self) -> None:
        """One resource has other values, or comes, or goes."""
        rng, present = self.stage.rng, list(self.oracle.present())
        if not present or rng.random() < 0.1:
            self.register(rng.choice(self.stage.names))
            return
        resource = rng.choice(present)
        owner, _, name = resource.partition("/")
        if rng.random() < 0.1:
            self.stage.call(owner, lambda host: host.protocol(Resources).unregister, name)
            self.oracle.note(resource, None, self.now)
        else:
            item = self.values()
            self.stage.call(owner, lambda host: host.protocol(Resources).update, name, item)
            self.oracle.note(resource, item, self.now)

    # -- finds ----------------------------------------------------------------------------------

    def query(self) -> Constraint:
        """Requests of which many cover others."""
        rng = self.stage.rng
        text = f"disk >= {rng.randrange(0, 61, 20)}"
        if rng.random() < 0.5:
            text += f", memory >= {rng.randrange(0, 61, 20)}"
        if rng.random() < 0.3:
            text += ", system = 'Linux'"
        return Constraint.parse(text)

    def find(self, at: NodeId, wanted: Constraint | None = None) -> None:
        """Somebody at that broker looks for something."""
        wanted = wanted or self.query()
        number = self.stage.call(
            at, lambda host: host.protocol(Resources).find, wanted, 0, False, None
        )
        self.asked[at, number] = (wanted, self.now)

    def find_everywhere(self) -> None:
        """At every broker at once."""
        for name in self.stage.names:
            self.find(name)

    def all_ended(self) -> Until:
        """Every find has an end."""
        return Until(
            lambda: all(
                any(at == name and event.find == number for at, event, _ in self.ends)
                for name, number in self.asked
            ),
            self.settings.timeout + 0.5,
            "the end of all finds",
        )

    def judge(self, *, owed: bool = True) -> None:
        """Compare every end with the oracle; without `owed` only what was found, not what lacks."""
        for at, event, ended in self.ends:
            asked = self.asked.pop((at, event.find), None)
            if asked is None:
                continue
            wanted, began = asked
            nothing: Sequence[str] | None = None if owed else ()
            self.oracle.check(event, wanted, began - EXPIRY, ended, nothing)
            self.judged += 1
            self.complete += event.complete
        self.ends.clear()

    def exact(self, at: NodeId, wanted: Constraint) -> Scenario:
        """Once nothing has changed for `expiry`, a find has exactly what there is."""
        before = len(self.ends)
        self.find(at, wanted)
        yield self.all_ended()
        event = self.ends[before][1]
        assert event.complete, f"{at} asked for {wanted}: {event.reason}"
        found = sorted(one.id for one in event.resources)
        assert found == self.oracle.matching(wanted), (at, str(wanted), found)
        self.judge()

    def item_of(self, resource: str) -> Item:
        """What a resource is now."""
        return self.oracle.present()[resource]
