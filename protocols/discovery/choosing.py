"""The choice among brokers (§6, §9): load weights, the target set, and why each other one lost.

Departs from §6: delay = now − sent. Departs from §9: every metric is brought to 0 … 1 before it is
weighed, because memory in MiB would swamp all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

import msgspec

from overlay.ids import NodeId
from overlay.intervals import Interval
from overlay.protocol import UdpAddress
from protocols.discovery.config import DiscoverySettings
from protocols.discovery.events import Candidate
from protocols.discovery.messages import Response, Usage
from protocols.discovery.pinging import Target
from protocols.discovery.timing import Word, estimate

MANY_CONNECTIONS = 100  # that halve this part of the weight
MANY_LINKS = 4


class Heard(msgspec.Struct):
    """One response, as it arrived."""

    name: NodeId
    address: UdpAddress
    response: Response
    elapsed: float  # since the attempt that it answers was sent: no delay is longer
    arrived_at: float

    @property
    def word(self) -> Word:
        """What it told of the time."""
        told = self.response
        return Word(self.arrived_at - self.elapsed, told.sent_at, told.error, self.arrived_at)


def load_weight(usage: Usage, most_memory: int, config: DiscoverySettings) -> float:
    """0 to 1, and more for an idler and larger broker."""
    total = usage.memory_total
    free = 1.0 - min(1.0, usage.memory_used / total) if total else 0.0
    metrics = (
        free,
        total / most_memory if most_memory else 0.0,
        1.0 - usage.cpu,
        1.0 / (1.0 + usage.connections / MANY_CONNECTIONS),
        1.0 / (1.0 + usage.links / MANY_LINKS),
    )
    weights = config.weights
    return sum(w * m for w, m in zip(weights, metrics, strict=True)) / sum(weights)


def rank(heard: Iterable[Heard], config: DiscoverySettings, offset: Interval) -> list[Candidate]:
    """All candidates, the best for the target set first; `offset` is overlay time less our clock.

    Who claims a delay that cannot be gets the worst that can: a liar must not push others out.
    """
    responses = list(heard)
    most_memory = max((one.response.usage.memory_total for one in responses), default=0)
    ranked = []
    for one in responses:
        told = estimate(one.word, offset)
        delay = told.delay if told.plausible else max(0.0, one.elapsed)
        closeness = 1.0 / (1.0 + delay / config.delay_scale)
        weight = load_weight(one.response.usage, most_memory, config)
        score = config.delay_share * closeness + (1.0 - config.delay_share) * weight
        ranked.append(
            Candidate(
                one.name,
                one.address,
                one.response.endpoints,
                one.response.usage,
                told.delay,
                told.error,
                told.plausible,
                weight,
                score,
                region=one.response.region,
                institution=one.response.institution,
            )
        )
    ranked.sort(key=lambda candidate: (-candidate.score, candidate.name))
    return ranked


def with_pings(candidate: Candidate, target: Target | None) -> Candidate:
    """What the pings showed."""
    if target is None:
        return candidate
    trips = target.round_trips
    steps = [abs(one - other) for one, other in pairwise(trips)]
    return msgspec.structs.replace(
        candidate,
        pinged=target.pinged,
        answered=len(trips),
        ping_least=min(trips) if trips else None,
        ping_p50=median(trips) if trips else None,
        jitter=sum(steps) / len(steps) if steps else None,
    )


def decide(measured: Sequence[Candidate], config: DiscoverySettings) -> list[Candidate]:
    """All with their verdicts: the winner, then by round trip, then those never measured.

    The lowest round trip wins (§6). Among those that no ping can tell apart the idler one does, so
    that a broker newly added to a cluster is used (§8).
    """
    answered = sorted(
        (one for one in measured if one.ping_least is not None),
        key=lambda one: (one.ping_least, one.name),
    )
    silent = [one for one in measured if one.ping_least is None]
    if not answered:
        return [_told(one, _silence(one)) for one in silent]
    least = answered[0].ping_least or 0.0
    equals = [one for one in answered if (one.ping_least or 0.0) <= least + config.equal_within]
    winner = max(equals, key=lambda one: one.load_weight)
    others = [one for one in answered if one is not winner]
    why = "the lowest round trip" if len(equals) == 1 else f"the idlest of {len(equals)} as near"
    return [
        _told(winner, why),
        *(_told(one, _defeat(one, winner, config)) for one in others),
        *(_told(one, _silence(one)) for one in silent),
    ]


def _defeat(one: Candidate, winner: Candidate, config: DiscoverySettings) -> str:
    slower = (one.ping_least or 0.0) - (winner.ping_least or 0.0)
    if slower <= config.equal_within:
        return "as near, but busier"
    return f"{slower * 1000:.2f} ms slower"


def _silence(one: Candidate) -> str:
    if one.pinged:
        return f"answered none of {one.pinged} pings"
    return "not in the target set: farther or busier than those pinged"


def _told(one: Candidate, verdict: str) -> Candidate:
    return msgspec.structs.replace(one, verdict=verdict)
