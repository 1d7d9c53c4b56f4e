"""Who is in zone Z: asking, answering, and asking on behalf of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import msgspec

from overlay.errors import InvariantViolation, LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import Scope
from protocols.zones.answers import after, entries_of, page_of, place
from protocols.zones.core import Core
from protocols.zones.directory import Directory
from protocols.zones.events import ZoneMembersKnown, ZoneMembersUnknown
from protocols.zones.interface import MemberEntry
from protocols.zones.messages import MembersDenied, MembersPage, MembersRequest
from protocols.zones.naming import check_zone_name, is_node_name, is_zone_name
from protocols.zones.office import Office

QUESTION = "question"  # and its id: one try had its time

Collected = Callable[[tuple[MemberEntry, ...]], None]


class Question(msgspec.Struct):
    """One that waits for an answer."""

    zone: Scope
    asker: NodeId = ""  # for whom it is forwarded; empty: for this node
    asker_id: int = 0
    cursor: NodeId = ""
    asked: NodeId = ""  # who was asked last
    only: NodeId = ""  # ask nobody else: a roster is fetched from who announced it
    tried: dict[NodeId, None] = msgspec.field(default_factory=dict)  # in this round
    may_answer: dict[NodeId, None] = msgspec.field(default_factory=dict)  # asked for this page
    members: list[MemberEntry] = msgspec.field(default_factory=list)
    fresh: bool = True
    tries: int = 0  # for the present page
    all_tries: int = 0
    reason: str = "nobody answered"
    collected: Collected | None = None


class Questions:
    """Open questions, each with a timer; and the answers to those of others."""

    def __init__(self, core: Core, office: Office, directory: Directory) -> None:
        self._core = core
        self._office = office
        self._directory = directory
        self._open: dict[int, Question] = {}
        self.rosters: dict[Scope, tuple[MemberEntry, ...]] = {}  # that a supervisor holds

    def __len__(self) -> int:
        return len(self._open)

    # -- asking ---------------------------------------------------------------------------------

    def ask(self, zone: Scope, now: float) -> int:
        """Ask who is in a zone; one event follows."""
        core = self._core
        check_zone_name(zone)
        if len(self._open) >= core.settings.max_open:
            raise LocalProtocolError(
                f"{core.settings.max_open} questions are open: wait for a ZoneMembersKnown or"
                " ZoneMembersUnknown, or raise zones.max_open"
            )
        core.counts.asked += 1
        request = core.next_id()
        known = self._own_answer(zone)
        if known is not None:
            core.counts.answered += 1
            members, fresh = known
            core.effects.emit(ZoneMembersKnown(request, zone, members, fresh, 0))
        else:
            self._open[request] = Question(zone)
            self._try(request, now)
        return request

    def fetch(self, zone: Scope, source: NodeId, collected: Collected, now: float) -> bool:
        """Collect all members of a zone from one who knows; false if there is no room to."""
        if len(self._open) >= self._core.settings.max_open:
            self._core.counts.busy += 1
            return False
        request = self._core.next_id()
        self._open[request] = Question(zone, only=source, collected=collected)
        self._try(request, now)
        return True

    def is_fetching(self, zone: Scope) -> bool:
        """Whether that zone's members are being collected."""
        return any(one.zone == zone and one.only for one in self._open.values())

    def _own_answer(self, zone: Scope) -> tuple[tuple[MemberEntry, ...], bool] | None:
        core = self._core
        if core.base is not None and zone == core.zone:
            view = core.base.view
            return tuple(entries_of(view, view.members())), True
        roster = self.rosters.get(zone)
        return None if roster is None else (roster, False)

    def _who_knows(self, question: Question) -> Iterable[NodeId]:
        """Whom to ask, the best first."""
        core = self._core
        if question.only:
            return (question.only,)
        if core.management is None:
            return self._office.delegates
        entry = self._directory.entry(question.zone)
        if entry is None:
            return ()
        return (*entry.delegates, *entry.supervisors)

    def _try(self, request: int, now: float) -> None:
        """Ask the next who may know; those who were tried come again when all were."""
        core = self._core
        question = self._open[request]
        if question.tries >= core.settings.ask_tries:
            self._give_up(request, question)
            return
        if self._is_unknown(question.zone) and not question.only:
            question.reason = f"no zone is called {question.zone!r}"
            self._give_up(request, question)
            return
        question.tries += 1
        question.all_tries += 1
        candidates = [name for name in self._who_knows(question) if name != core.me]
        fresh = [name for name in candidates if name not in question.tried]
        if candidates and not fresh:
            question.tried.clear()
            fresh = candidates
        question.asked = fresh[0] if fresh else ""
        if question.asked:
            question.tried[question.asked] = question.may_answer[question.asked] = None
            forwarded = core.management is not None
            core.effects.send(
                question.asked, MembersRequest(request, question.zone, question.cursor, forwarded)
            )
        elif core.management is None:
            question.reason = f"zone {core.zone!r} has no delegate to ask"
        core.timers.set((QUESTION, request), now + core.settings.ask_timeout)

    def _is_unknown(self, zone: Scope) -> bool:
        """Whether this node would know of that zone if it existed."""
        management = self._core.management
        alone = management is None or len(management.view) == 1
        return not alone and self._directory.entry(zone) is None

    def on_timeout(self, request: int, now: float) -> None:
        """Silence: try somebody else."""
        if request in self._open:
            self._core.counts.retried += 1
            self._try(request, now)

    def _give_up(self, request: int, question: Question) -> None:
        core = self._core
        self._close(request)
        if question.asker:
            core.counts.forwards_ended += 1
            self._deny(question.asker, question.asker_id, question.reason)
        elif question.collected is None:
            core.counts.unanswered += 1
            core.effects.emit(ZoneMembersUnknown(request, question.zone, question.reason))

    def _close(self, request: int) -> None:
        del self._open[request]
        self._core.timers.cancel((QUESTION, request))

    # -- answers --------------------------------------------------------------------------------

    def on_page(self, src: NodeId, page: MembersPage, now: float) -> None:
        """Take a page, or pass it on to who asked; ask for the next one."""
        core = self._core
        question = self._open.get(page.id)
        if question is None or src not in question.may_answer or page.after != question.cursor:
            core.counts.late += 1
            return
        self._check(question, page, src)
        if question.asker:
            self._close(page.id)
            core.counts.forwards_ended += 1
            core.effects.send(question.asker, msgspec.structs.replace(page, id=question.asker_id))
            return
        question.fresh = question.fresh and page.fresh
        question.members.extend(page.members)
        if page.more:
            question.tries = 0
            question.tried.clear()
            question.may_answer.clear()
            question.cursor = page.members[-1].name
            self._try(page.id, now)
        else:
            self._end(page.id, question)

    def _check(self, question: Question, page: MembersPage, src: NodeId) -> None:
        """A page leads on, clockwise, and the zone stays within bounds."""
        names = [question.cursor, *(member.name for member in page.members)]
        if not all(map(is_node_name, names[1:])):
            raise RemoteProtocolError("zones-bad-name", f"in {question.zone!r} from {src}")
        if page.more and not page.members:
            raise RemoteProtocolError("zones-empty-page", f"of {question.zone!r} from {src}")
        places = [place(name) for name in names if name]
        if any(one >= following for one, following in pairwise(places)):
            raise RemoteProtocolError("zones-page-disordered", f"of {question.zone!r} from {src}")
        if len(question.members) + len(page.members) > self._core.settings.max_members:
            raise RemoteProtocolError("zones-too-many-members", f"of {question.zone!r} from {src}")

    def _end(self, request: int, question: Question) -> None:
        core = self._core
        self._close(request)
        members = tuple(question.members)
        if question.collected is not None:
            question.collected(members)
            return
        core.counts.answered += 1
        core.effects.emit(
            ZoneMembersKnown(request, question.zone, members, question.fresh, question.all_tries)
        )

    def on_denied(self, src: NodeId, denied: MembersDenied, now: float) -> None:
        """It cannot tell: ask the next one, but not all of them over and over without a pause."""
        question = self._open.get(denied.id)
        if question is None or question.asked != src:
            self._core.counts.late += 1
            return
        question.reason = denied.reason
        if any(name not in question.tried for name in self._who_knows(question)):
            self._try(denied.id, now)
        elif denied.final:
            self._give_up(denied.id, question)
        else:
            question.asked = ""  # its word is spoken; the timer tries again

    # -- answering ------------------------------------------------------------------------------

    def on_request(self, src: NodeId, request: MembersRequest, now: float) -> None:
        """Answer for a zone of mine; ask on for members of my zone; deny everything else."""
        core = self._core
        if not is_zone_name(request.zone):
            raise RemoteProtocolError("zones-bad-name", f"{request.zone!a} from {src}")
        if not (core.is_fellow(src) or core.is_manager(src)):
            core.counts.strangers += 1
            self._deny(src, request.id, "you are no member of my zone")
            return
        page = self._page(request)
        if page is not None:
            core.counts.served += 1
            core.effects.send(src, page)
        elif request.forwarded:
            self._deny(src, request.id, f"zone {request.zone!r} is not mine to know")
        elif core.management is None:
            self._deny(src, request.id, "I am no delegate")
        elif len(self._open) >= core.settings.max_open:
            core.counts.busy += 1
            self._deny(src, request.id, "too many questions are open")
        else:
            self._forward(src, request, now)

    def _forward(self, src: NodeId, request: MembersRequest, now: float) -> None:
        core = self._core
        if self._directory.entry(request.zone) is None:
            self._deny(src, request.id, f"no zone is called {request.zone!r}", final=True)
            return
        for one in self._open.values():
            if (one.asker, one.asker_id, one.cursor) == (src, request.id, request.after):
                return  # a repetition of what is under way
        core.counts.forwarded += 1
        own = core.next_id()
        # Half of the asker's tries: it has other delegates to turn to.
        self._open[own] = Question(
            request.zone,
            asker=src,
            asker_id=request.id,
            cursor=request.after,
            tries=core.settings.ask_tries // 2,
        )
        self._try(own, now)

    def _page(self, request: MembersRequest) -> MembersPage | None:
        core = self._core
        count = core.settings.page_members
        if core.base is not None and request.zone == core.zone:
            names = core.base.view.members()
            chosen = after(names, request.after, count)
            rest = bool(chosen) and chosen[-1] != names[-1]
            entries = entries_of(core.base.view, chosen)
            return page_of(request, entries, rest=rest, fresh=True, settings=core.settings)
        roster = self.rosters.get(request.zone)
        if roster is None:
            return None
        told = {entry.name: entry for entry in roster}
        names = tuple(told)
        chosen = after(names, request.after, count)
        rest = bool(chosen) and chosen[-1] != names[-1]
        entries = [told[name] for name in chosen]
        return page_of(request, entries, rest=rest, fresh=False, settings=core.settings)

    def _deny(self, asker: NodeId, request: int, reason: str, *, final: bool = False) -> None:
        self._core.counts.denied += 1
        self._core.effects.send(asker, MembersDenied(request, reason[:256], final))

    # -- invariants -----------------------------------------------------------------------------

    def check(self) -> None:
        """Every open question has a timer, and every question an end or is open."""
        core = self._core
        counts = core.counts
        waiting = forwarded = 0
        for request, question in self._open.items():
            if (QUESTION, request) not in core.timers:
                raise InvariantViolation(f"{core.me}: a question waits for ever: {question}")
            forwarded += bool(question.asker)
            waiting += not question.asker and question.collected is None
        if counts.asked != counts.answered + counts.unanswered + waiting:
            raise InvariantViolation(f"{core.me}: a question has no end or two: {counts}")
        if counts.forwarded != counts.forwards_ended + forwarded:
            raise InvariantViolation(f"{core.me}: a forwarded one has no end or two: {counts}")
