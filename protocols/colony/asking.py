"""A client's part: requests of this node, and how each of them ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from overlay.errors import InvariantViolation, LocalProtocolError
from overlay.ids import NodeId
from overlay.protocol import ContactLearned
from protocols.colony.core import Core
from protocols.colony.courier import Courier
from protocols.colony.events import RequestEnded, ServantFound, ServiceRejected
from protocols.colony.interface import MODES, Terms, Trust, Wish
from protocols.colony.messages import (
    MAX_CONJUNCTION,
    MAX_INSTANCES,
    MAX_WANTS,
    Acceptance,
    ServiceRequest,
    ServiceResponse,
    Want,
)
from protocols.colony.services import written

GIVE_UP = "give-up"  # with the id of a request: its time is over
HEADROOM = 0.95  # of a request's time that its broker is told: the last answer has to travel


class OpenRequest:
    """A request of this node that has no end yet."""

    __slots__ = ("asked", "began", "found", "msg", "open", "until", "waiting", "wanted")

    def __init__(self, msg: ServiceRequest, now: float, until: float) -> None:
        self.msg = msg
        self.began = now
        self.until = until
        self.asked: dict[NodeId, None] = {}  # brokers
        self.open: dict[int, Want] = {want.index: want for want in msg.wants}
        self.waiting: dict[int, dict[NodeId, None]] = {want.index: {} for want in msg.wants}
        self.wanted: dict[int, int] = {want.index: want.instances for want in msg.wants}
        self.found: dict[int, dict[NodeId, None]] = {want.index: {} for want in msg.wants}


class Client:
    """Asks the leader, or the broker of this very node."""

    def __init__(self, core: Core, courier: Courier, trust: Trust) -> None:
        self._core = core
        self._courier = courier
        self._trust = trust
        self.ask_own_broker: Callable[[ServiceRequest, float], None]
        self._open: dict[int, OpenRequest] = {}

    def __len__(self) -> int:
        return len(self._open)

    def ask(self, wishes: Sequence[Wish], terms: Terms, now: float) -> int:
        """Begin; events with the id returned tell who was found, and the end."""
        core = self._core
        if not core.leads and not core.leader:
            raise LocalProtocolError(f"{core.me} is in no colony: log in to a leader first")
        wants = _wants(wishes, terms)
        within = terms.within or core.settings.within
        request_id = core.next_serial()
        serial = core.next_serial() if terms.reliable else 0
        msg = ServiceRequest(
            request_id,
            core.card(),
            wants,
            HEADROOM * within,
            terms.mode,  # type: ignore[arg-type]  # `_wants` checked it
            terms.fanout,
            0,
            serial,
            terms.without,
        )
        request = self._open[request_id] = OpenRequest(msg, now, now + within)
        core.counts.wanted += 1
        core.tracer.asked(request_id, len(wants), terms.mode)
        core.timers.set((GIVE_UP, request_id), request.until)
        self._send(request, now)
        return request_id

    def _send(self, request: OpenRequest, now: float) -> None:
        core = self._core
        msg = request.msg
        broker = core.me if core.leads else core.leader
        request.asked[broker] = None
        for index in request.open:
            request.waiting[index][broker] = None
        if broker == core.me:
            core.inside(lambda then: self.ask_own_broker(msg, then))
        elif msg.serial:
            self._courier.send(broker, msg.serial, msg, request.until, now)
        else:
            core.effects.send(broker, msg)

    def ask_again(self, now: float) -> None:
        """There is a new leader: what is to be found reliably is asked of that one, too."""
        core = self._core
        broker = core.me if core.leads else core.leader
        for request in self._open.values():
            if request.msg.serial and broker not in request.asked:
                wants = tuple(request.open.values())
                left = HEADROOM * max(0.0, request.until - now)
                serial = core.next_serial()
                old = request.msg
                request.msg = ServiceRequest(
                    *(old.id, old.client, wants, left, old.mode, old.fanout, 0, serial),
                    old.without,
                )
                self._send(request, now)

    def has_asked(self, broker: NodeId, request: int) -> bool:
        """Whether that broker was asked, and not one of its individuals by this node's broker."""
        found = self._open.get(request)
        return not self._core.leads if found is None else broker in found.asked

    def on_response(self, src: NodeId, msg: ServiceResponse, now: float) -> None:
        """Tell the application as servants are found."""
        request = self._open.get(msg.id)
        if request is None or msg.client != self._core.me:
            self._core.counts.late += 1
            return
        if src not in request.asked:
            self._core.counts.strangers += 1
            return
        for acceptance in msg.accepted:
            self._accepted(msg.id, request, acceptance, now)
        for index in msg.rejected:
            if index in request.open:
                request.waiting[index].pop(src, None)
                if not request.waiting[index]:  # a broker that was left may still search
                    self._end_want(msg.id, request, index, "rejected")
        if not request.open:
            self._end(msg.id, request, now, complete=True)

    def _accepted(self, id: int, request: OpenRequest, acceptance: Acceptance, now: float) -> None:
        core = self._core
        index, servant = acceptance.index, acceptance.servant
        want = request.open.get(index)
        if want is None or servant.name in request.found[index]:
            return
        if not self._trust(servant):
            core.counts.distrusted += 1
            self._end_want(id, request, index, "its servant's certificate proves nothing")
            return
        request.found[index][servant.name] = None
        core.counts.found += 1
        if servant.endpoints and servant.name != core.me:
            core.effects.emit(ContactLearned(servant.name, servant.endpoints))
        after = now - request.began
        core.tracer.found(id, index, servant.name, acceptance.hops, after)
        core.effects.emit(ServantFound(id, index, servant, acceptance.hops, after))
        if len(request.found[index]) == want.replies:
            self._end_want(id, request, index, "")

    def _end_want(self, id: int, request: OpenRequest, index: int, reason: str) -> None:
        want = request.open.pop(index)
        found = len(request.found[index])
        if found < want.instances:
            self._core.effects.emit(ServiceRejected(id, index, found, reason or "rejected"))

    def _end(self, id: int, request: OpenRequest, now: float, *, complete: bool) -> None:
        core = self._core
        del self._open[id]
        core.timers.cancel((GIVE_UP, id))
        core.counts.ended += 1
        served = sum(len(found) >= request.wanted[index] for index, found in request.found.items())
        after = now - request.began
        core.tracer.done(id, served, len(request.found), after, complete)
        core.effects.emit(RequestEnded(id, served, len(request.found), complete, after))

    def on_timer(self, id: int, now: float) -> None:
        """Its time is over."""
        request = self._open.get(id)
        if request is None:
            return
        self._core.counts.timed_out += 1
        for index in list(request.open):
            self._end_want(id, request, index, "timed out")
        self._end(id, request, now, complete=False)

    def check(self) -> None:
        """Every request has its end to come, once."""
        counts = self._core.counts
        if counts.wanted != counts.ended + len(self._open):
            raise InvariantViolation(f"{self._core.me}: a request has no end or two: {counts}")
        for request in self._open:
            if (GIVE_UP, request) not in self._core.timers:
                raise InvariantViolation(f"{self._core.me}: request {request} has no timer")


