"""The brokers that a BDN knows: bounded, expiring, measured, and grouped by their links."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

import msgspec

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from overlay.protocol import UdpAddress
from protocols.discovery.messages import Advertisement

PROBE_EVERY = 10.0  # s between two probes of one broker
PROBE_AGAIN = 1.0  # s, when one was not answered
SILENT_AFTER = 3  # probes without a reply: its distance is unknown again


class Listed(msgspec.Struct):
    """One broker."""

    advertisement: Advertisement
    address: UdpAddress
    expires: float
    rtt: float | None = None
    nonce: bytes = b""  # of the probe under way
    probed_at: float = 0.0
    unanswered: int = 0
    probe_at: float = 0.0


class Registry:
    """Advertisements by name; `capacity` of them at most."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._listed: dict[NodeId, Listed] = {}
        self._probes: list[tuple[float, NodeId]] = []  # a heap; entries of forgotten brokers stay

    def __len__(self) -> int:
        return len(self._listed)

    def __iter__(self) -> Iterator[Listed]:
        return iter(self._listed.values())

    def get(self, name: NodeId) -> Listed | None:
        """What is known of that broker."""
        return self._listed.get(name)

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another one."""
        return len(self._listed) >= self._capacity

    def put(self, told: Advertisement, address: UdpAddress, expires: float, now: float) -> bool:
        """Store or renew; True when the broker is new here."""
        known = self._listed.get(told.name)
        if known is not None:
            known.advertisement, known.expires = told, expires
            if known.address != address:
                known.address, known.rtt, known.nonce = address, None, b""
            return False
        self._listed[told.name] = Listed(told, address, expires, probe_at=now)
        heappush(self._probes, (now, told.name))
        if len(self._probes) > 2 * self._capacity:  # names that came and went
            self._probes = [(one.probe_at, name) for name, one in self._listed.items()]
            heapify(self._probes)
        return True

    def forget(self, name: NodeId) -> bool:
        """Drop it; False when it was not there."""
        return self._listed.pop(name, None) is not None

    def expired(self, now: float) -> list[NodeId]:
        """Those whose lease has ended."""
        return [name for name, one in self._listed.items() if one.expires <= now]

    # -- probing ----------------------------------------------------------------------------------

    def next_probe(self) -> float | None:
        """When the next one is due."""
        return self._probes[0][0] if self._probes else None

    def due_probe(self, now: float) -> Listed | None:
        """The next broker to probe, if it is time; it is due again later."""
        while self._probes and self._probes[0][0] <= now:
            at, name = heappop(self._probes)
            listed = self._listed.get(name)
            if listed is None or listed.probe_at != at:
                continue  # it was forgotten, or forgotten and listed again
            if listed.nonce:
                listed.unanswered += 1
                if listed.unanswered >= SILENT_AFTER:
                    listed.rtt = None
            pause = PROBE_AGAIN if 0 < listed.unanswered < SILENT_AFTER else PROBE_EVERY
            listed.probe_at = now + pause
            heappush(self._probes, (listed.probe_at, name))
            return listed
        return None

    def answered(self, name: NodeId, nonce: bytes, now: float) -> bool:
        """A probe came back; False when it is not the one under way."""
        listed = self._listed.get(name)
        if listed is None or not nonce or listed.nonce != nonce:
            return False
        sample = max(0.0, now - listed.probed_at)
        listed.rtt = sample if listed.rtt is None else 0.7 * listed.rtt + 0.3 * sample
        listed.nonce, listed.unanswered = b"", 0
        return True

    # -- where to inject --------------------------------------------------------------------------

    def plan(self, most: int) -> list[NodeId]:
        """The closest and the farthest broker (§4), and the closest of every other component.

        Departs from §4, which would miss brokers that are linked to nobody.
        """
        near = sorted(self._listed.values(), key=_distance)
        component = self._components()
        measured = [one for one in near if one.rtt is not None]
        chosen: dict[NodeId, None] = {}
        served: dict[NodeId, None] = {}
        for one in measured[:1] + measured[-1:]:
            chosen[one.advertisement.name] = None
            served[component[one.advertisement.name]] = None
        for one in near:
            name = one.advertisement.name
            if component[name] not in served:
                chosen[name] = None
                served[component[name]] = None
        return list(chosen)[:most]

    def _components(self) -> dict[NodeId, NodeId]:
        """Who is connected with whom, also by brokers that are not registered here."""
        parent: dict[NodeId, NodeId] = {}

        def root_of(name: NodeId) -> NodeId:
            root = name
            while (above := parent.setdefault(root, root)) != root:
                root = above
            while parent[name] != root:
                parent[name], name = root, parent[name]
            return root

        for name, listed in self._listed.items():
            for other in listed.advertisement.links:
                parent[root_of(other)] = root_of(name)
        return {name: root_of(name) for name in self._listed}

    def check_invariants(self) -> None:
        """Bounded, and every broker has a next probe."""
        if len(self._listed) > self._capacity:
            raise InvariantViolation(f"{len(self._listed)} brokers, {self._capacity} at most")
        if len(self._probes) < len(self._listed):
            raise InvariantViolation("a broker is never probed again")


def _distance(one: Listed) -> tuple[bool, float, NodeId]:
    return (one.rtt is None, one.rtt or 0.0, one.advertisement.name)
