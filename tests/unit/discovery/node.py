"""Machines of discovery with recorded effects, and what tests deliver to them."""

from __future__ import annotations

from random import Random
from typing import Any, TypeVar

from overlay.protocol import Event, Message, Origin, OverlayProtocol, UdpAddress
from protocols.discovery import Bdn, BdnSettings, Broker, BrokerSettings, DiscoverySettings
from protocols.discovery.machine import Requester
from protocols.discovery.messages import (
    Advertisement,
    Pong,
    Request,
    RequestAck,
    Response,
    Usage,
    Where,
)
from tests.recording import Cast, Emit, RecordingEffects, Send

M = TypeVar("M", bound=Message)
E = TypeVar("E", bound=Event)

BDN_AT = UdpAddress("10.0.0.1", 7400)
SECOND_AT = UdpAddress("10.0.0.2", 7400)
CLIENT_AT = UdpAddress("10.0.9.9", 5555)


def at(name: str) -> UdpAddress:
    """Where that broker is."""
    return UdpAddress(f"10.0.1.{ord(name[-1])}", 7400)


class Node:
    """One machine, and shorthands for its inputs and outputs."""

    def __init__(self, machine: OverlayProtocol, effects: RecordingEffects) -> None:
        self.machine = machine
        self.effects = effects

    def datagram(self, name: str, address: UdpAddress, msg: Message, now: float) -> None:
        """Let one arrive."""
        self.machine.datagram_handlers()[type(msg)](Origin(address, name, now), msg, now)
        self.machine.check_invariants()

    def message(self, src: str, msg: Message, now: float) -> None:
        """Let one arrive over a link."""
        self.machine.message_handlers()[type(msg)](src, msg, now)
        self.machine.check_invariants()

    def fire(self, key: str, now: float) -> None:
        """A timer is due."""
        self.effects.timers.pop(key, None)
        self.machine.on_timer(key, now)
        self.machine.check_invariants()

    def casts(self, kind: type[M]) -> list[tuple[Any, M]]:
        """The datagrams of that kind since the last drain, with their addresses."""
        return [
            (effect.address, effect.msg)
            for effect in self.effects.recorded
            if isinstance(effect, Cast) and isinstance(effect.msg, kind)
        ]

    def sends(self, kind: type[M]) -> list[tuple[str, M]]:
        """What left over links."""
        return [
            (effect.to, effect.msg)
            for effect in self.effects.recorded
            if isinstance(effect, Send) and isinstance(effect.msg, kind)
        ]

    def emitted(self, kind: type[E]) -> list[E]:
        """The events of that kind since the last drain."""
        return [
            effect.event
            for effect in self.effects.recorded
            if isinstance(effect, Emit) and isinstance(effect.event, kind)
        ]

    def drain(self) -> None:
        """Forget what was recorded."""
        self.effects.drain()


class RequesterNode(Node):
    """A requester that asks two BDNs, unless told otherwise."""

    machine: Requester

    def __init__(self, kept: dict[bytes, bytes] | None = None, **options: Any) -> None:
        views = {key: options.pop(key) for key in ("clock", "moment", "may_be") if key in options}
        options.setdefault("bdns", ("10.0.0.1:7400", "10.0.0.2:7400"))
        effects = RecordingEffects()
        config = DiscoverySettings(**options)
        super().__init__(Requester("client", effects, Random(1), config, **views), effects)
        self.machine.on_start(0.0, kept or {})

    def begin(self, now: float = 0.0) -> bytes:
        """Start a discovery."""
        return self.machine.discover(now)

    def accepted(self, request: bytes, *brokers: str, now: float, attempt: int = 0) -> None:
        """The first BDN took the request on."""
        from protocols.discovery.credentials import digests_of

        ack = RequestAck(
            request, attempt, "accepted", total=len(brokers), injected=digests_of(brokers)
        )
        self.datagram("bdn", BDN_AT, ack, now)

    def respond(self, name: str, request: bytes, now: float, **told: Any) -> None:
        """A broker answers."""
        told.setdefault("sent_at", now - 0.01)
        told.setdefault("usage", Usage())
        told.setdefault("attempt", 0)
        told.setdefault("endpoints", (f"tcp://{name}:7400",))
        self.datagram(name, at(name), Response(request, **told), now)

    def answer_pings(self, round_trips: dict[str, float]) -> float:
        """Answer each ping so far after these seconds; the time of the last answer."""
        from protocols.discovery.messages import Ping

        replies = []
        for address, ping in self.casts(Ping):
            for name, trip in round_trips.items():
                if at(name) == address:
                    replies.append((ping.sent_at + trip, name, Pong(ping.nonce, ping.sent_at)))
        self.drain()
        when = 0.0
        for when, name, pong in sorted(replies, key=lambda reply: reply[0]):
            self.datagram(name, at(name), pong, when)
        return when


class BrokerNode(Node):
    """A broker."""

    machine: Broker

    def __init__(self, name: str = "b1", **options: Any) -> None:
        views = {key: options.pop(key) for key in ("may_be", "usage", "clock") if key in options}
        effects = RecordingEffects()
        config = BrokerSettings(**options)
        machine = Broker(
            name, effects, Random(1), config, here=lambda: (f"tcp://{name}:7400",), **views
        )
        super().__init__(machine, effects)
        machine.on_start(0.0, {})


class BdnNode(Node):
    """A BDN."""

    machine: Bdn

    def __init__(self, **options: Any) -> None:
        views = {key: options.pop(key) for key in ("may_be",) if key in options}
        effects = RecordingEffects()
        super().__init__(Bdn("bdn", effects, Random(1), BdnSettings(**options), **views), effects)
        self.machine.on_start(0.0, {})

    def advertise(self, name: str, now: float, *links: str, **told: Any) -> None:
        """A broker advertises."""
        told.setdefault("sequence", 1)
        told.setdefault("lease", 100.0)
        self.datagram(name, at(name), Advertisement(name, links=links, **told), now)

    def proven(self, request: Request, now: float) -> Request:
        """That request with the cookie that it needs."""
        import msgspec

        self.drain()
        self.datagram("client", CLIENT_AT, request, now)
        ((_, ack),) = self.casts(RequestAck)
        assert ack.status == "prove"
        self.drain()
        return msgspec.structs.replace(request, cookie=ack.cookie)


def request(number: int = 1, **told: Any) -> Request:
    """A request of the client, as long as real ones are."""
    told.setdefault("padding", bytes(600))
    return Request(number.to_bytes(16), **told)


def where(address: UdpAddress) -> Where:
    """As it is sent."""
    return Where(address.host, address.port)