def _wants(wishes: Sequence[Wish], terms: Terms) -> tuple[Want, ...]:
    """As they travel; LocalProtocolError says what is wrong."""
    if terms.mode and terms.mode not in MODES:
        raise LocalProtocolError(f"there is no mode {terms.mode!r}: use one of {', '.join(MODES)}")
    if not 1 <= len(wishes) <= MAX_WANTS:
        raise LocalProtocolError(f"a request of {len(wishes)} wants: give 1 to {MAX_WANTS}")
    wants = []
    for index, wish in enumerate(wishes):
        if not 1 <= len(wish.services) <= MAX_CONJUNCTION:
            raise LocalProtocolError(
                f"a conjunction of {len(wish.services)} services: give 1 to {MAX_CONJUNCTION}"
            )
        if not 1 <= wish.instances <= MAX_INSTANCES:
            raise LocalProtocolError(f"{wish.instances} instances: ask for 1 to {MAX_INSTANCES}")
        replies = wish.instances if terms.replies is None else terms.replies
        if replies and replies < wish.instances:
            raise LocalProtocolError(
                f"replies = {replies} is under {wish.instances} instances: raise it, or say 0"
            )
        texts = tuple(map(written, wish.services))
        wants.append(Want(index, texts, wish.instances, replies))
    return tuple(wants)
