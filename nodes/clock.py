"""Overlay time as applications and the control socket see it: `peer.time`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overlay.errors import RemoteProtocolError
from overlay.net.ntp import NtpAnswer, NtpClient
from protocols.timesync import TimeSettings, TimeSync, TimeSynchronised
from protocols.timesync.machine import Exchange

if TYPE_CHECKING:
    from nodes.node import Node
    from protocols.timesync.source import Source
    from protocols.timesync.steering import Standing


class PeerTime:
    """What time it is in the overlay, and how well this node knows it."""

    def __init__(self, node: Node) -> None:
        self._node = node
        node.control.register("time", self.facts)
        self._ntp: NtpClient | None = None
        servers = node.config.section(TimeSettings).ntp
        if servers:
            self._ntp = NtpClient(
                servers, lambda: node.driver.now(), self._on_ntp, self._on_ntp_silence
            )
            node.in_background(self._ntp.run)

    def now(self) -> float:
        """Overlay time in Unix seconds; it never goes backwards."""
        return self._machine.overlay_time(self._node.driver.now())

    async def known(self) -> None:
        """Wait until the zone's time is known, or the node stops."""
        with self._node.events(TimeSynchronised) as events:
            if not self.synchronised:
                async for _ in events:
                    return

    @property
    def offset(self) -> float:
        """Seconds that overlay time is ahead of the node's own clock."""
        return self._standing.offset

    @property
    def error(self) -> float:
        """Seconds that `now` may be off at most, as long as one chosen source is honest."""
        return self._standing.error

    @property
    def synchronised(self) -> bool:
        """Whether the zone's time is known; before, `now` is this node's own clock."""
        return self._standing.synchronised

    @property
    def drift(self) -> float:
        """By how much the node's clock is slow, in seconds per second."""
        return self._standing.drift

    @property
    def stratum(self) -> int:
        """1 is the root of the zone's time, 2 who follows it, and so on; 16 knows no time."""
        return self._standing.stratum

    @property
    def root(self) -> str:
        """Whose time it is: a member, or an NTP server."""
        return self._standing.root

    def facts(self) -> dict[str, Any]:
        """Everything, as `overlay time --json` prints it; seconds."""
        now = self._node.driver.now()
        standing = self._machine.standing(now)
        return {
            "node": self._node.name,
            "overlay": self._node.overlay,
            "zone": self._node.zone,
            "now": self._machine.overlay_time(now),
            **standing._asdict(),
            "sources": [source_facts(one, standing, now) for one in self._machine.sources],
        }

    @property
    def _machine(self) -> TimeSync:
        return self._node.protocol(TimeSync)

    @property
    def _standing(self) -> Standing:
        return self._machine.standing(self._node.driver.now())

    # -- NTP ----------------------------------------------------------------------------------

    def _on_ntp(self, server: str, answer: NtpAnswer) -> None:
        try:
            self._node.call(self._machine.take_ntp, server, Exchange(*answer))
        except RemoteProtocolError as error:
            self._node.driver.host.refuse(server, error)

    def _on_ntp_silence(self, server: str) -> None:
        self._node.call(self._machine.miss_ntp, server)


def source_facts(source: Source, standing: Standing, now: float) -> dict[str, Any]:
    """One source as plain values; seconds, and null where nothing is known yet."""
    facts: dict[str, Any] = {
        "source": source.key,
        "name": source.name,
        "kind": source.kind.name.lower(),
        "state": _state(source, standing),
        "stratum": source.claim.stratum if source.claim else None,
        "root": source.claim.root if source.claim else None,
        "samples": len(source.filter),
        "polls": source.polls,
        "offset": None,
        "error": None,
        "delay": None,
        "drift": None,
    }
    if source.votes():
        ballot, clock = source.ballot(now), source.filter.estimate(now)
        facts |= {
            "offset": ballot.offset,
            "error": ballot.error,
            "delay": clock.delay,
            "drift": ballot.rate,
        }
    return facts


def _state(source: Source, standing: Standing) -> str:
    if not source.answers:
        return "silent"
    if not source.votes():
        return "waiting"
    if source.false:
        return "falseticker"
    return "chosen" if source.key in standing.follows else "agrees"
