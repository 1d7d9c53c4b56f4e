"""The paper's cluster in the simulator: brokers that are busy while they work, and clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from statistics import fmean
from typing import Any, Literal, NamedTuple, TypeAlias

from bench.resources_workload import Asked, Registered
from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.sim import Constant, NetworkModel, Simulator
from overlay.sim.faults import Passage, Rule
from protocols.content import Content, ContentSettings
from protocols.content.counts import ContentCounts
from protocols.resources import FindEnded, ModelType, Resources, ResourcesSettings
from protocols.resources.counts import ResourceCounts

Forwarding: TypeAlias = Literal["normal", "similarity", "direct"]

QUIET = 20.0  # s between the greetings of neighbours: nobody fails here
PATIENCE = 600.0  # s for answers, and for confirmations: brokers are slow, but none is lost
SETTLING = 120.0  # s until all brokers know all resources


class Metrics(NamedTuple):
    """What the paper measures of one workload (§6.1), and what it takes for granted."""

    time: float  # ms, from request to the last result, on average
    publications: int  # hops of results, each resource by itself
    packages: int  # hops of messages with results, as ours travel
    subscriptions: int  # hops of requests
    matchings: int  # of requests with advertisements
    covers_searched: int  # requests compared with those that may cover them
    results: float  # of a request, on average
    incomplete: int  # requests that lack something


@dataclass(frozen=True)
class Work(Rule):
    """What a broker sends leaves it once all it has done so far would be done.

    A broker in the simulator computes at once. Here it is a server with a queue: what it did
    since it last sent something takes time, after the work before it.
    """

    done_by: Callable[[NodeId], float | None]  # seconds of work, in all; None: no broker
    busy_until: dict[NodeId, float] = field(default_factory=dict)
    charged: dict[NodeId, float] = field(default_factory=dict)
    late: list[float] = field(default_factory=lambda: [0.0])  # of the frame that is asked about

    def touches(self, source: NodeId, target: NodeId, now: float, *, datagram: bool) -> bool:
        """What comes from a broker."""
        done = self.done_by(source)
        if done is None:
            return False
        self.late[0] = self.charge(source, done, now) - now
        return True

    def charge(self, broker: NodeId, done: float, now: float) -> float:
        """When the broker is through with all its work."""
        until = max(now, self.busy_until.get(broker, 0.0)) + done - self.charged.get(broker, 0.0)
        self.charged[broker] = done
        self.busy_until[broker] = until
        return until

    def bend(self, passage: Passage, rng: Random) -> None:
        """Leave late."""
        for copy in passage:
            copy.extra += self.late[0]


class Cluster:
    """Brokers with one client each, which has that broker's resources and asks for others."""

    def __init__(
        self,
        paper: dict[str, Any],
        made: list[Registered],
        forwarding: Forwarding,
        *,
        seed: int,
        centralised: bool = False,
    ) -> None:
        self.size = int(paper["brokers"])
        self.sim = Simulator(
            seed, NetworkModel(latency=Constant(paper["latency"] / 1000)), check_every=0
        )
        self.rng = Random(f"{seed}/cluster")
        self.latency = paper["latency"] / 1000
        self.hops = 0  # of messages that are not sent here, but would be
        self.resources = made
        self.items: list[dict[str, int]] = []
        self._update_every = float(paper["update_every"])
        self._settings = ResourcesSettings(
            forwarding=forwarding,
            expiry=paper["expiry"],
            timeout=PATIENCE,
            update_interval=0.0,
            resend=60.0,
            patience=PATIENCE,
        )
        self._ended: list[FindEnded] = []
        self._links = _line(self.size, int(paper["routers"]))
        self.brokers = ["b00"] if centralised else list(self._links)
        self._centralised = centralised
        self._extra: dict[NodeId, float] = {}
        self._cost = {name: each / 1000 for name, each in paper["work"].items()}
        self.work = Work(self.done_by)
        self._counts: dict[NodeId, tuple[ResourceCounts, ContentCounts]] = {}
        self.sim.faults.add(self.work)
        for name in self.brokers:
            self.sim.add_node(name, self._broker(() if centralised else self._links[name]))
            host = self.sim.host(name)
            self._counts[name] = (host.protocol(Resources).counts, host.protocol(Content).counts)
        for number in range(self.size):
            self.sim.add_node(f"c{number:02}", self._client(self.broker_of(number)))
        self.sim.run_for(5.0)

    def register(self, model: ModelType = ModelType.DYNAMIC) -> None:
        """All resources, before anything is asked."""
        for one in self.resources:
            item = one.values(self.rng)
            self.items.append(item)
            machine = self.sim.protocol(f"c{one.broker:02}", Resources)
            held = None if model is ModelType.STATIC else item
            self.sim.call(
                f"c{one.broker:02}", machine.register, one.name, one.description, model, held, 0.0
            )
        if not self.sim.run_until(lambda: self._know_all(model), SETTLING, every=0.5):
            raise AssertionError("the brokers do not know all resources")

    def play(self, asked: list[Asked]) -> Metrics:
        """One workload, in a world that has forgotten the last one."""
        sim = self.sim
        sim.run_for(self._settings.expiry * 1.1)
        before = self._totals()
        self._ended.clear()
        began = sim.now
        updates = self._updates(asked[-1].at if asked else 0.0)
        for one in asked:
            while updates and updates[-1][0] <= one.at:
                at, number = updates.pop()
                sim.run_for(max(0.0, began + at - sim.now))
                self._update(number)
            sim.run_for(max(0.0, began + one.at - sim.now))
            client = f"c{one.broker:02}"
            machine = sim.protocol(client, Resources)
            sim.call(client, machine.find, one.constraint, 0, False, None)
        if not sim.run_until(lambda: len(self._ended) == len(asked), PATIENCE, every=0.5):
            raise AssertionError(f"{len(asked) - len(self._ended)} requests have no end")
        after = self._totals()
        grown = {name: after[name] - before[name] for name in after}
        return Metrics(
            1000 * fmean(one.duration for one in self._ended),
            grown["results_sent"],
            grown["result_messages"],
            grown["requests_sent"],
            grown["matched_advertisements"],
            grown["matched_covers"],
            fmean(len(one.resources) for one in self._ended),
            sum(not one.complete for one in self._ended),
        )

    def _updates(self, duration: float) -> list[tuple[float, int]]:
        """When which resource has other values, the first one last."""
        count = round(len(self.resources) * duration / self._update_every)
        drawn = (self.rng.uniform(0, duration) for _ in range(count))
        return sorted(((at, self.rng.randrange(len(self.resources))) for at in drawn), reverse=True)

    def _update(self, number: int) -> None:
        one = self.resources[number]
        client = f"c{one.broker:02}"
        machine = self.sim.protocol(client, Resources)
        self.sim.call(client, machine.update, one.name, one.values(self.rng))

    def _know_all(self, model: ModelType) -> bool:
        return all(
            sum(1 for _ in self.sim.protocol(name, Content).advertisements(None, model))
            == len(self.resources)
            for name in self.brokers
        )

    def done_by(self, name: NodeId) -> float | None:
        """The seconds that a broker has worked, by what it counted."""
        if name not in self._counts:
            return None
        cost = self._cost
        counts, routing = self._counts[name]
        return float(
            cost["matching"] * counts.matched_advertisements
            + cost["covering"] * counts.matched_covers
            + cost["filtering"] * counts.matched_results
            + cost["message"] * (counts.requests_sent + counts.result_messages + routing.forwarded)
            + cost["result"] * counts.results_sent
            + self._extra.get(name, 0.0)
        )

    def busy(
        self, broker: NodeId, *, matchings: int = 0, messages: int = 0, results: int = 0
    ) -> float:
        """The broker does what it counts nowhere; when it is through with it."""
        cost = self._cost
        more = cost["matching"] * matchings + cost["message"] * messages + cost["result"] * results
        self._extra[broker] = self._extra.get(broker, 0.0) + more
        done = self.done_by(broker)
        assert done is not None
        return self.work.charge(broker, done, self.sim.now)

    def broker_of(self, client: int) -> NodeId:
        """Whom that client asks."""
        return "b00" if self._centralised else f"b{client:02}"

    def _totals(self) -> dict[str, int]:
        names = (
            *("results_sent", "result_messages", "requests_sent"),
            *("matched_advertisements", "matched_covers"),
        )

        machines = [self.sim.protocol(name, Resources) for name in self.sim.nodes]
        return {name: sum(getattr(one.counts, name) for one in machines) for name in names}

    def _broker(self, links: tuple[NodeId, ...]) -> Recipe:
        return self._recipe(
            ContentSettings(role="broker", links=links, beat=QUIET, lease=600, client_lease=600)
        )

    def _client(self, broker: NodeId) -> Recipe:
        return self._recipe(
            ContentSettings(role="client", broker=broker, beat=QUIET, lease=600, client_lease=600)
        )

    def _recipe(self, settings: ContentSettings) -> Recipe:
        def add(host: Host) -> None:
            content = host.add(Content, settings)
            host.add(Resources, self._settings, content=content)
            host.listen(FindEnded, self._ended.append)

        return add


def _line(brokers: int, routers: int) -> dict[NodeId, tuple[NodeId, ...]]:
    """Routers in a line, and an equal part of the brokers at each of them."""
    links: dict[NodeId, tuple[NodeId, ...]] = {"x0": ()}
    links |= {f"x{number}": (f"x{number - 1}",) for number in range(1, routers)}
    links |= {f"b{number:02}": (f"x{number * routers // brokers}",) for number in range(brokers)}
    return links
