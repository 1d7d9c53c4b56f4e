"""Similarity forwarding: a request shares the results of another that covers it (algorithm 1).

The first broker with a cover for a request sends it after that cover, along its last hops, to its
host, which has the results. Brokers on the way hand over what still passes them.

A request that shares ends when its cover has ended at its host. So that no two requests wait for
each other, of two that ask for the same only the one with the smaller id is waited for while it is
under way; all other covers ask for more, and that has no circles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from overlay.ids import NodeId
from overlay.predicates import covers
from protocols.resources.config import REUSED
from protocols.resources.messages import NO_SLIP, Found, Gone, RequestId
from protocols.resources.records import Branch, Record, Way

if TYPE_CHECKING:
    from protocols.resources.forwarding import Forwarding


class Similarity:
    """What is done with covers; the rest is done by `forwarding`."""

    def __init__(self, forwarding: Forwarding) -> None:
        self._forwarding = forwarding

    def cover_for(self, record: Record, now: float) -> Record | None:
        """The first request of the SrdSubList whose results this one can share."""
        forwarding = self._forwarding
        forwarding.counts.matched_covers += 1
        for cover in forwarding.table.covers_of(record.constraint):
            if cover.failed or cover.model != record.model or not self._is_fresh(cover, record):
                continue
            if forwarding.hosts(cover):
                if cover.done or is_before(cover, record):
                    return cover
            elif cover.last_hop != record.last_hop:
                return cover
        return None

    def share(self, record: Record, cover: Record, now: float) -> None:
        """This broker is the first that has a cover for the request."""
        forwarding = self._forwarding
        forwarding.counts.covered += 1
        record.way, record.cover = Way.COVERED, cover.id
        forwarding.table.wait(record, cover)
        if forwarding.hosts(cover):
            self._share_here(record, cover, now)
        elif self._has_nothing(record, cover):
            record.as_of = min(record.as_of, cover.as_of)
            forwarding.settle(record, now)
        else:
            record.branches[cover.last_hop] = Branch.COVER
            forwarding.send_request(record, cover.last_hop, now, cover.id)

    def relay(self, record: Record, id: RequestId, now: float) -> None:
        """Another broker sent the request after a cover of which this one knows, too."""
        forwarding = self._forwarding
        cover = forwarding.table.get(id)
        record.way, record.cover = Way.RELAYED, id
        usable = (
            cover is not None
            and forwarding.table.is_listed(id)
            and cover.last_hop != record.last_hop
            and covers(cover.constraint, record.constraint)
        )
        if not usable:
            self._tell_gone(record, now)
            return
        assert cover is not None
        forwarding.counts.relayed += 1
        forwarding.table.add(record)
        forwarding.table.wait(record, cover)
        if forwarding.hosts(cover):
            self._share_here(record, cover, now)
            return
        record.branches[cover.last_hop] = Branch.COVER
        forwarding.send_request(record, cover.last_hop, now, id)

    def _share_here(self, record: Record, cover: Record, now: float) -> None:
        """This broker hosts the cover: hand over what it has, and wait for its end."""
        forwarding = self._forwarding
        usable = self._is_fresh(cover, record) and not cover.failed
        if not usable or not (cover.done or is_before(cover, record)):
            self._refuse(record, now)
            return
        assert cover.cache is not None
        cached = [_aged(kept.found, now - kept.at) for kept in cover.cache.values()]
        forwarding.share_results(record, cached, forwarding.me, now)
        if cover.done:
            record.as_of = min(record.as_of, cover.as_of)
            forwarding.settle(record, now)
        else:
            record.branches[forwarding.me] = Branch.COVER

    def cover_ended(self, cover: Record, now: float) -> None:
        """The host of a cover knows that no more results come, or that some will be missing."""
        forwarding = self._forwarding
        for record in forwarding.table.waiting_for(cover):
            if record.branches.get(forwarding.me) is not Branch.COVER:
                continue
            if cover.failed or not self._is_fresh(cover, record):
                self._refuse(record, now)
            else:
                del record.branches[forwarding.me]
                record.as_of = min(record.as_of, cover.as_of)
                forwarding.settle(record, now)

    def on_gone(self, src: NodeId, msg: Gone, now: float) -> None:
        """The cover has nothing to share."""
        record = self._forwarding.table.get(msg.id)
        if record is None or record.cover != msg.cover:
            return
        if record.branches.get(src) is Branch.COVER:
            self.miss(record, src, now)

    def miss(self, record: Record, hop: NodeId, now: float) -> None:
        """The host of its cover cannot be reached by that hop, or does not share."""
        del record.branches[hop]
        table = self._forwarding.table
        if record.way is Way.COVERED and record.cover is not None:
            cover = table.get(record.cover)
            if cover is not None and not self._forwarding.hosts(cover):
                table.bar(cover)  # nobody else needs to go after it in vain
        self._refuse(record, now)

    def _refuse(self, record: Record, now: float) -> None:
        """The broker that chose the cover routes the request: it alone knows what is left."""
        forwarding = self._forwarding
        record.branches.pop(forwarding.me, None)
        forwarding.table.wait_no_more(record)
        if record.way is Way.COVERED:
            forwarding.counts.gone += 1
            record.cover = None
            forwarding.route(record, now)
        else:
            forwarding.table.drop(record)
            self._tell_gone(record, now)

    def _tell_gone(self, record: Record, now: float) -> None:
        assert record.cover is not None
        gone = Gone(NO_SLIP, record.id, record.model, record.cover)
        self._forwarding.courier.send(record.last_hop, gone, now)

    # -- judging ------------------------------------------------------------------------------

    def _is_fresh(self, cover: Record, record: Record) -> bool:
        """Whether what the cover has seen is no older than `expiry` before this request."""
        oldest = record.issued - self._forwarding.config.expiry * REUSED
        return cover.as_of >= oldest

    def _has_nothing(self, record: Record, cover: Record) -> bool:
        """No result of the cover came by here, and none can have come from behind its last hop."""
        if not cover.done or cover.has_results or cover.elsewhere:
            return False  # while it is under way only its host knows when it ends
        _own, hops = self._forwarding.candidates(record)
        return cover.last_hop not in hops


def is_before(cover: Record, record: Record) -> bool:
    """Whether a request may wait for that cover while it is under way."""
    return cover.id < record.id or not covers(record.constraint, cover.constraint)


def _aged(found: Found, seconds: float) -> Found:
    return msgspec.structs.replace(found, age=found.age + max(0.0, seconds))
