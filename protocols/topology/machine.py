"""The state machine of a zone's links: wishes in, agreements with their other ends out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from random import Random
from typing import ClassVar

import msgspec

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from overlay.protocol import Effects, Event, EventHandler, Handler, Message, OverlayProtocol, Scope
from protocols.membership.events import (
    AttributesChanged,
    MemberFailed,
    MemberJoined,
    MemberLeft,
)
from protocols.membership.interface import MembershipView
from protocols.topology.config import TopologySettings
from protocols.topology.events import NeighbourAdded, NeighbourRemoved
from protocols.topology.kinds import Kind
from protocols.topology.links import Link, LinkState, LinkTable
from protocols.topology.messages import (
    MESSAGES,
    LinkAccept,
    LinkCheck,
    LinkDropped,
    LinkRefused,
    LinkRequest,
)
from protocols.topology.selection import ring_neighbours
from protocols.topology.wishes import Wishes

REVIEW = "review"  # links follow the view; requests are repeated
CHECK = "check"  # each end tells the other that it holds the link
LONGEST_PAUSE = 8  # × request_timeout between two requests


class TopologyCounts(msgspec.Struct):
    """How often what happened, since the start."""

    added: int = 0
    removed: int = 0
    requests: int = 0
    refused: int = 0  # requests of others that the degree bound left no room for
    strangers: int = 0  # messages of nodes that are no members in this view
    mended: int = 0  # ends that held a link which the other did not
    reviews: int = 0


class Topology(OverlayProtocol):
    """The links of one member; implements `TopologyView`. Give it the zone's name as scope."""

    name: ClassVar[str] = "topology"
    messages: ClassVar[tuple[type[Message], ...]] = MESSAGES
    emits: ClassVar[tuple[type[Event], ...]] = (NeighbourAdded, NeighbourRemoved)

    config: TopologySettings

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: TopologySettings,
        *,
        members: MembershipView,
    ) -> None:
        super().__init__(me, effects, rng, config)
        self.counts = TopologyCounts()
        self._members = members
        self._links = LinkTable()
        self._wishes = Wishes(members, config, rng)
        self._avoided: dict[NodeId, float] = {}  # until when; the earliest first
        self._review_at: float | None = None
        self._check_at = 0.0
        self._settled_at = (-1, -1)  # versions of view and links that left nothing to review
        self._latest = 0.0
        self._stopped = True
        self._checked = (-1, -1, -1, False)

    # -- what siblings and the application see --------------------------------------------------

    @property
    def zone(self) -> Scope:
        """The zone's name."""
        return self._members.zone

    @property
    def version(self) -> int:
        """Changes whenever a neighbour comes or goes."""
        return self._links.version

    @property
    def degree(self) -> int:
        """How many neighbours there are."""
        return len(self._links.neighbours())

    def neighbours(self) -> tuple[NodeId, ...]:
        """All with whom this node agreed on a link, the oldest link first."""
        return self._links.neighbours()

    def is_neighbour(self, peer: NodeId) -> bool:
        """Whether a link to that member is up."""
        link = self._links.get(peer)
        return link is not None and link.state == LinkState.UP

    def kinds(self, peer: NodeId) -> Kind:
        """Why the two are linked, in the eyes of either; `Kind.NONE` without a link."""
        link = self._links.get(peer)
        return link.kinds if link is not None and link.state == LinkState.UP else Kind.NONE

    @property
    def settled(self) -> bool:
        """Whether every link that I want is up, and no review waits."""
        return self._review_at is None and all(
            self.is_neighbour(peer) for peer in self._wishes.peers()
        )

    # -- inputs ---------------------------------------------------------------------------------

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """One handler for each message of the table in the package's docstring."""
        return {
            LinkRequest: self._on_request,
            LinkAccept: self._on_accept,
            LinkRefused: self._on_refused,
            LinkDropped: self._on_dropped,
            LinkCheck: self._on_check,
        }

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """The view changed."""
        return {
            MemberJoined: self._on_joined,
            MemberFailed: self._on_failed,
            MemberLeft: self._on_left,
            AttributesChanged: self._on_attributes,
        }

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Look at the view; check links at a random moment: members must not check in step."""
        self._stopped = False
        self._latest = now
        self._arm_check(now + self.rng.random() * self.config.check_period)
        self._review_soon(now)

    def on_stop(self, now: float) -> None:
        """Tell the other ends, so that they need not wait for silence."""
        self._stopped = True
        if len(self._links):
            self.effects.send(list(self._links), LinkDropped())

    def on_timer(self, key: Hashable, now: float) -> None:
        """Review or check."""
        if self._stopped:
            return
        self._notice(now)
        if key == REVIEW:
            self._review_at = None
            self._review(now)
        elif key == CHECK:
            self._check(now)

    def _on_joined(self, event: MemberJoined, now: float) -> None:
        self._notice(now)
        self._review_soon(now)

    def _on_failed(self, event: MemberFailed, now: float) -> None:
        if event.member in self._links:
            self._remove(event.member, "failed")
            if event.restarted:  # its new life may have asked already, and must ask again
                self.effects.send(event.member, LinkDropped())
        self._avoided.pop(event.member, None)
        self._review_soon(now)

    def _on_left(self, event: MemberLeft, now: float) -> None:
        if event.member in self._links:
            self._remove(event.member, "left")
        self._avoided.pop(event.member, None)
        self._review_soon(now)

    def _on_attributes(self, event: AttributesChanged, now: float) -> None:
        if self.config.interest_key in event.keys:
            self._review_soon(now)

    # -- the other end speaks ---------------------------------------------------------------------

    def _knows(self, src: NodeId, now: float) -> bool:
        """Whether to listen to it: a member, in this view.

        A stranger may be a newcomer of whom I shall hear in a moment: it asks again.
        """
        self._notice(now)
        if self._stopped:
            return False
        if src not in self._members or src == self.me:
            self.counts.strangers += 1
            return False
        return True

    def _on_request(self, src: NodeId, msg: LinkRequest, now: float) -> None:
        if self._knows(src, now):
            self._consider(src, Kind(msg.kinds), now)

    def _consider(self, src: NodeId, kinds: Kind, now: float) -> None:
        link = self._links.get(src)
        if link is None:
            if src not in self._wishes.ring and self._is_full():
                # A wrong claim on the ring, too: where views agree, both ends choose each other.
                self.counts.refused += 1
                self.effects.send(src, LinkRefused())
                return
            mine = self._wishes.kinds(src)
            link = self._links.add(src, Link(LinkState.ACCEPTED, mine, kinds, now))
        link.hear(kinds, now)
        self.effects.send(src, LinkAccept(int(link.mine)))

    def _is_full(self) -> bool:
        """Whether others get no more links; what I still have to choose is kept free."""
        room = self.config.max_degree - self._wishes.missing
        return self._links.besides(self._wishes.ring) >= room

    def _on_accept(self, src: NodeId, msg: LinkAccept, now: float) -> None:
        if not self._knows(src, now):
            return
        link = self._links.get(src)
        if link is None:  # I gave up before it came
            self.counts.mended += 1
            self.effects.send(src, LinkDropped())
            return
        link.hear(Kind(msg.kinds), now)
        if link.state != LinkState.UP:
            self._raise(src, link)
            self.effects.send(src, LinkCheck(int(link.mine)))  # the other end may raise it, too
        self._drop_if_unwanted(src, link)

    def _on_check(self, src: NodeId, msg: LinkCheck, now: float) -> None:
        if not self._knows(src, now):
            return
        link = self._links.get(src)
        if link is None:
            self.counts.mended += 1
            if msg.kinds:
                self._consider(src, Kind(msg.kinds), now)
            else:
                self.effects.send(src, LinkDropped())
            return
        link.hear(Kind(msg.kinds), now)
        if link.state != LinkState.UP:
            self._raise(src, link)
        self._drop_if_unwanted(src, link)

    def _on_refused(self, src: NodeId, msg: LinkRefused, now: float) -> None:
        if self._knows(src, now):
            self._give_up(src, now, "full")

    def _on_dropped(self, src: NodeId, msg: LinkDropped, now: float) -> None:
        if self._knows(src, now):
            self._give_up(src, now, "dropped")

    def _give_up(self, src: NodeId, now: float, reason: str) -> None:
        """The other end does not want it: choose somebody else, unless the ring needs this one."""
        link = self._links.get(src)
        if link is None:
            return
        if link.mine & Kind.RING and link.state == LinkState.ASKED:
            return  # the request is repeated until the views agree
        self._remove(src, reason)
        self._avoid(src, now)
        self._review_soon(now)

    def _raise(self, peer: NodeId, link: Link) -> None:
        self._links.raised(link)
        self.counts.added += 1
        self.effects.emit(NeighbourAdded(self.zone, peer, link.kinds))

    def _drop_if_unwanted(self, peer: NodeId, link: Link) -> None:
        if link.state == LinkState.UP and not link.kinds:
            self._remove(peer, "unwanted")
            self.effects.send(peer, LinkDropped())

    def _remove(self, peer: NodeId, reason: str) -> None:
        self._wishes.withdraw(peer)  # so all whom I chose have links, which the bound counts
        link = self._links.pop(peer)
        if link.state == LinkState.UP:
            self.counts.removed += 1
            self.effects.emit(NeighbourRemoved(self.zone, peer, link.kinds, reason))

    def _avoid(self, peer: NodeId, now: float) -> None:
        self._wishes.withdraw(peer)
        if self.config.avoid and peer not in self._wishes.ring:
            self._avoided.pop(peer, None)
            self._avoided[peer] = now + self.config.avoid

    # -- reviewing --------------------------------------------------------------------------------

    def _review_soon(self, now: float) -> None:
        if not self._stopped:
            self._arm_review(now + self.config.review_delay)

    def _arm_review(self, at: float) -> None:
        if self._review_at is None or at < self._review_at:
            self._review_at = at
            self.effects.set_timer(REVIEW, at)

    def _review(self, now: float) -> None:
        """Compare wishes with links, and mend the difference, a few links at a time."""
        self.counts.reviews += 1
        members, links, wishes = self._members, self._links, self._wishes
        if self.me not in members:
            return
        for peer in list(links):
            if peer not in members:
                self._remove(peer, "failed")
        for peer in [peer for peer, until in self._avoided.items() if until <= now]:
            del self._avoided[peer]
        wishes.follow_ring()
        self._trim(now)
        room = self.config.max_degree - links.besides(wishes.ring)
        if wishes.choose(links, self._avoided, room) and room:
            self._review_soon(now)
        for peer, link in links.items():
            self._follow(peer, link, now)
        for peer in wishes.peers():
            if peer not in links:
                link = Link(LinkState.ASKED, wishes.kinds(peer), Kind.NONE, now)
                self._ask(peer, links.add(peer, link), now)
        quiet = self._review_at is None and not self._avoided
        self._settled_at = (members.version, links.version) if quiet else (-1, -1)

    def _trim(self, now: float) -> None:
        """End what the degree bound has no room for, rather links that only the other end wants.

        Members who were nearest on the ring are so no longer once others came between.
        """
        ring = self._wishes.ring
        excess = self._links.besides(ring) - self.config.max_degree
        if excess <= 0:
            return
        spare = [(peer, link) for peer, link in self._links.items() if peer not in ring]
        spare.sort(key=lambda pair: (self._wishes.kinds(pair[0]) != 0, pair[1].theirs != 0))
        for peer, _ in spare[:excess]:
            self._remove(peer, "full")
            self.effects.send(peer, LinkDropped())
            self._avoid(peer, now)

    def _follow(self, peer: NodeId, link: Link, now: float) -> None:
        """Bring one link in line with what I want of it now."""
        wanted = self._wishes.kinds(peer)
        changed = wanted != link.mine
        link.mine = wanted
        if link.state == LinkState.UP:
            if changed:
                self.effects.send(peer, LinkCheck(int(wanted)))
                self._drop_if_unwanted(peer, link)
        elif link.state == LinkState.ACCEPTED:
            if wanted:  # it wants me and I want it: both may ask
                link.state = LinkState.ASKED
                self._ask(peer, link, now)
        elif not wanted:
            self._links.pop(peer)
            self.effects.send(peer, LinkDropped())
        elif link.due <= now:
            if not wanted & Kind.RING and link.tries >= self.config.request_tries:
                self._links.pop(peer)
                self._avoid(peer, now)
                self._review_soon(now)
            else:
                self._ask(peer, link, now)
        else:
            self._arm_review(link.due)

    def _ask(self, peer: NodeId, link: Link, now: float) -> None:
        pause = self.config.request_timeout * min(2**link.tries, LONGEST_PAUSE)
        link.tries = min(link.tries + 1, 64)
        link.due = now + pause
        self.counts.requests += 1
        self.effects.send(peer, LinkRequest(int(link.mine)))
        self._arm_review(link.due)

    # -- checking ---------------------------------------------------------------------------------

    def _arm_check(self, at: float) -> None:
        self._check_at = at
        self.effects.set_timer(CHECK, at)

    def _check(self, now: float) -> None:
        period, links = self.config.check_period, self._links
        if now > self._check_at + period:  # I slept: the silence was mine
            for link in links.values():
                link.heard = now
        for peer, link in links.items():
            if link.state != LinkState.ASKED and now - link.heard > self.config.silence * period:
                self._remove(peer, "silent")
                self.effects.send(peer, LinkDropped())
                self._avoid(peer, now)
                self._review_soon(now)
        if self._settled_at != (self._members.version, links.version):
            released = self._wishes.release_redundant(links)
            self._review(now)  # members once avoided may be asked again
            if released:
                self._settled_at = (-1, -1)  # there may be more
        same: dict[Kind, list[NodeId]] = {}
        for peer in links.neighbours():
            link_up = links.get(peer)
            assert link_up is not None, "a neighbour has a link"
            same.setdefault(link_up.mine, []).append(peer)
        for kinds, peers in same.items():
            self.effects.send(peers, LinkCheck(int(kinds)))
        self._arm_check(now + period * (0.9 + 0.2 * self.rng.random()))

    def _notice(self, now: float) -> None:
        """A clock that was set back would leave every timer far away: set them anew."""
        if now < self._latest - self.config.check_period and not self._stopped:
            for link in self._links.values():
                link.heard = min(link.heard, now)
                link.due = min(link.due, now)
            self._avoided.clear()
            self._arm_check(now + self.rng.random() * self.config.check_period)
            self._review_at = None
            self._review_soon(now)
        self._latest = now

    # -- invariants -------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """See the package's docstring."""
        state = (
            self._members.version,
            self._links.changes,
            self.counts.reviews,
            self._review_at is None,
        )
        if self._stopped or state == self._checked:
            return
        self._checked = state
        if self.me in self._links:
            raise InvariantViolation(f"{self.me}: is linked to itself")
        for peer in self._links.neighbours():
            if peer not in self._members:
                raise InvariantViolation(f"{self.me}: {peer} is a neighbour but no member")
        besides = self._links.besides(self._wishes.ring)
        if besides > self.config.max_degree:
            raise InvariantViolation(f"{self.me}: {besides} links besides the ring")
        if self._review_at is None:
            self._check_reviewed()

    def _check_reviewed(self) -> None:
        """What holds whenever no review waits."""
        ring = self._members.ring()
        if self.me not in ring:
            return
        for peer in ring_neighbours(ring, self.me, self.config.ring_links):
            link = self._links.get(peer)
            if link is None or not link.mine & Kind.RING:
                raise InvariantViolation(f"{self.me}: no ring link to {peer} is wanted")
            if link.state != LinkState.UP:
                raise InvariantViolation(f"{self.me}: nobody asks {peer} for a ring link")
