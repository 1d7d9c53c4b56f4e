"""A view of members by hand, and a machine whose sources answer as a test says."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from random import Random

from overlay.ids import NodeId, Ring
from overlay.protocol import Origin, UdpAddress
from protocols.membership.interface import Value
from protocols.membership.records import Record, State
from protocols.timesync import TimeReply, TimeRequest, TimeSettings, TimeSync
from protocols.timesync.messages import PADDING
from protocols.zones.interface import ZoneDirectory
from tests.recording import Cast, RecordingEffects

ZONE = "west"
PORT = 7400
BASE = 1_000.0


class SeniorView:
    """Members in the order of their seniority; a test changes `names`."""

    def __init__(self, me: NodeId, names: list[NodeId]) -> None:
        self.zone = ZONE
        self.me = me
        self.names = names
        self.version = 0
        self._places = {name: place for place, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def members(self) -> tuple[NodeId, ...]:
        return tuple(self.names)

    def record(self, name: NodeId) -> Record | None:
        if name not in self._places:
            return None
        return Record(name, 1, State.ALIVE, 1, self._places[name])

    def ring(self) -> Ring:
        return Ring(self.names)

    def attributes(self, name: NodeId) -> Mapping[str, Value]:
        return {}

    def roles(self, name: NodeId) -> tuple[str, ...]:
        return ()

    def change(self, names: list[NodeId]) -> None:
        """Others are present from now on, by seniority."""
        self.names = names
        self._places = {name: place for place, name in enumerate(names)}
        self.version += 1


def address(name: NodeId) -> UdpAddress:
    """Where a member takes datagrams."""
    return UdpAddress(name, PORT)


def origin(name: NodeId, at: float) -> Origin:
    """From whom, and when it came."""
    return Origin(address(name), name, at)


class Node:
    """One machine, and everything that it did."""

    def __init__(
        self,
        me: NodeId,
        names: list[NodeId],
        config: TimeSettings | None = None,
        *,
        now: float = BASE,
        servers: tuple[UdpAddress, ...] = (),
        zones: ZoneDirectory | None = None,
    ) -> None:
        self.effects = RecordingEffects()
        self.view = SeniorView(me, names)
        self.now = now
        self.machine = TimeSync(
            me,
            self.effects,
            Random(1),
            config or TimeSettings(),
            members=self.view,
            where=address,
            servers=servers,
            zones=zones,
        )
        self.machine.on_start(now, {})

    def advance(self, seconds: float) -> None:
        """Let time pass, with all timers that fall into it; answers come from the test alone."""
        end = self.now + seconds
        while due := [(at, str(key), key) for key, at in self.effects.timers.items() if at <= end]:
            at, _, key = min(due)
            del self.effects.timers[key]
            self.now = max(self.now, at)
            self.machine.on_timer(key, self.now)
        self.now = end

    def asked(self) -> list[tuple[NodeId, TimeRequest]]:
        """Whom it asked since the last look, and how."""
        return [
            (step.address.host, step.msg)
            for step in self.effects.drain()
            if isinstance(step, Cast) and isinstance(step.msg, TimeRequest)
        ]

    def answer(
        self,
        name: NodeId,
        request: int,
        *,
        ahead: float = 0.0,
        there: float = 0.001,
        back: float = 0.001,
        offset: float = 0.0,
        error: float = 0.0,
        stratum: int = 1,
        root: NodeId = "",
        led: bool = False,
        at: float | None = None,
    ) -> None:
        """`name` answers what was asked `there + back` ago; its clock is ahead of this node's."""
        heard = self.now if at is None else at
        received = heard - back + ahead
        told = (offset, 0.0, error, stratum, root or name, led)
        self.receive(name, TimeReply(request, received, received, *told), heard)

    def told_by(self, asker: NodeId) -> TimeReply:
        """What this node answers now."""
        self.effects.drain()
        self.receive(asker, TimeRequest(1, PADDING), self.now)
        replies = [step.msg for step in self.effects.drain() if isinstance(step, Cast)]
        (reply,) = [msg for msg in replies if isinstance(msg, TimeReply)]
        return reply

    def receive(self, name: NodeId, msg: TimeRequest | TimeReply, at: float) -> None:
        """A datagram arrives."""
        self.machine.datagram_handlers()[type(msg)](origin(name, at), msg, at)

    def converse(
        self,
        seconds: float,
        ahead: Mapping[NodeId, float],
        *,
        there: float = 0.001,
        back: float = 0.001,
        stratum: Mapping[NodeId, int] | None = None,
        root: Mapping[NodeId, NodeId] | None = None,
        error: Mapping[NodeId, float] | None = None,
        led: Collection[NodeId] = (),
    ) -> None:
        """Let time pass while members with these clocks answer every question."""
        end = self.now + seconds
        step = 0.01
        while self.now < end:
            self.advance(min(step, end - self.now))
            for name, request in self.asked():
                if name in ahead:
                    asked_at = self.machine._open[request.id].at
                    told = (stratum or {}).get(name, 1)
                    self.answer(
                        name,
                        request.id,
                        ahead=ahead[name],
                        back=back,
                        at=asked_at + there + back,
                        stratum=told,
                        root=(root or {}).get(name, ""),
                        error=(error or {}).get(name, 0.0),
                        led=name in led,
                    )
