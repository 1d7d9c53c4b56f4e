"""Discovery under any order of answers, lies, losses, duplicates and timers."""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.strategies import (
    DataObject,
    booleans,
    data,
    floats,
    integers,
    lists,
    sampled_from,
)

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import Group, Message, Origin, OverlayProtocol, UdpAddress
from protocols.discovery import (
    Bdn,
    BdnSettings,
    Broker,
    BrokerFound,
    BrokerSettings,
    DiscoverySettings,
    NoBrokerFound,
    Requester,
)
from protocols.discovery.credentials import digests_of
from protocols.discovery.messages import (
    Advertisement,
    Ping,
    Pong,
    Request,
    RequestAck,
    Response,
    Usage,
)
from tests.recording import Cast, Emit, RecordingEffects, Send

NAMES = ["b1", "b2", "b3", "b4"]
ADDRESSES = {name: UdpAddress(f"10.0.0.{index}", 7400) for index, name in enumerate(NAMES)}
ADDRESSES["bdn"] = UdpAddress("10.0.1.1", 7400)
ADDRESSES["client"] = UdpAddress("10.0.2.2", 5000)
OWNERS = {address: name for name, address in ADDRESSES.items()}


class RequesterUnderChaos(RuleBasedStateMachine):
    """One requester; brokers and BDNs, or who claims to be one, say whatever they like."""

    @initialize(
        multicast=sampled_from(["never", "fallback", "always"]),
        most=integers(1, 5),
        pinged=integers(1, 3),
        seed=integers(0, 9),
        watching=booleans(),
    )
    def start(self, multicast: Any, most: int, pinged: int, seed: int, watching: bool) -> None:
        self.now = 0.0
        self.effects = RecordingEffects()
        config = DiscoverySettings(
            bdns=("10.0.1.1:7400",),
            multicast=multicast,
            max_responses=most,
            targets=pinged,
            timeout=2.0,
            every=1.0,
        )
        self.machine = Requester("client", self.effects, Random(seed), config)
        self.machine.on_start(0.0, {})
        self.requests: list[Request] = []
        self.pings: list[tuple[NodeId, Ping]] = []
        self.began: dict[bytes, float] = {}
        self.ended: dict[bytes, bool] = {}
        if watching:
            self.machine.watch(0.0)
            self.absorb()

    def absorb(self) -> None:
        for effect in self.effects.drain():
            match effect:
                case Cast(msg=Request() as request):
                    self.began.setdefault(request.id, self.now)
                    self.requests.append(request)
                case Cast(address=UdpAddress() as address, msg=Ping() as ping):
                    self.pings.append((OWNERS[address], ping))
                case Emit(event=(BrokerFound() | NoBrokerFound()) as event):
                    assert event.id not in self.ended, "a discovery ends once"
                    assert self.now <= self.began[event.id] + 2.0 + 1e-9, "within its timeout"
                    self.ended[event.id] = isinstance(event, BrokerFound)
                    if isinstance(event, BrokerFound):
                        self.check(event)

    def check(self, found: BrokerFound) -> None:
        least = [one.ping_least for one in found.candidates if one.ping_least is not None]
        assert found.winner is found.candidates[0]
        assert found.winner.ping_least is not None
        assert found.winner.ping_least <= min(least) + self.machine.config.equal_within
        assert all(one.verdict for one in found.candidates)

    def deliver(self, name: NodeId, msg: Message) -> None:
        origin = Origin(ADDRESSES[name], name, self.now)
        with suppress(RemoteProtocolError):
            self.machine.datagram_handlers()[type(msg)](origin, msg, self.now)
        self.absorb()

    @rule()
    def discover(self) -> None:
        try:
            self.machine.discover(self.now)
        except LocalProtocolError:
            assert len(self.began) > len(self.ended)
        self.absorb()

    @precondition(lambda self: self.requests)
    @rule(
        choices=data(),
        name=sampled_from([*NAMES, "bdn"]),
        status=sampled_from(["prove", "accepted", "credentials", "refused"]),
        told=lists(sampled_from(NAMES), max_size=4),
        total=integers(0, 6),
    )
    def acknowledge(
        self, choices: DataObject, name: str, status: Any, told: list[str], total: int
    ) -> None:
        request = choices.draw(sampled_from(self.requests))
        cookie = bytes([total])
        self.deliver(
            name,
            RequestAck(request.id, request.attempt, status, cookie, total, digests_of(told)),
        )

    @precondition(lambda self: self.requests)
    @rule(
        choices=data(),
        name=sampled_from(NAMES),
        sent_at=floats(-1e12, 1e12),
        cpu=floats(0.0, 1.0),
        told=lists(sampled_from([*NAMES, "ghost"]), max_size=4),
    )
    def respond(
        self, choices: DataObject, name: str, sent_at: float, cpu: float, told: list[str]
    ) -> None:
        request = choices.draw(sampled_from(self.requests))
        usage = Usage(cpu=cpu)
        forwarded = digests_of(told)
        self.deliver(
            name,
            Response(request.id, request.attempt, sent_at, usage, forwarded=forwarded),
        )

    @precondition(lambda self: self.pings)
    @rule(choices=data(), wrongly=sampled_from([*NAMES, ""]))
    def pong(self, choices: DataObject, wrongly: str) -> None:
        name, ping = choices.draw(sampled_from(self.pings[-8:]))
        self.deliver(wrongly or name, Pong(ping.nonce, ping.sent_at))

    @rule(step=floats(0.0, 1.5))
    def time_passes(self, step: float) -> None:
        end = self.now + step
        while self.effects.timers:
            key, due = min(self.effects.timers.items(), key=lambda timer: timer[1])
            if due > end:
                break
            self.now = max(self.now, due)
            del self.effects.timers[key]
            self.machine.on_timer(key, self.now)
            self.absorb()
        self.now = end

    @invariant()
    def holds(self) -> None:
        self.machine.check_invariants()
        assert self.effects.timers or len(self.began) == len(self.ended), "nothing stays open"


