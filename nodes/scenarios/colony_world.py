"""Trees of brokers with computers, what is true of them, and what they should know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.predicates import Constraint
from overlay.protocol import Event, Handler, Message
from overlay.scenario import Stage, Until
from protocols.colony import (
    Colony,
    ColonySettings,
    LeaderRefused,
    Proposal,
    RequestEnded,
    ServantFound,
    ServiceRejected,
    Terms,
    Wish,
)
from protocols.colony.messages import ServiceRequest
from protocols.colony.services import overlap

QUICK = ColonySettings(
    beat=0.5,
    lease=2.0,
    probe=0.5,
    login_within=0.4,
    retry=0.3,
    retry_most=2.0,
    home_every=3.0,
    within=4.0,
    resend=0.1,
    resend_most=1.0,
)
SETTLED = 30.0  # s in which any tree is right again: leases, pauses and the way home
LOOK = 0.05  # s by which a scenario may see an end late

KINDS = ("cpu", "disk", "gpu", "tape", "printer")


def service(kind: str, *more: str) -> Constraint:
    """A constraint on resources of that kind."""
    return Constraint.parse(", ".join((f'kind = "{kind}"', *more)))


class Watched(Colony):
    """A unit whose every ServiceRequest is counted, by the want and by who sent it."""

    arrivals: Counter[tuple[NodeId, NodeId, int, int, NodeId]]  # broker, client, id, want, sender

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """As always, and counted before."""
        handlers = dict(super().message_handlers())
        handle = handlers[ServiceRequest]

        def on_request(src: NodeId, msg: ServiceRequest, now: float) -> None:
            for want in msg.wants:
                self.arrivals[self.me, msg.client.name, msg.id, want.index, src] += 1
            handle(src, msg, now)

        handlers[ServiceRequest] = on_request
        return handlers


class Asked:
    """A request, and all that its client was told."""

    def __init__(self, client: NodeId, wishes: Sequence[Wish], within: float) -> None:
        self.client = client
        self.wishes = list(wishes)
        self.within = within
        self.id = 0
        self.found: list[ServantFound] = []
        self.rejected: list[ServiceRejected] = []
        self.ends: list[RequestEnded] = []

    def servants(self, index: int = 0) -> list[NodeId]:
        """Who serves that want."""
        return [one.servant.name for one in self.found if one.index == index]


class World:
    """Units of one community, as a scenario knows them."""

    def __init__(self, stage: Stage, settings: ColonySettings = QUICK) -> None:
        self.stage = stage
        self.settings = settings
        self.brokers: list[NodeId] = []
        self.computers: list[NodeId] = []
        self.home: dict[NodeId, NodeId] = {}
        self.offers: dict[NodeId, list[Constraint]] = {}
        self.unwilling: dict[NodeId, None] = {}
        self.arrivals: Counter[tuple[NodeId, NodeId, int, int, NodeId]] = Counter()
        self.refusals: list[tuple[NodeId, LeaderRefused]] = []
        self.asked: dict[tuple[NodeId, int], Asked] = {}
        self._early: dict[tuple[NodeId, int], list[Event]] = {}

    # -- building -------------------------------------------------------------------------------

    def unit(
        self, name: NodeId, leader: NodeId, *, leads: bool, leaders: Sequence[NodeId] = ()
    ) -> None:
        """Start one."""
        (self.brokers if leads else self.computers).append(name)
        self.home[name] = leader
        self.offers.setdefault(name, [])
        self.stage.start(name, self._recipe(name, leads, tuple(leaders)))

    def _recipe(self, name: NodeId, leads: bool, leaders: tuple[NodeId, ...]) -> Recipe:
        def willing(_proposal: Proposal) -> bool:
            return name not in self.unwilling

        def hear(event: Event) -> None:
            self._hear(name, event)

        def add(host: Host) -> None:
            colony = host.add(
                Watched,
                self.settings,
                leads=leads,
                leader=self.home[name],
                leaders=leaders,
                offers=self.offers[name],
                policy=willing,
            )
            colony.arrivals = self.arrivals
            for event in (ServantFound, ServiceRejected, RequestEnded, LeaderRefused):
                host.listen(event, hear)

        return add

    def tree(self, brokers: int, computers: int, *, leaders: Sequence[NodeId] = ()) -> None:
        """A random tree; P0 is the root. Each computer offers up to two services."""
        rng = self.stage.rng
        names = [f"P{index}" for index in range(brokers)]
        for index, name in enumerate(names):
            self.unit(
                name, names[rng.randrange(index)] if index else "", leads=True, leaders=leaders
            )
        for index in range(computers):
            name = f"C{index}"
            self.offers[name] = self.random_services(rng.randint(0, 2))
            self.unit(name, rng.choice(names), leads=False, leaders=leaders)

    def random_services(self, count: int) -> list[Constraint]:
        """Of a few kinds, with a range of sizes."""
        rng = self.stage.rng
        return [service(rng.choice(KINDS), f"size < {rng.choice((2, 5, 9))}") for _ in range(count)]

    def random_wish(self) -> Wish:
        """What may or may not be offered."""
        rng = self.stage.rng
        return Wish((service(rng.choice(KINDS), f"size > {rng.choice((1, 4, 8))}"),))

    # -- acting ---------------------------------------------------------------------------------

    def ask(self, client: NodeId, wishes: Sequence[Wish], terms: Terms | None = None) -> Asked:
        """Begin a request."""
        terms = terms or Terms()
        asked = Asked(client, wishes, terms.within or self.settings.within)
        asked.id = self.stage.call(
            client, lambda host: host.protocol(Watched).ask, list(wishes), terms
        )
        self.asked[client, asked.id] = asked
        for event in self._early.pop((client, asked.id), ()):
            self._hear(client, event)
        return asked

    def _hear(self, name: NodeId, event: Event) -> None:
        if isinstance(event, LeaderRefused):
            self.refusals.append((name, event))
            return
        assert isinstance(event, ServantFound | ServiceRejected | RequestEnded)
        asked = self.asked.get((name, event.request))
        if asked is None:  # told within the very call that asks
            self._early.setdefault((name, event.request), []).append(event)
        elif isinstance(event, ServantFound):
            asked.found.append(event)
        elif isinstance(event, ServiceRejected):
            asked.rejected.append(event)
        else:
            asked.ends.append(event)

    def colony(self, name: NodeId) -> Watched:
        """The machine of a unit that runs."""
        return self.stage.protocol(name, Watched)

    def crash(self, name: NodeId, *, restarts: bool = False) -> None:
        """Kill one; what it asked ends with it."""
        self.stage.crash(name)
        for key in [key for key in self.asked if key[0] == name]:
            del self.asked[key]
        if restarts:
            self.stage.restart(name)

    # -- waiting --------------------------------------------------------------------------------

    def ended(self, asked: Iterable[Asked]) -> Until:
        """Each of these is answered or rejected, within its time."""
        these = list(asked)
        longest = max((one.within for one in these), default=0.0)
        return Until(
            lambda: all(one.ends or (one.client, one.id) not in self.asked for one in these),
            within=longest + LOOK,
            what="an end of every request",
        )

    def settled(self, within: float = SETTLED) -> Until:
        """Every unit has a leader or is the one root, and each table is the union of its colony."""
        return Until(lambda: not self.wrong(), within=within, what="consistent routing tables")

    def wrong(self) -> str:
        """What is not as it should be; empty: all is well."""
        units = {name: self.colony(name) for name in self.stage.names}
        roots = [name for name, unit in units.items() if not unit.leader]
        if len(roots) != 1 or not units[roots[0]].leads:
            return f"roots: {roots}"
        below: dict[NodeId, list[NodeId]] = {name: [] for name in units}
        for name, unit in units.items():
            if unit.leader:
                if unit.leader not in units:
                    return f"{name} follows {unit.leader}, who is gone"
                below[unit.leader].append(name)
        for name, unit in units.items():
            individuals = sorted(one.name for one in unit.individuals())
            if individuals != sorted(below[name]):
                return f"{name} has {individuals}, but {sorted(below[name])} follow it"
            if sorted(unit.table.union) != sorted(self._offered(name, units, below)):
                return f"{name}: its union is wrong"
            if list(unit.path) != self._way_up(name, units):
                return f"{name}: its path is {unit.path}"
        return ""

    def _offered(
        self, name: NodeId, units: Mapping[NodeId, Watched], below: Mapping[NodeId, list[NodeId]]
    ) -> dict[str, None]:
        """What a colony offers in truth."""
        offered = dict.fromkeys(units[name].own_services)
        for individual in below[name]:
            offered |= self._offered(individual, units, below)
        return offered

    def _way_up(self, name: NodeId, units: Mapping[NodeId, Watched]) -> list[NodeId]:
        way: list[NodeId] = []
        while name := units[name].leader:
            assert name not in way, f"a cycle: {way}"
            way.append(name)
        return way

    # -- what is right --------------------------------------------------------------------------

    def able(self, client: NodeId, wish: Wish) -> list[NodeId]:
        """Who runs and would serve a wish."""
        return [
            name
            for name in self.stage.names
            if name != client
            and name not in self.unwilling
            and all(
                any(overlap(wanted, offered) for offered in self.offers[name])
                for wanted in wish.services
            )
        ]

    def check_ends(self, asked: Iterable[Asked]) -> None:
        """One end each, in time, and nobody serves what it does not offer."""
        for one in asked:
            if (one.client, one.id) not in self.asked:
                continue  # it died with its client
            assert len(one.ends) == 1, one.ends
            assert one.ends[0].after <= one.within + 1e-9, one.ends
            for found in one.found:
                wish = one.wishes[found.index]
                assert found.servant.name != one.client
                assert all(
                    any(overlap(wanted, offered) for offered in self.offers[found.servant.name])
                    for wanted in wish.services
                ), (found, wish)

    def check_right(self, asked: Iterable[Asked]) -> None:
        """Found is exactly what somebody could serve."""
        for one in asked:
            for index, wish in enumerate(one.wishes):
                able = self.able(one.client, wish)
                found = one.servants(index)
                wanted = min(wish.instances, len(able))
                assert len(found) >= wanted, f"{one.client} wants {wish}: {found} of {able}"
                assert set(found) <= set(able), f"{found} of {able}"

    def check_no_loop(self) -> None:
        """No broker was sent one want of a request twice."""
        seen: Counter[tuple[NodeId, NodeId, int, int]] = Counter()
        for (broker, client, request, index, _), times in self.arrivals.items():
            seen[broker, client, request, index] += times
        assert all(times == 1 for times in seen.values()), seen.most_common(3)


def requests(
    world: World,
    count: int,
    *,
    gap: float = 0.05,
    clients: Sequence[NodeId] = (),
    terms: Terms | None = None,
) -> list[Asked]:
    """Begin some requests of random clients that have a colony."""
    rng = world.stage.rng
    asked = []
    names = [
        name
        for name in clients or (*world.computers, *world.brokers)
        if name in world.stage.names and (world.colony(name).leads or world.colony(name).leader)
    ]
    for _ in range(count if names else 0):
        wishes = [world.random_wish() for _ in range(rng.randint(1, 3))]
        asked.append(world.ask(rng.choice(names), wishes, terms))
    return asked
