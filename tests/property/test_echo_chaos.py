"""Echo under any order of answers, losses, duplicates and timers."""

from random import Random

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.strategies import DataObject, binary, data, floats, integers, sampled_from

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.protocol import Event
from protocols.echo import Echo, EchoAnswered, EchoConfig, EchoReply, EchoRequest, EchoTimedOut
from protocols.echo.machine import TIMEOUT
from tests.recording import Emit, RecordingEffects, Send, SetTimer

PEERS = sampled_from(["bob", "eve", "fay"])


class EchoUnderChaos(RuleBasedStateMachine):
    """One instance; the network may lose, repeat, delay, alter and misattribute what it sent."""

    @initialize(max_open=integers(1, 4), retries=integers(0, 2), seed=integers(0, 9))
    def start(self, max_open: int, retries: int, seed: int) -> None:
        self.now = 0.0
        self.effects = RecordingEffects()
        config = EchoConfig(max_open=max_open, retries=retries, timeout=1.0)
        self.echo = Echo("ada", self.effects, Random(seed), config)
        self.echo.on_start(self.now, {})
        self.due: float | None = None
        self.sent: list[tuple[str, EchoRequest]] = []
        self.asked: dict[int, str] = {}
        self.ended: dict[int, Event] = {}

    def absorb(self) -> None:
        for effect in self.effects.drain():
            match effect:
                case Send(to=str(to), msg=EchoRequest() as request):
                    self.sent.append((to, request))
                case SetTimer(key="timeout", at=at):
                    self.due = at
                case Emit(event=(EchoAnswered() | EchoTimedOut()) as event):
                    assert event.id not in self.ended, "a request ends once"
                    assert self.asked[event.id] == event.peer
                    self.ended[event.id] = event
                case other:
                    raise AssertionError(other)

    @rule(peer=PEERS, payload=binary(max_size=3))
    def ask(self, peer: str, payload: bytes) -> None:
        try:
            request = self.echo.ask(peer, payload, self.now)
        except LocalProtocolError:
            assert self.echo.open_requests == self.echo.config.max_open
            return
        self.asked[request] = peer
        self.absorb()

    @rule(choices=data())
    def answer(self, choices: DataObject) -> None:
        if self.sent:
            peer, request = choices.draw(sampled_from(self.sent))
            self.reply(peer, EchoReply(request.id, request.payload))

    @rule(peer=PEERS, payload=binary(max_size=3), choices=data())
    def answer_badly(self, peer: str, payload: bytes, choices: DataObject) -> None:
        if self.sent:
            _, request = choices.draw(sampled_from(self.sent))
            self.reply(peer, EchoReply(request.id, payload))

    def reply(self, peer: str, msg: EchoReply) -> None:
        try:
            self.echo.message_handlers()[EchoReply](peer, msg, self.now)
        except RemoteProtocolError:
            assert msg.id not in self.ended
        self.absorb()

    @rule(step=floats(0.0, 3.0))
    def time_passes(self, step: float) -> None:
        self.now += step
        while self.due is not None and self.due <= self.now:
            self.due = None
            self.echo.on_timer(TIMEOUT, self.now)
            self.absorb()

    @invariant()
    def holds(self) -> None:
        self.echo.check_invariants()
        assert self.echo.open_requests == len(self.asked) - len(self.ended)
        assert self.due is not None or not self.echo.open_requests


TestEchoUnderChaos = EchoUnderChaos.TestCase
TestEchoUnderChaos.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
