"""What moving clients need of a broker's routing: stand-ins, and how far a tree has come."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from overlay.ids import NodeId
from protocols.content.hops import BROKER, Hop
from protocols.content.interface import Advertised, Branch, EntryId
from protocols.content.router import Router
from protocols.content.streams import Streams


class Moving:
    """See MobileRouting."""

    def __init__(
        self,
        router: Router,
        hops: Mapping[NodeId, Hop],
        streams: Streams,
        flush_later: Callable[[], None],
    ) -> None:
        self._router = router
        self._hops = hops
        self._streams = streams
        self._flush_later = flush_later

    # -- stand-ins ------------------------------------------------------------------------------

    def offers_of(self, client: NodeId) -> list[Advertised]:
        """See MobileRouting."""
        hop = self._hops.get(client)
        keys = () if hop is None else tuple(hop.copy.hashes)
        found = (
            self._router.srt.offers(key.id).get(client)
            for key in keys
            if key.advertisement and not key.graft
        )
        return [offer for offer in found if offer is not None]

    def stand_in(self, offer: Advertised) -> None:
        """See MobileRouting."""
        self._router.grafts.resting.pop(offer.id, None)
        self._router.offer(offer)
        self._router.regraft(offer.id)
        self._flush_later()

    def rest(self, entry: EntryId) -> None:
        """See MobileRouting."""
        self._router.grafts.resting[entry] = None
        self._router.regraft(entry)
        self._flush_later()

    def step_down(self, entry: EntryId, me: NodeId) -> None:
        """See MobileRouting."""
        self._router.grafts.resting.pop(entry, None)
        self._router.retract(entry, me)
        self._flush_later()

    def is_needed(self, entry: EntryId, me: NodeId) -> bool:
        """See MobileRouting."""
        one = self._router.srt.get(entry)
        if one is None or one.hop != me:
            return False
        others = self._router.srt.offers(entry).values()
        return bool(self._router.grafts.branches(one)) or any(
            offer.hop != me and not offer.path and offer.epoch >= one.epoch for offer in others
        )

    def withhold(self, client: NodeId) -> None:
        """See MobileRouting."""
        self._router.srt.withheld[client] = None
        self._choose_again(client)

    def admit(self, client: NodeId) -> None:
        """See MobileRouting."""
        if self._router.srt.withheld.pop(client, client) is None:
            self._choose_again(client)

    def anchor(self, client: NodeId) -> None:
        """See MobileRouting."""
        for offer in self.offers_of(client):
            if offer.graft:
                self._router.offer(offer._replace(graft=0))
        self._flush_later()

    def _choose_again(self, client: NodeId) -> None:
        for offer in self.offers_of(client):
            self._router.offer(offer)
        self._flush_later()

    # -- trees ----------------------------------------------------------------------------------

    def branches(
        self, entry: EntryId, tree: EntryId, src: NodeId, *, wanting: bool = False
    ) -> list[Branch]:
        """See MobileRouting."""
        srt = self._router.srt
        by = srt.get(tree) or srt.get(entry)
        found: list[Branch] = []
        if by is None:
            return found
        peers = self._wanting(by) if wanting else self._hops
        for peer in peers:
            hop = self._hops.get(peer)
            if hop is not None and peer != src and hop.is_up and hop.role == BROKER:
                one = self._router.tree_to(peer, by)
                if one is not None:
                    turns = self._router.turns(one.id, peer)
                    tree = "" if one.id == entry else one.id
                    found.append(Branch(peer, tree, one.epoch, turns))
        return found

    def _wanting(self, one: Advertised) -> dict[NodeId, None]:
        """The hops from which subscriptions came that intersect an advertisement."""
        prt = self._router.prt
        found = prt.intersected_by(one.constraint, one.model)
        return {hop: None for entry in found for hop in prt.rows(entry)}

    def hangs_on(self, entry: EntryId, tree: EntryId, src: NodeId) -> bool:
        """See MobileRouting."""
        srt = self._router.srt
        one = srt.get(tree) or srt.get(entry)
        return one is not None and src in self._router.towards(one)

    def has_read(self, peer: NodeId, series: int, stamp: int) -> bool:
        """See MobileRouting."""
        hop = self._hops.get(peer)
        if hop is None or not hop.is_up or not series:
            return False
        return hop.copy.series == series and hop.copy.stamp >= stamp

    def holds(self, entry: EntryId) -> bool:
        """See MobileRouting."""
        return self._streams.holds(entry)

    def distances(self) -> dict[NodeId, int]:
        """See MobileRouting."""
        found = dict.fromkeys(
            (name for name, hop in self._hops.items() if hop.is_up and hop.role == BROKER), 1
        )
        for offer in self._router.srt.all_offers():
            for far, name in enumerate(offer.path, 1):
                found[name] = min(far, found.get(name, far))
        return found
