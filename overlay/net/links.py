"""All outgoing links of a node: opened on demand, closed when idle, opened again with back-off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import TYPE_CHECKING

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.limits import Limits
from overlay.net.addresses import Endpoint
from overlay.net.book import AddressBook
from overlay.net.config import NetSettings
from overlay.net.descriptors import Descriptors
from overlay.net.link import Link, State
from overlay.net.trust import Trust
from overlay.protocol import Event, LinkLost, LinkUp, PeerMet, TurnedAway
from overlay.wire.bulk import BulkLane
from overlay.wire.frames import Goodbye, Hello, Refusal, Welcome
from overlay.wire.sizes import Sizes
from overlay.wire.writer import BatchWriter

if TYPE_CHECKING:
    import zmq

    from overlay.security.identity import Identity
    from overlay.security.rights import Rights

BOOK_SIZE = 100_000  # peers whose address is remembered

Announce = Callable[[Event, float], None]


class Links:
    """The links by name, those to addresses whose name is unknown, and the address book."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        trust: Trust,
        net: NetSettings,
        limits: Limits,
        sizes: Sizes,
        rng: Random,
        descriptors: Descriptors,
        *,
        me: NodeId,
        hello: Callable[[], Hello],
        now: Callable[[], float],
        unix_now: Callable[[], float],
        announce: Announce,
        refuse: Callable[[str, RemoteProtocolError, int], None],
        ask_who: Callable[[Link, Endpoint], bool],
        due: Callable[[float], None],
    ) -> None:
        self.context = context
        self.trust = trust
        self.net = net
        self.counts: Counter[str] = Counter()
        self.bytes_sent = 0
        self.frames_sent = 0
        self.by_name: dict[NodeId, Link] = {}
        self.anonymous: dict[Endpoint, Link] = {}
        self.dirty: list[Link] = []
        self.hello = hello
        self.now = now
        self.refuse = refuse
        self.due = due  # have `sweep` called at that time
        self.descriptors = descriptors
        self._unix_now = unix_now
        self._me = me
        self.limits = limits
        self.sizes = sizes
        self._rng = rng
        self._announce = announce
        self._ask_who = ask_who
        self._book = AddressBook(BOOK_SIZE)
        self._keys: dict[NodeId, bytes] = {}  # CURVE keys that certificates proved
        self._rights: dict[NodeId, Rights] = {}  # what they allow
        self.stopping = False

    # -- addresses ----------------------------------------------------------------------------

    def learn(self, peer: NodeId, endpoints: Iterable[Endpoint]) -> None:
        """Remember where a peer can be reached; what it says now replaces what was known."""
        if peer == self._me:
            return
        self._book.learn(peer, endpoints)
        known = self._book[peer]
        link = self.by_name.get(peer)
        if link is not None and known and link.candidates != known:
            link.candidates = known
            if link.state is not State.OPEN and link.endpoint not in known:
                now = self.now()
                if link.state is not State.WAITING:
                    link.fail("it moved", now)  # it restarted: nobody answers where it was
                link.attempts = 0
                link.deadline = now  # a new address is worth an attempt at once
                self.due(now)

    def heard_from(self, peer: NodeId, host: str) -> None:
        """A peer connected from one of its addresses: that one is worth an attempt first."""
        link = self.by_name.get(peer)
        if not self._book.prove(peer, host) or link is None:
            return
        link.candidates = self._book[peer]
        if link.endpoint != link.candidates[0] and link.redirect(self.now()):
            self.step(link, self.now())

    def learn_identity(self, proven: Identity) -> None:
        """Remember the key and the rights that a verified certificate binds to a name."""
        self._learn_key(proven.name, proven.curve_key)
        if len(self._rights) >= BOOK_SIZE and proven.name not in self._rights:
            self._rights.pop(next(iter(self._rights)))
        self._rights[proven.name] = proven.rights

    def rights_of(self, peer: NodeId) -> Rights | None:
        """What the peer's certificate allows; None when it never showed one here."""
        return self._rights.get(peer)

    def _learn_key(self, peer: NodeId, curve_key: bytes) -> None:
        if len(self._keys) >= BOOK_SIZE and peer not in self._keys:
            self._keys.pop(next(iter(self._keys)))
        self._keys[peer] = curve_key

    def endpoints_of(self, peer: NodeId) -> tuple[Endpoint, ...]:
        """What the book says."""
        return self._book[peer]

    # -- opening ------------------------------------------------------------------------------

    def to(self, peer: NodeId) -> Link:
        """Return the link to a peer, beginning to open it when there is none."""
        link = self.by_name.get(peer)
        if link is None:
            link = self._new_link(peer, self._book[peer])
            self.by_name[peer] = link
            self.step(link, self.now())
        return link

    def meet(self, endpoint: Endpoint) -> None:
        """Open a link to an address; its name comes with the handshake."""
        if endpoint in self.anonymous:
            link = self.anonymous[endpoint]
            if link.state is State.WAITING:
                link.deadline = self.now()
                self.due(link.deadline)
            return
        link = self._new_link(None, (endpoint,))
        self.anonymous[endpoint] = link
        self.step(link, self.now())

    def _new_link(self, name: NodeId | None, candidates: tuple[Endpoint, ...]) -> Link:
        now = self.now()
        writer = BatchWriter(self.sizes, self.limits, self.net.link_bytes, self.now)
        return Link(self, writer, name, candidates, self._rng, now)

    def bulk_lane(self) -> BulkLane:
        """The second lane of a link; most links never need it."""
        return BulkLane(self.sizes, self.limits, self.net.link_bytes, self.now)

    def step(self, link: Link, now: float) -> None:
        """Do what is due for one link."""
        if link.state is State.OPEN or now < link.deadline:
            return
        if link.state is State.WAITING:
            self._attempt(link, now)
        else:
            link.fail("no answer in time", now)

    def _attempt(self, link: Link, now: float) -> None:
        if self.stopping or len(self.by_name) + len(self.anonymous) > self.net.peers:
            link.fail("stopping" if self.stopping else "net.peers links are open", now)
            return
        endpoint = link.next_candidate()
        if endpoint is None:
            link.fail("no address known", now)
            return
        if self.trust.curve is None:
            link.connect(endpoint, None, now)
            return
        key = self._keys.get(link.name) if link.name is not None else None
        if key is not None and link.failures % 4 != 3:  # now and then: has it a new certificate?
            link.connect(endpoint, key, now)
            return
        link.endpoint = endpoint
        link.introduce(now)
        if not self._ask_who(link, endpoint):
            link.fail(f"{endpoint} has no certificate to show", now)

    def introduced(self, link: Link, name: NodeId, curve_key: bytes, now: float) -> None:
        """The peer's certificate came: go on with its key."""
        if link.state is not State.INTRODUCING or link.endpoint is None:
            return
        if link.name is not None and link.name != name:
            link.fail(f"{link.endpoint} is {name}", now)
            return
        self._learn_key(name, curve_key)
        link.connect(link.endpoint, curve_key, now)

    # -- what links report --------------------------------------------------------------------

    def welcomed(self, link: Link, welcome: Welcome, now: float) -> None:
        """The peer let us in; is it who we think it is?"""
        key = self._keys.get(welcome.name) if self.trust.curve is not None else None
        try:
            identity = self.trust.identify(welcome.certificate, welcome.name, key, self._unix_now())
        except RemoteProtocolError as error:
            self.refuse(link.who, error, 1)
            link.fail(str(error), now)
            return
        if link.name is None:
            self._name_link(link, identity.name, now)
        elif link.name != identity.name:
            self.refuse(link.who, RemoteProtocolError("name-forged", identity.name), 1)
            link.fail(f"{link.endpoint} is {identity.name}", now)
            return
        assert link.endpoint is not None
        if self._book.prove(identity.name, link.endpoint.host):
            link.candidates = self._book[identity.name]
        link.opened(welcome.version, now)
        if link.name is None:  # there is one already; Goodbye tells its end from a loss
            link.close(Goodbye(idle=True), 0.1)
        else:
            self._announce(LinkUp(identity.name), now)

    def _name_link(self, link: Link, name: NodeId, now: float) -> None:
        """An address turned out to be `name`; a link to it that exists already is kept."""
        assert link.endpoint is not None
        self.anonymous = {at: other for at, other in self.anonymous.items() if other is not link}
        if name not in self._book:
            self.learn(name, (link.endpoint,))
        previous = self.by_name.get(name)
        if previous is None or previous.state is not State.OPEN:
            if previous is not None:
                link.writer, previous.writer = previous.writer, link.writer
                link.bulk, previous.bulk = previous.bulk, link.bulk
                previous.close(None, 0)
            link.name = name
            link.candidates = self._book[name]
            self.by_name[name] = link
        self._announce(PeerMet(name, tuple(map(str, self._book[name]))), now)

    def failed(self, link: Link, reason: str, was_open: bool, now: float) -> None:
        """An attempt or an open link broke; that no address answers is news, but only once."""
        self.counts["links broken" if was_open else "attempts failed"] += 1
        if link.waiting or link.name is None:
            self.due(link.deadline)
        tried_all = link.attempts >= len(link.candidates)
        if link.name is not None and (was_open or tried_all) and not link.lost:
            link.lost = True
            self._announce(LinkLost(link.name, reason), now)

    def refused_by(self, link: Link, refusal: Refusal, now: float) -> None:
        """A peer turned us away: people should know why."""
        self.counts["refused by peers"] += 1
        self.refuse(
            link.who,
            RemoteProtocolError("refused-by-peer", f"{refusal.reason}: {refusal.detail}"),
            1,
        )
        self._announce(TurnedAway(link.who, refusal.reason), now)

    # -- regular work -------------------------------------------------------------------------

    def mark(self, link: Link) -> None:
        """List a link for the next flush."""
        if not link.dirty:
            link.dirty = True
            self.dirty.append(link)

    def flush(self) -> None:
        """Send what waits on every link that was written to since the last flush."""
        dirty, self.dirty = self.dirty, []
        for link in dirty:
            link.dirty = False
            link.flush()

    def sweep(self, now: float) -> float:
        """Step every link and close idle ones; returns when something is due next."""
        due = now + 1.0
        for link in self:
            self.step(link, now)
            if link.state is State.OPEN:
                link.look(now)  # sending may have swallowed the wake-up of a late refusal
                link.remind(now)
                if now - link.used_at > self.net.idle_close and not link.waiting:
                    self._forget(link, Goodbye(idle=True))
                continue
            if link.waiting_since is not None and now - link.waiting_since > self.net.give_up:
                self.counts["frames undelivered"] += link.discard()
                link.waiting_since = None
            if link.name is not None and not link.waiting and link.state is State.WAITING:
                if now - link.used_at > self.net.give_up:
                    self._forget(link, None)
                    continue
                continue  # nobody waits for it: the next message opens it
            due = min(due, link.deadline)
        return due

    def _forget(self, link: Link, goodbye: Goodbye | None) -> None:
        link.close(goodbye, 0.5)
        self.counts["messages dropped"] += link.writer.dropped  # they count although it is gone
        self.counts["bulk messages dropped"] += link.dropped_bulk
        if link.name is not None and self.by_name.get(link.name) is link:
            del self.by_name[link.name]
            self.counts["links closed"] += 1

    def close(self, linger: float) -> None:
        """Say goodbye on every open link and close all."""
        self.stopping = True
        for link in self:
            link.close(Goodbye(idle=False), linger)

    def __iter__(self) -> Iterator[Link]:
        """All links, those to peers first."""
        return iter((*self.by_name.values(), *self.anonymous.values()))

    @property
    def counters(self) -> Counter[str]:
        """What was sent, and what could not be."""
        found = self.counts.copy()
        found["bytes sent"] = self.bytes_sent
        found["frames sent"] = self.frames_sent
        found["addresses forgotten"] = self._book.forgotten
        found["messages dropped"] += sum(link.writer.dropped for link in self)
        found["bulk messages dropped"] += sum(link.dropped_bulk for link in self)
        return found

    @property
    def idle(self) -> bool:
        """True when no link that is open, or about to be, has anything left to send."""
        return not any(link.waiting for link in self if link.state is not State.WAITING)
