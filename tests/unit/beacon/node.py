"""One node's beacon under test: a view that changes by command, and the recorded effects."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import Any

from overlay.ids import NodeId
from overlay.protocol import Event, Message, Origin, Scope, UdpAddress
from protocols.beacon import Announcement, Beacon, BeaconSettings, Presence
from protocols.membership.events import MemberFailed, MemberJoined, MemberLeft
from tests.recording import Cast, Emit, Recorded, RecordingEffects
from tests.unit.zones.node import FixedMembership

ZONE: Scope = "hall"
AUTHORITY = b"our authority"
HERE = ("tcp://10.0.0.1:7000",)
SETTINGS = BeaconSettings()
GROUP = SETTINGS.groups()[4]


def presence(name: NodeId = "bob", **other: Any) -> Presence:
    """What that node says of itself; hosts are numbered by the first letter of names."""
    told: dict[str, Any] = {
        "version": 1,
        "overlay": "lab",
        "authority": AUTHORITY,
        "zone": ZONE,
        "size": 1,
        "endpoints": (f"tcp://{host(name)}:7000",),
    }
    return Presence(**told | other)


_ids = count(1)


def announcement(who: Presence) -> Announcement:
    """One that was not heard before."""
    return Announcement(who, next(_ids))


def host(name: NodeId) -> str:
    """Where a node of that name is."""
    return f"10.0.0.{ord(name[0])}"


def origin(name: NodeId = "bob", at: str = "") -> Origin:
    """Where its datagrams come from."""
    return Origin(UdpAddress(at or host(name), 7000), name, 0.0)


class BeaconNode:
    """Ada, of zone hall."""

    def __init__(
        self,
        settings: BeaconSettings = SETTINGS,
        *members: NodeId,
        zone: Scope = ZONE,
        here: tuple[str, ...] = HERE,
        zones: int = 1,
        seed: int = 1,
        told: bool = False,
    ) -> None:
        self.effects = RecordingEffects()
        self.view = FixedMembership(zone, "ada")
        for name in members:
            self.view.put(name, 1)
        self.beacon = Beacon(
            "ada",
            self.effects,
            Random(seed),
            settings,
            overlay="lab",
            authority=AUTHORITY,
            view=self.view,
            here=lambda: here,
            zones=lambda: zones,
            told=told,
        )

    def start(self, now: float = 0.0, kept: dict[bytes, bytes] | None = None) -> list[Recorded]:
        self.beacon.on_start(now, kept or {})
        return self.drain()

    def hear(self, message: Message, now: float, name: NodeId = "bob", at: str = "") -> None:
        self.beacon.datagram_handlers()[type(message)](origin(name, at), message, now)
        self.beacon.check_invariants()

    def join(self, name: NodeId, now: float) -> None:
        self.view.put(name, 1)
        self._tell(MemberJoined(self.view.zone, name, 1), now)

    def fail(self, name: NodeId, now: float, *, left: bool = False) -> None:
        self.view.drop(name)
        zone = self.view.zone
        self._tell(MemberLeft(zone, name) if left else MemberFailed(zone, name), now)

    def _tell(self, event: Event, now: float) -> None:
        self.beacon.event_handlers()[type(event)](event, now)
        self.beacon.check_invariants()

    def ring(self, key: str) -> float:
        """Fire a timer when it is due; returns that time."""
        at = self.effects.timers.pop(key)
        self.beacon.on_timer(key, at)
        self.beacon.check_invariants()
        return at

    def drain(self) -> list[Recorded]:
        return self.effects.drain()

    def casts(self) -> list[Cast]:
        return [one for one in self.drain() if isinstance(one, Cast)]

    def emitted(self, kind: type[Event]) -> list[Any]:
        events = [one.event for one in self.drain() if isinstance(one, Emit)]
        return [event for event in events if isinstance(event, kind)]
