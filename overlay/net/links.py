"""All links of a node: opened on demand, closed when idle, opened again with back-off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import zmq

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.limits import Limits
from overlay.net.addresses import Endpoint
from overlay.net.book import AddressBook
from overlay.net.config import NetSettings
from overlay.net.descriptors import Descriptors
from overlay.net.inbound import Inbound
from overlay.net.link import NO_CONNECTION, Link, State
from overlay.net.session import Session
from overlay.net.tallies import Tallies
from overlay.net.trust import Trust
from overlay.protocol import Event, LinkLost, LinkUp, PeerMet, TurnedAway, UdpAddress
from overlay.wire.bulk import BulkLane
from overlay.wire.frames import Goodbye, Hello, Refusal, Welcome
from overlay.wire.sizes import Sizes
from overlay.wire.writer import BatchWriter

if TYPE_CHECKING:
    from overlay.security.identity import Identity
    from overlay.security.rights import Rights

BOOK_SIZE = 100_000  # peers whose address is remembered
LOOK_EVERY = 1.0  # s between looks at links that did not wake up, to be safe
PARTING = 1.0  # s that a link listens after its Goodbye

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
        self.unread: dict[Link, None] = {}  # that have more to read than one tick takes
        self.stuck: dict[Link, None] = {}  # whose borrowed connection takes no more for now
        self.inbound: Inbound | None = None  # the connections that peers opened
        self._look_at = 0.0
        self._parting: dict[Link, float] = {}  # said Goodbye; closed at that time
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
        self._gone: dict[NodeId, None] = {}  # held to be dead since the last flush
        self.stopping = False
        self._tallies: Tallies | None = None

    def count_with(self, tallies: Tallies | None) -> None:
        """Have what leaves from now on counted, or not."""
        self._tallies = tallies
        for link in self:
            self._count(link)

    def _count(self, link: Link) -> None:
        link.count_with(None if self._tallies is None else partial(self._tallies.sent, link))

    # -- connections that peers opened --------------------------------------------------------

    def session_opened(self, session: Session, now: float) -> None:
        """A peer connected: what waits for it can leave that way."""
        self.heard_from(session.name, session.host)
        link = self.by_name.get(session.name)
        if link is not None and link.state in (State.WAITING, State.INTRODUCING) and not link.bulk:
            link.opened(session, now)
        self._announce(LinkUp(session.name), now)

    def linked(self, peer: NodeId) -> Session | None:
        """The open connection to that peer that this node opened."""
        link = self.by_name.get(peer)
        return None if link is None or link.borrowed else link.session

    def stir(self, peer: NodeId) -> None:
        """Send nothing over our own connection: one that is dead breaks by it."""
        link = self.by_name.get(peer)
        if link is not None and not link.borrowed:
            link.stir()

    def session_left(self, session: Session) -> None:
        """A connection of a peer ends; whoever lost it is told so by the one who noticed."""
        link = self.by_name.get(session.name)
        if link is None or link.session is not session or not link.borrowed:
            return
        now = self.now()
        link.give_back(now)
        link.lost = not session.leaving
        other = self._borrowable(link)
        if other is not None:
            link.opened(other, now)

    def _borrowable(self, link: Link) -> Session | None:
        """The peer's own connection; what may wait needs marks, and so a connection of ours."""
        if self.inbound is None or link.name is None or link.bulk:
            return None
        return self.inbound.session_of(link.name)

    def send_borrowed(self, session: Session, parts: Sequence[bytes | memoryview]) -> bool:
        """Send a frame over a peer's connection; False when that must wait."""
        assert self.inbound is not None
        for _ in range(2):  # a failed send may have taken notice that there is room again
            try:
                self.inbound.send(session, [*parts])
            except zmq.ZMQError:  # it reads too slowly, or is gone, as the monitor will tell
                continue
            return True
        return False

    def take(self, session: Session, parts: list[bytes], now: float) -> int:
        """Take in a frame that came over a connection of ours."""
        assert self.inbound is not None
        return self.inbound.take_answer(session, parts, now)

    def go_on(self, now: float) -> bool:
        """Read and send what did not fit into the last tick; True when there is still more."""
        if self.unread:
            unread, self.unread = self.unread, {}
            for link in unread:
                link.look(now)
        if self.stuck:
            for link in list(self.stuck):
                link.flush()
        return bool(self.unread)

    def recheck(self, now: float) -> None:
        """End links to peers whose certificate was revoked or expired."""
        for link in self:
            session = link.session
            if session is None or link.borrowed:
                continue
            key = self._keys.get(session.name) if self.trust.curve is not None else None
            try:
                self.trust.identify(session.certificate, session.name, key, self._unix_now())
            except RemoteProtocolError as error:
                self.refuse(link.who, error, 1)
                link.fail(error.reason, now)

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

    def udp_of(self, peer: NodeId) -> UdpAddress | None:
        """Where a peer takes datagrams, as far as the book knows."""
        return next(filter(None, (endpoint.udp for endpoint in self._book[peer])), None)

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
        link = Link(self, writer, name, candidates, self._rng, now)
        self._count(link)
        return link

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
        session = self._borrowable(link)
        if session is not None:
            link.opened(session, now)
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
        self.learn_identity(identity)
        link.opened(Session(b"", "", -1, identity, welcome, welcome.version, now), now)
        if link.name is None:  # there is one already; Goodbye tells its end from a loss
            self._part(link)
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
                self._count(link)
                previous.close(None, 0)
            link.name = name
            link.candidates = self._book[name]
            self.by_name[name] = link
        self._announce(PeerMet(name, tuple(map(str, self._book[name]))), now)

    def failed(self, link: Link, reason: str, was_open: bool, now: float) -> None:
        """An attempt or an open link broke; that no address answers is news, but only once."""
        closed = was_open or reason == NO_CONNECTION
        self.counts["links broken" if was_open else "attempts failed"] += 1
        if link.waiting or link.name is None:
            self.due(link.deadline)
        tried_all = link.attempts >= len(link.candidates)
        if link.name is not None and (was_open or tried_all) and not link.lost:
            link.lost = True
            self._announce(LinkLost(link.name, reason, closed), now)

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

    def give_up(self, peer: NodeId) -> None:
        """It is held to be dead: try no more to reach it, unless somebody writes to it again."""
        if peer in self.by_name:
            self._gone[peer] = None
            self.due(self.now())

    def _give_up_all(self) -> None:
        gone, self._gone = self._gone, {}
        for peer in gone:
            link = self.by_name.get(peer)
            if link is not None and link.state is not State.OPEN:
                self.counts["frames undelivered"] += link.discard()
                self._forget(link)

    def flush(self) -> None:
        """Send what waits on every link that was written to since the last flush."""
        dirty, self.dirty = self.dirty, []
        for link in dirty:
            link.dirty = False
            link.flush()

    def sweep(self, now: float) -> float:
        """Step every link and close idle ones; returns when something is due next."""
        due = now + 1.0
        self._give_up_all()
        if self._tallies is not None:
            self._tallies.look_for_drops(self)
        for link in [link for link, until in self._parting.items() if until <= now]:
            del self._parting[link]
            link.close(None, PARTING)
        look = now >= self._look_at  # while links are opened again, sweeps come by the dozen
        if look:
            self._look_at = now + LOOK_EVERY
        for link in self:
            self.step(link, now)
            if link.state is State.OPEN:
                if look:
                    link.look(now)
                link.remind(now)
                if now - link.used_at > self.net.idle_close and not link.waiting:
                    self._forget(link)
                continue
            if link.waiting_since is not None and now - link.waiting_since > self.net.give_up:
                self.counts["frames undelivered"] += link.discard()
                link.waiting_since = None
            if link.name is not None and not link.waiting and link.state is State.WAITING:
                if now - link.used_at > self.net.give_up:
                    self._forget(link)
                continue  # nobody waits for it: the next message opens it
            due = min(due, link.deadline)
        return due

    def _part(self, link: Link) -> None:
        link.part(Goodbye(idle=True))
        self._parting[link] = self.now() + PARTING

    def _forget(self, link: Link) -> None:
        """Nobody uses it: close it if it is ours to close."""
        if link.state is State.OPEN and not link.borrowed:
            self._part(link)
        else:
            link.close(None, 0)
        self.counts["messages dropped"] += link.writer.dropped  # they count although it is gone
        self.counts["bulk messages dropped"] += link.dropped_bulk
        if link.name is not None and self.by_name.get(link.name) is link:
            del self.by_name[link.name]
            self.counts["links closed"] += 1

    def close(self, linger: float) -> None:
        """Say goodbye on every open link and close all."""
        self.stopping = True
        for link in self._parting:
            link.close(None, linger)
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
