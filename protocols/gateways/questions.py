"""The directory: which name has that id, and which zones are interested; asked of the home."""

from __future__ import annotations

import msgspec

from overlay.errors import InvariantViolation, LocalProtocolError, RemoteProtocolError
from overlay.ids import FULL_SPACE, NodeId, Vid, vid_from_wire, vid_to_wire
from overlay.patterns import check_topic
from protocols.gateways.core import Core
from protocols.gateways.events import TopicKnown, TopicUnknown
from protocols.gateways.homing import Home
from protocols.gateways.messages import TopicAnswer, TopicRequest
from protocols.gateways.names import is_topic, topic_id

QUESTION = "question"  # and its id: one try had its time
NOT_KNOWN = "no zone is interested in such a topic"


class Question(msgspec.Struct):
    """One that waits for an answer."""

    topic: Vid
    asker: NodeId = ""  # for whom it is forwarded; empty: for this node
    asker_id: int = 0
    asked: dict[NodeId, None] = msgspec.field(default_factory=dict)  # who may answer
    tried: dict[NodeId, None] = msgspec.field(default_factory=dict)  # in this round
    tries: int = 0
    reason: str = "nobody answered"


class Questions:
    """Open questions, each with a timer; and the answers to those of others."""

    def __init__(self, core: Core, home: Home) -> None:
        self._core = core
        self._home = home
        self._open: dict[int, Question] = {}

    def __len__(self) -> int:
        return len(self._open)

    # -- asking ---------------------------------------------------------------------------------

    def ask(self, topic: str | Vid, now: float) -> int:
        """Ask by a topic's name or id; one event follows."""
        core = self._core
        vid = topic_id(check_topic(topic)) if isinstance(topic, str) else topic
        if vid not in FULL_SPACE:
            raise LocalProtocolError(f"{vid} is no topic's id: it has 128 bits")
        if len(self._open) >= core.settings.max_open:
            raise LocalProtocolError(
                f"{core.settings.max_open} questions are open: wait for a TopicKnown or"
                " TopicUnknown, or raise gateways.max_open"
            )
        core.counts.asked += 1
        return self._begin(Question(vid), now)

    def _begin(self, question: Question, now: float) -> int:
        request = self._core.next_id()
        self._open[request] = question
        self._try(request, question, now)
        return request

    def _try(self, request: int, question: Question, now: float) -> None:
        core = self._core
        if question.tries >= core.settings.ask_tries:
            self._end(request, question, "", (), question.reason)
            return
        question.tries += 1
        core.timers.set((QUESTION, request), now + core.settings.ask_timeout)
        if core.manages:
            home = core.managers.responsible_for(question.topic)
            assert home is not None
            if home == core.me:
                name, zones = self._home.find(question.topic) or ("", ())
                self._end(request, question, name, zones, "" if name else NOT_KNOWN)
                return
            self._send(home, request, question, forwarded=True)
            return
        delegates = [name for name in core.zones.delegates if name != core.me]
        fresh = [name for name in delegates if name not in question.tried]
        if not fresh:
            question.tried.clear()
            fresh = delegates
        if not fresh:
            question.reason = f"zone {core.zone!r} has no delegate to ask"
            return
        question.tried[fresh[0]] = None
        self._send(fresh[0], request, question, forwarded=False)

    def _send(self, to: NodeId, request: int, question: Question, *, forwarded: bool) -> None:
        question.asked[to] = None
        topic = vid_to_wire(question.topic)
        self._core.effects.send(to, TopicRequest(request, topic, forwarded))

    def on_timeout(self, request: int, now: float) -> None:
        """Silence: try again, or somebody else."""
        question = self._open.get(request)
        if question is not None:
            self._try(request, question, now)

    def _end(
        self,
        request: int,
        question: Question,
        name: str,
        zones: tuple[str, ...],
        reason: str,
    ) -> None:
        core = self._core
        del self._open[request]
        core.timers.cancel((QUESTION, request))
        if question.asker:
            core.counts.forwards_ended += 1
            topic = vid_to_wire(question.topic)
            answer = TopicAnswer(question.asker_id, topic, name, zones, reason[:256])
            core.effects.send(question.asker, answer)
        elif name:
            core.counts.answered += 1
            core.effects.emit(TopicKnown(request, question.topic, name, zones))
        else:
            core.counts.unanswered += 1
            core.effects.emit(TopicUnknown(request, question.topic, reason))

    def on_answer(self, src: NodeId, answer: TopicAnswer, now: float) -> None:
        """Pass it on to who asked, or tell the application."""
        question = self._open.get(answer.id)
        if (
            question is None
            or src not in question.asked
            or vid_from_wire(answer.topic) != question.topic
        ):
            self._core.counts.late += 1
            return
        name = answer.name
        if name and (not is_topic(name) or topic_id(name) != question.topic):
            raise RemoteProtocolError("gateways-bad-answer", f"{name[:64]!a} from {src}")
        if name or answer.final:
            reason = answer.reason or NOT_KNOWN
            self._end(answer.id, question, name, answer.zones, "" if name else reason)
        else:
            question.reason = answer.reason or question.reason  # the timer tries again

    # -- answering ------------------------------------------------------------------------------

    def on_request(self, src: NodeId, request: TopicRequest, now: float) -> None:
        """Answer for a topic of mine; ask on for members of my zone."""
        core = self._core
        management = core.zones.management
        fellow = core.base is not None and src in core.base
        if not fellow and (management is None or src not in management.view):
            core.counts.strangers += 1
            self._cannot(src, request, "you are no member of my zone")
            return
        topic = vid_from_wire(request.topic)
        mine = core.manages and core.managers.responsible_for(topic) == core.me
        found = self._home.find(topic)
        if found is not None or mine:
            core.counts.served += 1
            name, zones = found or ("", ())
            reason = "" if name else NOT_KNOWN
            core.effects.send(src, TopicAnswer(request.id, request.topic, name, zones, reason))
        elif request.forwarded or not core.manages:
            self._cannot(src, request, "it is not mine to know")
        elif len(self._open) >= core.settings.max_open:
            core.counts.busy += 1
            self._cannot(src, request, "too many questions are open")
        elif not any((one.asker, one.asker_id) == (src, request.id) for one in self._open.values()):
            core.counts.forwarded += 1
            # Half of the asker's tries: it has other delegates to turn to.
            spent = core.settings.ask_tries // 2
            self._begin(Question(topic, src, request.id, tries=spent), now)

    def _cannot(self, src: NodeId, request: TopicRequest, reason: str) -> None:
        answer = TopicAnswer(request.id, request.topic, reason=reason, final=False)
        self._core.effects.send(src, answer)

    # -- invariants -----------------------------------------------------------------------------

    def check(self) -> None:
        """Every open question has a timer, and every question an end or is open."""
        core, counts = self._core, self._core.counts
        if len(self._open) > core.settings.max_open:
            raise InvariantViolation(f"{core.me}: {len(self._open)} questions are open")
        forwarded = 0
        for request, question in self._open.items():
            if (QUESTION, request) not in core.timers:
                raise InvariantViolation(f"{core.me}: a question waits for ever: {question}")
            forwarded += bool(question.asker)
        if counts.asked != counts.answered + counts.unanswered + len(self._open) - forwarded:
            raise InvariantViolation(f"{core.me}: a question has no end or two: {counts}")
        if counts.forwarded != counts.forwards_ended + forwarded:
            raise InvariantViolation(f"{core.me}: a forwarded one has no end or two: {counts}")
