"""Carrying publications: who may publish what, and to whom a publication goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.predicates import determines, item_from_wire
from overlay.protocol import Effects
from protocols.content.counts import ContentCounts
from protocols.content.events import Delivered
from protocols.content.hops import CLIENT, Hop
from protocols.content.interface import Advertised, EntryId, owner_of
from protocols.content.messages import MAX_PATH, Publication
from protocols.content.router import Router
from protocols.content.tracing import Rows


class Carrier:
    """Delivers publications here, and hands them on."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        router: Router,
        hops: Mapping[NodeId, Hop],
        counts: ContentCounts,
    ) -> None:
        self._me = me
        self._effects = effects
        self._router = router
        self._hops = hops
        self._counts = counts
        self.rows = Rows(effects)

    def checked(self, src: NodeId, hop: Hop, msg: Publication) -> Publication:
        """See that its publisher may publish it, where that can be known.

        A client publishes what it advertised here; of what a neighbour hands on this broker may
        know another epoch, or nothing at all.
        """
        known: Advertised | None
        if hop.role == CLIENT:
            if owner_of(msg.advertisement) != src:
                raise RemoteProtocolError("content-not-yours", f"{msg.advertisement[:64]!a}")
            known = self._router.srt.offers(msg.advertisement).get(src)
        else:
            known = self._router.srt.get(msg.advertisement)
            if known is None or known.epoch != msg.epoch:
                return replace(msg, item=item_from_wire(msg.item))
        item = item_from_wire(msg.item)
        if known is None or known.model != msg.model or not determines(known.constraint, item):
            self._counts.undetermined += 1
            raise RemoteProtocolError("content-undetermined", f"{msg.advertisement[:64]!a}")
        return replace(msg, item=item)

    def hand_on(self, ready: Iterable[tuple[NodeId, Publication]]) -> None:
        """Deliver to subscriptions of this node, and send on to other hops that want it."""
        for src, msg in ready:
            wanting = self._router.prt.matching(msg.item, msg.model)
            for subscription in wanting.pop(self._me, ()):
                self._deliver(subscription, msg)
            if self._router.is_broker:
                self._spread(src, msg, wanting)
            elif src == self._me:
                broker = list(self._router.readers)  # it knows who wants it
                self._counts.no_broker += not broker
                self._send(broker, msg)

    def _spread(self, src: NodeId, msg: Publication, wanting: Iterable[NodeId]) -> None:
        """Send it to clients, and down the tree of its advertisement."""
        srt = self._router.srt
        by = srt.get(msg.tree) or srt.get(msg.advertisement)  # what is on a tree stays on it
        to: dict[EntryId, list[NodeId]] = {}
        for name in wanting:
            hop = self._hops.get(name)
            if name == src or hop is None:
                continue
            tree = msg.tree
            if hop.role != CLIENT and by is not None:
                found = self._router.tree_to(name, by)
                if found is None:
                    continue
                tree = "" if found.id == msg.advertisement else found.id
            to.setdefault(tree, []).append(name)
        for tree, names in to.items():
            self._send(names, replace(msg, tree=tree))

    def _send(self, to: list[NodeId], msg: Publication) -> None:
        if to and msg.hops >= MAX_PATH:
            self._counts.too_far += 1
        elif to:
            self._counts.forwarded += len(to)
            self.rows.handed_on(msg, len(to))
            self._effects.send(to, replace(msg, hops=msg.hops + 1))

    def _deliver(self, subscription: EntryId, msg: Publication) -> None:
        self._counts.delivered += 1
        self.rows.delivered(msg)
        self._effects.emit(
            Delivered(subscription, msg.advertisement, msg.epoch, msg.sequence, msg.item, msg.hops)
        )
