"""Algorithm 1: a broker finds servants in its own colony first, and then asks its leader."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from protocols.colony.attaching import UNKNOWN
from protocols.colony.core import Core
from protocols.colony.courier import Courier
from protocols.colony.hunt import Asked, Hunt, Key, Search
from protocols.colony.keeping import Keeper
from protocols.colony.leading import Registry
from protocols.colony.messages import (
    MAX_HOPS,
    Acceptance,
    LogOut,
    ServiceRequest,
    ServiceResponse,
    Want,
)
from protocols.colony.selecting import select

EXPIRE = "expire"  # the earliest end of somebody's time, or of a request's
ENDED_DEADLINES = 4096  # of requests that ended in time, which may stay until they would be due
HEADROOM = 0.95  # of an asked peer's time that it is told: its last answer has to travel

Lists: TypeAlias = tuple[list[Acceptance], list[int]]
"""AcceptList and RejectList."""


class Searcher:
    """The requests that came to this broker, and who was asked for what."""

    def __init__(self, core: Core, registry: Registry, courier: Courier, keeper: Keeper) -> None:
        self._core = core
        self._registry = registry
        self._courier = courier
        self._keeper = keeper
        self.ask_own_computer: Callable[[ServiceRequest, float], None]
        self.tell_own_client: Callable[[ServiceResponse, float], None]
        self._searches: dict[Key, Search] = {}
        self._ended: dict[
            Key, tuple[int, NodeId]
        ] = {}  # wants that are over, as bits; their sender
        self._deadlines: list[tuple[float, int, Key, NodeId]] = []  # empty name: the request's own
        self._waiting = 0  # hunts that wait for who may come
        self._pushed = 0
        self._armed = 0.0  # when the timer rings; 0: it is not set

    def __len__(self) -> int:
        return len(self._searches)

    # -- SREQ -------------------------------------------------------------------------------------

    def on_request(
        self, src: NodeId, msg: ServiceRequest, now: float, *, recovered: bool = False
    ) -> None:
        """Lines 2 to 11."""
        core = self._core
        core.counts.requests += 1
        core.tracer.handled(msg.client.name, msg.id, src, len(msg.wants), msg.hops)
        known = src == core.me or core.is_above(src) or src in core.table.children
        if not known and not recovered:
            core.counts.strangers += 1
            core.effects.send(src, LogOut(UNKNOWN))
            if not msg.serial:  # who wants it reliably logs in first, and asks again
                self._reject(src, msg, [want.index for want in msg.wants], now)
            return
        key = (msg.client.name, msg.id)
        search = self._searches.get(key)
        if search is None:
            if len(self._searches) >= core.settings.max_open:
                core.counts.overloaded += 1
                self._reject(src, msg, [want.index for want in msg.wants], now)
                return
            until = now + min(msg.within, core.settings.longest)
            search = self._searches[key] = Search(key, msg, until, recovered)
            self._push(search.until, key, "")
        if msg.serial and src != core.me:
            search.kept[self._keeper.keep(src, msg)] = None
        self._begin(search, src, msg, now)

    def _begin(self, search: Search, src: NodeId, msg: ServiceRequest, now: float) -> None:
        """Line 3 for the wants that are new here; those that are not never search twice."""
        ended, sender = self._ended.get(search.key, (0, ""))
        new: list[Hunt] = []
        crossed: list[int] = []
        again: list[Hunt] = []
        for want in msg.wants:
            hunt = search.hunts.get(want.index)
            if hunt is None and not ended >> want.index & 1:
                hunt = search.hunts[want.index] = Hunt(want, src)
                search.open += 1
                new.append(hunt)
            elif hunt is not None and hunt.sender == src:
                self._core.counts.repeated += 1
                again.append(hunt)
            elif hunt is None and sender == src:  # a word more might overtake the answer
                self._core.counts.repeated += 1
            else:
                self._core.counts.crossed += 1
                crossed.append(want.index)
        if crossed:
            hunts = [search.hunts[index] for index in crossed if index in search.hunts]
            found = [one for hunt in hunts for one in hunt.found.values()]
            self._respond(search, src, found, crossed, now)
        if again and msg.serial:
            self._tell_again(search, src, again, now)
        self._advance(search, new, now)
        self._close_if_over(search)

    def _tell_again(self, search: Search, src: NodeId, hunts: list[Hunt], now: float) -> None:
        """Who asks reliably for what it asked before lost the answers: it restarted."""
        accepted = [one for hunt in hunts for one in hunt.found.values()]
        over = [hunt.want.index for hunt in hunts if hunt.ended]
        self._respond(search, src, accepted, over, now)

    # -- asking -----------------------------------------------------------------------------------

    def _advance(self, search: Search, hunts: Iterable[Hunt], now: float) -> None:
        """Lines 4 to 11, and 18 to 25: ask somebody else for each want, or reject it."""
        core = self._core
        left = search.until - now
        send_list: dict[NodeId, list[Want]] = {}
        not_last: set[NodeId] = set()
        rejected: dict[NodeId, list[int]] = {}
        for hunt in hunts:
            if hunt.ended or hunt.pending:
                continue
            self._wait_no_more(hunt)
            peers = self._select_peers(search, hunt) if left > core.settings.least else ()
            if not peers and self._may_return(search, hunt, now):
                hunt.waits = True
                self._waiting += 1
                self._push(self._settles(search), search.key, "")
            elif not peers:
                self._end(search, hunt)
                rejected.setdefault(hunt.sender, []).append(hunt.want.index)
                if not hunt.found:
                    core.counts.rejected += 1
            else:
                part = hunt.part()
                for peer in peers:
                    hunt.asked[peer] = None
                    hunt.pending[peer] = Asked(part.replies, 0.0)
                    send_list.setdefault(peer, []).append(part)
                if self._others_are_left(search, hunt):
                    not_last.update(peers)
        for peer, wants in send_list.items():
            share = core.settings.child_share if peer in not_last else core.settings.last_share
            self._ask(search, peer, wants, share * left, now)
        for sender, indices in rejected.items():
            self._respond(search, sender, [], indices, now)

    def _may_return(self, search: Search, hunt: Hunt, now: float) -> bool:
        """Nothing is rejected while the first individuals come; a reliable want also waits while
        a colony that broke away may come again.
        """
        return not hunt.is_satisfied and now < self._settles(search) < search.until

    def _settles(self, search: Search) -> float:
        core = self._core
        return max(core.unsettled, core.forming) if search.request.serial else core.forming

    def _wait_no_more(self, hunt: Hunt) -> None:
        if hunt.waits:
            hunt.waits = False
            self._waiting -= 1

    def _select_peers(self, search: Search, hunt: Hunt) -> list[NodeId]:
        """Of the own colony, or the leader when nobody there is left; nobody, if it is enough."""
        core = self._core
        if hunt.is_satisfied or search.request.hops >= MAX_HOPS:
            return []
        found = select(core.table, core.settings, core.rng, search.request, hunt.want, hunt.asked)
        if not found and core.leader and core.leader not in hunt.asked:
            return [core.leader]
        return found

    def _others_are_left(self, search: Search, hunt: Hunt) -> bool:
        """Whether somebody could be asked after those who are being asked now.

        If not, they may take the time that is left: halved at each level, a minute would be 0.1 s
        at the end of a chain of nine.
        """
        core = self._core
        if core.leader and core.leader not in hunt.asked:
            return True
        want, asked = hunt.want, hunt.asked
        return bool(select(core.table, core.settings, core.rng, search.request, want, asked))

    def _ask(
        self, search: Search, peer: NodeId, wants: list[Want], within: float, now: float
    ) -> None:
        core = self._core
        above = peer == core.leader
        until = now + within
        for want in wants:
            search.hunts[want.index].pending[peer].until = until
        self._push(until, search.key, peer)
        first = search.request
        reliable = bool(first.serial)
        serial = core.next_serial() if reliable and peer != core.me else 0
        msg = ServiceRequest(
            first.id,
            first.client,
            tuple(wants),
            HEADROOM * within,
            first.mode,
            first.fanout,
            first.hops + 1,
            serial,
            first.without,
        )
        if above:
            core.counts.delegated += 1
        else:
            core.counts.asked += 1
            core.table.children[peer].asked += len(wants)
        if peer == core.me:
            core.inside(lambda then: self.ask_own_computer(msg, then))
        elif reliable:
            self._courier.send(peer, serial, msg, until, now)
        else:
            core.effects.send(peer, msg)

    # -- SRESP ------------------------------------------------------------------------------------

    def on_response(self, src: NodeId, msg: ServiceResponse, now: float) -> None:
        """Lines 12 to 25."""
        search = self._searches.get((msg.client, msg.id))
        if search is None:
            self._core.counts.late += 1
            return
        answers: dict[NodeId, list[Acceptance]] = {}
        moved: dict[int, Hunt] = {}
        for acceptance in msg.accepted:
            hunt = search.hunts.get(acceptance.index)
            if hunt is None or not self._was_asked(search, hunt, src):
                self._core.counts.strangers += 1
            elif acceptance.servant.name not in hunt.found:
                moved[acceptance.index] = hunt
                if self._take(search, hunt, src, acceptance):
                    answers.setdefault(hunt.sender, []).append(acceptance)
        for index in msg.rejected:
            hunt = search.hunts.get(index)
            if hunt is not None and hunt.pending.pop(src, None) is not None:
                moved[index] = hunt
                if not hunt.found:
                    self._registry.refused(src, now, timed_out=False)
        for sender, accepted in answers.items():
            self._respond(search, sender, accepted, [], now)
        self._advance(search, moved.values(), now)
        self._close_if_over(search)

    @staticmethod
    def _was_asked(search: Search, hunt: Hunt, src: NodeId) -> bool:
        """By this life of the broker, or by the one before."""
        return src != hunt.sender and (src in hunt.asked or search.recovered)

    def _take(self, search: Search, hunt: Hunt, src: NodeId, acceptance: Acceptance) -> bool:
        """Lines 13 to 17; whether it is to be handed on."""
        counts = self._core.counts
        asked = hunt.pending.get(src)
        if asked is not None and asked.left:
            asked.left -= 1
            if not asked.left:
                del hunt.pending[src]
        self._registry.accepted(src)
        if hunt.ended:
            counts.surplus += 1
            return False
        hunt.found[acceptance.servant.name] = acceptance
        hunt.reported += 1
        counts.accepted += 1
        if hunt.reported == hunt.want.replies:
            self._end(search, hunt)
        return True

    # -- answering --------------------------------------------------------------------------------

    def _respond(
        self,
        search: Search,
        to: NodeId,
        accepted: list[Acceptance],
        rejected: list[int],
        now: float,
    ) -> None:
        """Line 11 or 25, if there is something to say."""
        if not accepted and not rejected:
            return
        core = self._core
        client, request = search.key
        reliable = bool(search.request.serial) and to != core.me
        serial = core.next_serial() if reliable else 0
        msg = ServiceResponse(request, client, tuple(accepted), tuple(rejected), serial)
        if to == core.me:
            core.inside(lambda then: self.tell_own_client(msg, then))
        elif reliable:
            search.unacknowledged += 1

            def delivered(_now: float) -> None:
                search.unacknowledged -= 1
                self._forget_kept(search)

            self._courier.send(to, serial, msg, search.until, now, delivered)
        else:
            core.effects.send(to, msg)

    def _reject(self, to: NodeId, msg: ServiceRequest, indices: list[int], now: float) -> None:
        """Without a search: it is known, or there is no room."""
        answer = ServiceResponse(msg.id, msg.client.name, (), tuple(indices))
        if to == self._core.me:
            self._core.inside(lambda then: self.tell_own_client(answer, then))
        else:
            self._core.effects.send(to, answer)

    # -- ends -------------------------------------------------------------------------------------

    def _end(self, search: Search, hunt: Hunt) -> None:
        self._wait_no_more(hunt)
        hunt.ended = True
        hunt.pending.clear()
        search.open -= 1

    def _close_if_over(self, search: Search) -> None:
        """Keep only that it was here; a reliable request stays for who may ask again."""
        if search.open:
            return
        self._forget_kept(search)
        if not search.request.serial:
            self._close(search)

    def _close(self, search: Search) -> None:
        if self._searches.pop(search.key, None) is None:
            return
        bits, sender = self._ended.pop(search.key, (0, ""))  # at the end again
        for index, hunt in search.hunts.items():
            bits |= 1 << index
            sender = hunt.sender
        self._ended[search.key] = (bits, sender)
        if len(self._ended) > self._core.settings.remembered:
            del self._ended[next(iter(self._ended))]
            self._core.counts.forgotten += 1

    def _forget_kept(self, search: Search) -> None:
        if not search.open and not search.unacknowledged:
            for key in search.kept:
                self._keeper.forget(key)
            search.kept.clear()

    def gone(self, name: NodeId, now: float, *, is_broker: bool) -> None:
        """An individual or the leader went away in mid-request: it rejects all.

        But a broker that was asked reliably takes it up when it restarts: it keeps its time.
        """
        if not is_broker:
            self._courier.forget_requests(name, now)
        for search in list(self._searches.values()):
            if not (is_broker and search.request.serial):
                self._give_up(search, name, now)

    def go_on(self, now: float) -> None:
        """There is a leader again, or more is offered: ask for what waits."""
        if not self._waiting:
            return
        for search in list(self._searches.values()):
            self._go_on(search, now)

    def _go_on(self, search: Search, now: float) -> None:
        waiting = [hunt for hunt in search.hunts.values() if hunt.waits]
        if waiting:
            self._advance(search, waiting, now)
            self._close_if_over(search)

    def _give_up(self, search: Search, name: NodeId, now: float, until: float = 1e300) -> None:
        """Nothing more is expected of somebody whose time is over by then."""
        moved = [
            hunt
            for hunt in search.hunts.values()
            if name in hunt.pending and hunt.pending[name].until <= until
        ]
        for hunt in moved:
            del hunt.pending[name]
        if moved:
            self._advance(search, moved, now)
            self._close_if_over(search)

    # -- time -------------------------------------------------------------------------------------

    def _push(self, at: float, key: Key, peer: NodeId) -> None:
        self._pushed += 1
        deadlines = self._deadlines
        if len(deadlines) > ENDED_DEADLINES + 8 * len(self._searches):
            deadlines[:] = [one for one in deadlines if one[2] in self._searches]
            heapify(deadlines)
        heappush(deadlines, (at, self._pushed, key, peer))
        if not self._armed or at < self._armed:
            self._armed = at
            self._core.timers.set(EXPIRE, at)

    def on_timer(self, now: float) -> None:
        """Somebody's time is over, or a request's."""
        self._armed = 0.0
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now:
            _, _, key, peer = heappop(deadlines)
            search = self._searches.get(key)
            if search is None:
                continue
            if peer:
                self._expire(search, peer, now)
            elif search.until <= now:
                self._run_out(search, now)
            else:
                self._go_on(search, now)
        while deadlines and deadlines[0][2] not in self._searches:
            heappop(deadlines)  # of what ended in time
        if deadlines:
            self._armed = max(deadlines[0][0], now)
            self._core.timers.set(EXPIRE, self._armed)

    def _expire(self, search: Search, peer: NodeId, now: float) -> None:
        late = [
            hunt
            for hunt in search.hunts.values()
            if peer in hunt.pending and hunt.pending[peer].until <= now
        ]
        if late:
            self._core.counts.silent += 1
            self._registry.refused(peer, now, timed_out=True)
            self._give_up(search, peer, now, now)

    def _run_out(self, search: Search, now: float) -> None:
        """The request's time here is over: what is open is rejected."""
        for hunt in search.hunts.values():
            hunt.pending.clear()
        self._advance(search, list(search.hunts.values()), now)
        self._forget_kept(search)
        self._close(search)

    # -- invariants -------------------------------------------------------------------------------

    def check(self) -> None:
        """Every open want waits for somebody, with a timer; nobody was asked twice or by itself."""
        me = self._core.me
        for search in self._searches.values():
            if search.open != sum(not hunt.ended for hunt in search.hunts.values()):
                raise InvariantViolation(f"{me}: the open wants of {search.key} are miscounted")
            for hunt in search.hunts.values():
                if not (hunt.ended or hunt.pending or hunt.waits):
                    raise InvariantViolation(f"{me}: want {hunt.want} of {search.key} waits alone")
                if any(peer not in hunt.asked or peer == hunt.sender for peer in hunt.pending):
                    raise InvariantViolation(f"{me}: want {hunt.want} went back to its sender")
        waiting = sum(
            hunt.waits for search in self._searches.values() for hunt in search.hunts.values()
        )
        if waiting != self._waiting:
            raise InvariantViolation(f"{me}: {self._waiting} wants wait, not {waiting}")
        if self._searches and not self._armed:
            raise InvariantViolation(f"{me}: a request is open without a timer")
        if len(self._searches) > self._core.settings.max_open:
            raise InvariantViolation(f"{me}: {len(self._searches)} requests are open")
