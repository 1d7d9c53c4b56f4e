"""The echo state machine: open requests, one timer for all their deadlines, and an event each."""

from collections.abc import Hashable, Mapping
from random import Random
from typing import ClassVar

import msgspec

from overlay.errors import InvariantViolation, LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import Effects, Event, Handler, Message, OverlayProtocol
from protocols.echo.config import EchoConfig
from protocols.echo.events import EchoAnswered, EchoTimedOut
from protocols.echo.messages import EchoReply, EchoRequest

TIMEOUT = "timeout"  # the earliest deadline of all open requests
REGULAR = "regular"  # the next round of the peers in `config.regular`
REGULAR_PAYLOAD = b"regular"


class OpenRequest(msgspec.Struct):
    """A request that has no end yet."""

    peer: NodeId
    payload: bytes  # kept for a retry, and to compare the reply with
    asked_at: float
    deadline: float
    tries: int = 1


class EchoCounts(msgspec.Struct):
    """How often what happened, since the start."""

    asked: int = 0
    answered: int = 0
    timed_out: int = 0
    retried: int = 0
    late: int = 0  # replies to requests that had ended
    served: int = 0  # requests of others that were answered
    skipped: int = 0  # regular requests that `max_open` left no room for


class Echo(OverlayProtocol):
    """Asks peers for echoes, and echoes what peers ask."""

    name: ClassVar[str] = "echo"
    messages: ClassVar[tuple[type[Message], ...]] = (EchoRequest, EchoReply)
    emits: ClassVar[tuple[type[Event], ...]] = (EchoAnswered, EchoTimedOut)

    config: EchoConfig

    def __init__(self, me: NodeId, effects: Effects, rng: Random, config: EchoConfig) -> None:
        super().__init__(me, effects, rng, config)
        self.counts = EchoCounts()
        self._open: dict[int, OpenRequest] = {}  # the next deadline first
        self._armed = False
        # A random start, so that a reply to an earlier life of this node matches nothing.
        self._next_id = rng.getrandbits(32)

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """One handler for each message of the table in the package's docstring."""
        return {EchoRequest: self._on_request, EchoReply: self._on_reply}

    # -- commands of the application ----------------------------------------------------------

    @property
    def open_requests(self) -> int:
        """How many requests have no end yet."""
        return len(self._open)

    def ask(self, peer: NodeId, payload: bytes, now: float) -> int:
        """Ask `peer` to send `payload` back; the id returned comes again in the event."""
        if len(self._open) >= self.config.max_open:
            raise LocalProtocolError(
                f"{self.config.max_open} echo requests are open: wait for an EchoAnswered or"
                " EchoTimedOut, or raise echo.max_open"
            )
        request = self._next_id
        self._next_id += 1
        self.counts.asked += 1
        self._open[request] = OpenRequest(peer, payload, now, now + self.config.timeout)
        self.effects.send(peer, EchoRequest(request, payload))
        self._arm()
        return request

    # -- messages -----------------------------------------------------------------------------

    def _on_request(self, src: NodeId, msg: EchoRequest, now: float) -> None:
        self.counts.served += 1
        self.effects.send(src, EchoReply(msg.id, msg.payload))

    def _on_reply(self, src: NodeId, msg: EchoReply, now: float) -> None:
        asked = self._open.get(msg.id)
        if asked is None:
            self.counts.late += 1
            return
        if asked.peer != src:
            raise RemoteProtocolError("echo-not-asked", f"request {msg.id} went to {asked.peer}")
        if asked.payload != msg.payload:
            raise RemoteProtocolError("echo-altered", f"request {msg.id}")
        del self._open[msg.id]
        self.counts.answered += 1
        self.effects.emit(EchoAnswered(src, msg.id, now - asked.asked_at, asked.tries))

    # -- time ---------------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Begin the regular rounds, if any, at a random moment: peers must not ask in step."""
        if self.config.regular:
            self.effects.set_timer(REGULAR, now + self.rng.uniform(0.0, self.config.every))

    def on_timer(self, key: Hashable, now: float) -> None:
        """Retry or end what is overdue, or ask the regular peers."""
        if key == TIMEOUT:
            self._armed = False
            self._expire(now)
            self._arm()
        elif key == REGULAR:
            self._ask_regular_peers(now)
            self.effects.set_timer(REGULAR, now + self.config.every)

    def _arm(self) -> None:
        # One timer for all: a timer for each request would be set and cancelled at every echo.
        if not self._armed and self._open:
            self._armed = True
            self.effects.set_timer(TIMEOUT, next(iter(self._open.values())).deadline)

    def _expire(self, now: float) -> None:
        overdue = []
        for request, asked in self._open.items():
            if asked.deadline > now:
                break
            overdue.append(request)
        for request in overdue:
            asked = self._open.pop(request)
            if asked.tries <= self.config.retries:
                asked.tries += 1
                asked.deadline = now + self.config.timeout
                self._open[request] = asked  # at the end again: its deadline is the latest
                self.counts.retried += 1
                self.effects.send(asked.peer, EchoRequest(request, asked.payload))
            else:
                self.counts.timed_out += 1
                self.effects.emit(EchoTimedOut(asked.peer, request, asked.tries))

    def _ask_regular_peers(self, now: float) -> None:
        for peer in self.config.regular:
            if peer == self.me:
                continue  # so that all nodes can share one list
            if len(self._open) < self.config.max_open:
                self.ask(peer, REGULAR_PAYLOAD, now)
            else:
                self.counts.skipped += 1

    # -- invariants ---------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """See the package's docstring."""
        counts = self.counts
        if len(self._open) > self.config.max_open:
            raise InvariantViolation(f"{self.me}: {len(self._open)} echo requests are open")
        if self._open and not self._armed:
            raise InvariantViolation(f"{self.me}: an echo request is open without a timer")
        if counts.asked != counts.answered + counts.timed_out + len(self._open):
            raise InvariantViolation(f"{self.me}: an echo request has no end or two: {counts}")