class NetworkUnderChaos(RuleBasedStateMachine):
    """A client, a BDN and linked brokers; what they send is lost, doubled and reordered."""

    @initialize(links=lists(sampled_from(NAMES), min_size=4, max_size=4), seed=integers(0, 9))
    def start(self, links: list[str], seed: int) -> None:
        self.now = 0.0
        self.machines: dict[NodeId, OverlayProtocol] = {}
        self.effects: dict[NodeId, RecordingEffects] = {}
        self.under_way: list[tuple[NodeId, NodeId, Message, bool]] = []
        self.ended: list[BrokerFound | NoBrokerFound] = []
        bdn = ("10.0.1.1:7400",)
        self.add("bdn", lambda effects: Bdn("bdn", effects, Random(seed), BdnSettings()))
        for name, other in zip(NAMES, links, strict=True):
            config = BrokerSettings(bdns=bdn, links=() if other == name else (other,))
            self.add(
                name,
                lambda effects, name=name, config=config: Broker(  # type: ignore[misc]
                    name, effects, Random(f"{seed}{name}"), config
                ),
            )
        asking = DiscoverySettings(bdns=bdn)
        self.add("client", lambda effects: Requester("client", effects, Random(seed), asking))

    def add(self, name: NodeId, make: Callable[[RecordingEffects], OverlayProtocol]) -> None:
        self.effects[name] = RecordingEffects()
        self.machines[name] = make(self.effects[name])
        self.machines[name].on_start(0.0, {})
        self.absorb(name)

    def absorb(self, name: NodeId) -> None:
        for effect in self.effects[name].drain():
            match effect:
                case Send(to=to, msg=msg):
                    self.under_way.append((name, to, msg, False))
                case Cast(address=UdpAddress() as address, msg=msg):
                    self.under_way.append((name, OWNERS[address], msg, True))
                case Cast(address=Group(), msg=msg):
                    for other in NAMES:
                        if other != name:
                            self.under_way.append((name, other, msg, True))
                case Emit(event=(BrokerFound() | NoBrokerFound()) as event):
                    self.ended.append(event)
        self.machines[name].check_invariants()

    def arrive(self, index: int, *, keep: bool) -> None:
        src, to, msg, datagram = self.under_way[index]
        if not keep:
            del self.under_way[index]
        machine = self.machines[to]
        try:
            if datagram:
                origin = Origin(ADDRESSES[src], src, self.now)
                machine.datagram_handlers()[type(msg)](origin, msg, self.now)
            else:
                machine.message_handlers()[type(msg)](src, msg, self.now)
        except RemoteProtocolError as error:
            if error.reason != "pong-not-asked":  # a copy of a pong; nothing else is ever wrong
                raise
        self.absorb(to)

    @precondition(lambda self: self.under_way)
    @rule(choices=data(), keep=booleans())
    def deliver(self, choices: DataObject, keep: bool) -> None:
        self.arrive(choices.draw(integers(0, len(self.under_way) - 1)), keep=keep)

    @precondition(lambda self: self.under_way)
    @rule(choices=data())
    def lose(self, choices: DataObject) -> None:
        del self.under_way[choices.draw(integers(0, len(self.under_way) - 1))]

    @rule()
    def discover(self) -> None:
        machine = self.machines["client"]
        assert isinstance(machine, Requester)
        try:
            machine.discover(self.now)
        except LocalProtocolError:
            return
        self.absorb("client")

    @rule(step=floats(0.0, 2.0))
    def time_passes(self, step: float) -> None:
        end = self.now + step
        while True:
            due = min(
                (at, name, str(key), key)
                for name, effects in self.effects.items()
                for key, at in effects.timers.items()
            )
            if due[0] > end:
                break
            self.now = max(self.now, due[0])
            del self.effects[due[1]].timers[due[3]]
            self.machines[due[1]].on_timer(due[3], self.now)
            self.absorb(due[1])
        self.now = end

    def teardown(self) -> None:
        """Whatever happened, once the network is whole all brokers are found."""
        if not hasattr(self, "machines"):
            return
        self.under_way.clear()
        for _ in range(400):
            for _ in range(len(self.under_way)):
                self.arrive(0, keep=False)
            self.time_passes(0.1)
        client = self.machines["client"]
        assert isinstance(client, Requester)
        self.discover()
        before = len(self.ended)
        for _ in range(4500):
            while self.under_way:
                self.arrive(0, keep=False)
            if len(self.ended) > before:
                break
            self.time_passes(0.001)
        found = self.ended[-1]
        assert isinstance(found, BrokerFound), found
        assert found.responses == len(NAMES), found
        listed = self.machines["bdn"]
        assert isinstance(listed, Bdn)
        assert {told.name for told, _, _ in listed.brokers()} == {*NAMES}
        assert all(isinstance(told, Advertisement) for told, _, _ in listed.brokers())


TestRequesterUnderChaos = RequesterUnderChaos.TestCase
TestRequesterUnderChaos.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestNetworkUnderChaos = NetworkUnderChaos.TestCase
TestNetworkUnderChaos.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)
