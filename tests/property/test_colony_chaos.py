"""A colony whose messages are late, lost, doubled and in any order, while units die and return."""

from __future__ import annotations

from random import Random

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.strategies import DataObject, booleans, data, floats, integers, sampled_from

from bench.colony_dispatch import Dispatcher
from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.predicates import Constraint
from overlay.protocol import Event
from protocols.colony import Colony, ColonySettings, RequestEnded, ServantFound, Terms, Wish
from protocols.colony.interface import MODES

QUICK = ColonySettings(
    beat=0.5, lease=2.0, probe=0.5, login_within=0.3, retry=0.2, home_every=2.0, within=3.0
)
UNITS: dict[NodeId, tuple[NodeId, bool]] = {
    "p": ("", True),
    "q": ("p", True),
    "r": ("q", True),
    "a": ("p", False),
    "b": ("q", False),
    "c": ("r", False),
}
SERVICES = [Constraint.parse(f'kind = "{kind}"') for kind in ("cpu", "disk")]
NAMES = sampled_from(list(UNITS))


class ColonyUnderChaos(RuleBasedStateMachine):
    @initialize(seed=integers(0, 9), offers=integers(0, 63))
    def start(self, seed: int, offers: int) -> None:
        self.world: Dispatcher[Colony] = Dispatcher(self._hear)
        self.offers = {
            name: [SERVICES[index % 2]] if offers >> index & 1 else []
            for index, name in enumerate(UNITS)
        }
        self.rng = Random(seed)
        self.asked: dict[tuple[NodeId, int], float] = {}
        self.ended: dict[tuple[NodeId, int], int] = {}
        for name in UNITS:
            self._start(name)
        self.world.settle()

    def _start(self, name: NodeId) -> None:
        leader, leads = UNITS[name]
        self.world.add(
            name,
            lambda effects: Colony(
                name,
                effects,
                Random(self.rng.random()),
                QUICK,
                leader=leader,
                leads=leads,
                offers=self.offers[name],
            ),
        )

    def _hear(self, name: NodeId, event: Event) -> None:
        if isinstance(event, RequestEnded):
            self.ended[name, event.request] = self.ended.get((name, event.request), 0) + 1
            assert event.after <= QUICK.within + 1e-6
        elif isinstance(event, ServantFound):
            assert event.servant.name != name, "nobody serves itself"
            assert self.offers[event.servant.name], "it offers something"

    @rule(name=NAMES, mode=sampled_from(MODES), which=integers(0, 1), reliable=booleans())
    def ask(self, name: NodeId, mode: str, which: int, reliable: bool) -> None:
        machine = self.world.machines.get(name)
        if machine is not None and (machine.leads or machine.leader):
            terms = Terms(mode, reliable=reliable)
            request = machine.ask([Wish((SERVICES[which],))], terms, self.world.now)
            self.asked[name, request] = self.world.now

    @rule(choice=data(), copies=integers(0, 2))
    def deliver(self, choice: DataObject, copies: int) -> None:
        """One of those under way arrives, again and again, or not at all."""
        queue = self.world.queue
        if queue:
            index = choice.draw(integers(0, min(len(queue), 20) - 1))
            one = queue[index]
            del queue[index]
            for _ in range(copies):
                self._hand(*one)

    def _hand(self, src: NodeId, to: NodeId, msg: object) -> None:
        machine = self.world.machines.get(to)
        if machine is not None:
            try:
                machine.message_handlers()[type(msg)](src, msg, self.world.now)  # type: ignore[index]
            except RemoteProtocolError:
                raise AssertionError(f"{to} refused {msg} of an honest {src}") from None

    @rule()
    def all_arrive(self) -> None:
        self.world.settle()

    @rule(seconds=floats(0.01, 3.0))
    def time_passes(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @rule(name=NAMES)
    def dies_or_returns(self, name: NodeId) -> None:
        if name in self.world.machines:
            self.world.remove(name)
            for key in [key for key in self.asked if key[0] == name]:
                del self.asked[key]
        else:
            self._start(name)

    @invariant()
    def all_is_well(self) -> None:
        for machine in getattr(self, "world", Dispatcher(lambda *_: None)).machines.values():
            machine.check_invariants()

    def teardown(self) -> None:
        """Everybody is back, nothing is lost: every request ended once, tables are right."""
        if not hasattr(self, "world"):
            return
        for name in UNITS:
            if name not in self.world.machines:
                self._start(name)
        self.world.settle()
        self.world.pass_time(40.0)
        for key in self.asked:
            assert self.ended.get(key) == 1, key
        machines = self.world.machines
        assert [name for name, one in machines.items() if not one.leader] == ["p"]
        for name, machine in machines.items():
            below = [one for one in machines if name == one or name in machines[one].path]
            offered = {text for one in below for text in machines[one].own_services}
            assert set(machine.table.union) == offered, name


ColonyUnderChaos.TestCase.settings = settings(stateful_step_count=40, deadline=None)
TestColonyUnderChaos = ColonyUnderChaos.TestCase
