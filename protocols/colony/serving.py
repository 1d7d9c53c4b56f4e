"""A computer's part: it serves what it is asked for, or not."""

from __future__ import annotations

from collections.abc import Callable

from overlay.ids import NodeId
from protocols.colony.attaching import UNKNOWN
from protocols.colony.core import Core
from protocols.colony.courier import Courier
from protocols.colony.interface import Policy, Proposal, Trust
from protocols.colony.messages import (
    Acceptance,
    Ack,
    LogOut,
    ServiceRequest,
    ServiceResponse,
    Want,
)
from protocols.colony.services import read

REMEMBERED = 65_536  # decisions: a copy of a request gets the same answer


class Servant:
    """Decides by the application's policy, once for each want."""

    def __init__(self, core: Core, courier: Courier, policy: Policy, trust: Trust) -> None:
        self._core = core
        self._courier = courier
        self.policy = policy
        self._trust = trust
        self.tell_own_broker: Callable[[ServiceResponse, float], None]
        self._decided: dict[tuple[NodeId, int, int], bool] = {}

    def on_request(self, src: NodeId, msg: ServiceRequest, now: float) -> None:
        """Accept and reject."""
        core = self._core
        trusted = src == core.me or self._trust(msg.client)
        core.counts.distrusted += not trusted
        accepted: list[Acceptance] = []
        rejected: list[int] = []
        for want in msg.wants:
            if trusted and self._decide(msg, want):
                accepted.append(Acceptance(want.index, core.card(), msg.hops))
                if want.replies == 1:
                    continue  # which ends it
            rejected.append(want.index)  # nobody, or nobody more
        serial = core.next_serial() if msg.serial else 0
        answer = ServiceResponse(msg.id, msg.client.name, tuple(accepted), tuple(rejected), serial)
        if src == core.me:
            core.inside(lambda then: self.tell_own_broker(answer, then))
        elif serial:
            core.effects.send(src, Ack(msg.serial))
            self._courier.send(src, serial, answer, now + msg.within, now)
        else:
            core.effects.send(src, answer)
        if src != core.me and not core.is_above(src):
            core.counts.strangers += 1
            core.effects.send(src, LogOut(UNKNOWN))

    def _decide(self, msg: ServiceRequest, want: Want) -> bool:
        core = self._core
        key = (msg.client.name, msg.id, want.index)
        decided = self._decided.get(key)
        if decided is None:
            core.counts.proposals += 1
            decided = (
                msg.client.name != core.me
                and core.me not in msg.without
                and core.me in core.table.offering(want.services)
                and self.policy(Proposal(msg.client.name, msg.id, tuple(map(read, want.services))))
            )
            core.counts.served += decided
            core.counts.declined += not decided
            self._decided[key] = decided
            if len(self._decided) > REMEMBERED:
                del self._decided[next(iter(self._decided))]
        return decided
