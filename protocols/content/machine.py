"""The state machine of one node: messages and commands in, ledgers and publications out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from random import Random
from typing import ClassVar

from msgspec.structs import replace

from overlay.errors import InvariantViolation, LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId
from overlay.predicates import Constraint, Item
from overlay.protocol import (
    Effects,
    Event,
    EventHandler,
    Handler,
    LinkLost,
    LinkUp,
    Message,
    OverlayProtocol,
)
from protocols.content.carrying import Carrier
from protocols.content.config import ContentSettings
from protocols.content.counts import ContentCounts
from protocols.content.events import (
    EVENTS,
    BrokerAttached,
    BrokerLost,
    ClientAttached,
    ClientGone,
    EntryRefused,
    NeighbourDown,
    NeighbourUp,
)
from protocols.content.hops import BROKER, CLIENT, Hop
from protocols.content.interface import (
    Advertised,
    EntryId,
    MayBe,
    Subscribed,
    anybody,
)
from protocols.content.ledger import packed
from protocols.content.messages import (
    MESSAGES,
    Again,
    Change,
    Greeting,
    Page,
    Publication,
    Refused,
    Role,
)
from protocols.content.moving import Moving
from protocols.content.own import OwnEntries
from protocols.content.reading import LedgerReader
from protocols.content.router import Router
from protocols.content.streams import SETTLE, Streams
from protocols.content.waiting import Waiting

BEAT = "beat"
TOLD_ONCE_IN = 0.2  # s: who asks twice at once is told once


class Content(OverlayProtocol):
    """One broker, or one client of a broker."""

    name: ClassVar[str] = "content"
    messages: ClassVar[tuple[type[Message], ...]] = MESSAGES
    emits: ClassVar[tuple[type[Event], ...]] = EVENTS

    config: ContentSettings

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: ContentSettings,
        *,
        links: Callable[[], Iterable[NodeId]] = tuple,
        may_be: MayBe = anybody,
    ) -> None:
        super().__init__(me, effects, rng, config)
        self.counts = ContentCounts()
        self._links = links  # that somebody else keeps: of discovery, or of the zone's topology
        self._may_be = may_be
        self._is_broker = config.role == BROKER
        self._wished: dict[NodeId, None] = dict.fromkeys(config.links)
        self._broker: NodeId = "" if self._is_broker else config.broker
        self._hops: dict[NodeId, Hop] = {}
        self._own = OwnEntries(me, effects, config)
        self.router = Router(me, is_broker=self._is_broker, counts=self.counts, emit=effects.emit)
        self._reader = LedgerReader(self.router, effects, config, self.counts)
        self._carrier = Carrier(me, effects, self.router, self._hops, self.counts)
        self._streams = Streams(effects, config, self.counts)
        self._waiting: Waiting | None = None  # this client's publications between two brokers
        self.moving = Moving(self.router, self._hops, self._streams, self._flush_later)

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """One handler for each message of the table in the package's docstring."""
        return {
            Greeting: self._on_greeting,
            Change: self._on_change,
            Again: self._on_again,
            Page: self._on_page,
            Publication: self._on_publication,
            Refused: self._on_refused,
        }

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """Hints about links."""
        return {LinkUp: self._on_link_up, LinkLost: self._on_link_lost}

    # -- the view -------------------------------------------------------------------------------

    @property
    def is_broker(self) -> bool:
        """See ContentView."""
        return self._is_broker

    @property
    def broker(self) -> NodeId | None:
        """See ContentView."""
        if self._is_broker:
            return self.me
        hop = self._hops.get(self._broker)
        return self._broker if hop is not None and hop.is_up else None

    def neighbours(self) -> tuple[NodeId, ...]:
        """See ContentView."""
        return self._with_role(BROKER)

    def clients(self) -> tuple[NodeId, ...]:
        """See ContentView."""
        return self._with_role(CLIENT)

    def _with_role(self, role: Role) -> tuple[NodeId, ...]:
        return tuple(name for name, hop in self._hops.items() if hop.is_up and hop.role == role)

    def is_client(self, hop: NodeId) -> bool:
        """See ContentView."""
        return hop == self.me or (hop in self._hops and self._hops[hop].role == CLIENT)

    def advertisement(self, entry: EntryId) -> Advertised | None:
        """See ContentView."""
        return self.router.srt.get(entry)

    def advertisements(
        self, constraint: Constraint | None = None, model: str = ""
    ) -> Iterator[Advertised]:
        """See ContentView."""
        if constraint is not None:
            yield from self.router.srt.intersecting(constraint, model)
        else:
            yield from (one for one in self.router.srt if one.model == model)

    def subscriptions(self, hop: NodeId | None = None) -> Iterator[Subscribed]:
        """See ContentView."""
        return (row for row in self.router.prt if hop is None or row.hop == hop)

    # -- commands -------------------------------------------------------------------------------

    def advertise(
        self,
        name: str,
        constraint: Constraint,
        now: float,
        *,
        model: str = "",
        note: bytes = b"",
        whole: bool = False,
    ) -> EntryId:
        """See ContentRouter."""
        offer = self._own.advertise(name, constraint, model, whole, note, now)
        self.router.offer(offer)
        self._flush_later()
        return offer.id

    def unadvertise(self, name: str, now: float) -> None:
        """See ContentRouter."""
        self.router.retract(self._own.unadvertise(name), self.me)
        self._flush_later()

    def subscribe(
        self, name: str, constraint: Constraint, now: float, *, model: str = ""
    ) -> EntryId:
        """See ContentRouter."""
        row = self._own.subscribe(name, constraint, model)
        self.router.want(row)
        self._flush_later()
        return row.id

    def unsubscribe(self, name: str, now: float) -> None:
        """See ContentRouter."""
        self.router.unwant(self._own.unsubscribe(name), self.me)
        self._flush_later()

    def publish(self, name: str, item: Item, now: float) -> int:
        """See ContentRouter."""
        if self._waiting is not None:
            self._waiting.check_room()
        msg = self._own.publish(name, item)
        self.counts.published += 1
        self._carrier.rows.published(msg)
        if self._waiting is not None:
            self._waiting.put(msg)
            self.counts.waited += 1
        else:
            self._carrier.hand_on(self._streams.take(self.me, msg, now))
        return msg.sequence

    def link(self, peer: NodeId, now: float) -> None:
        """Be a neighbour of that broker from now on."""
        if not self._is_broker:
            raise LocalProtocolError(f"{self.me} is a client: use attach")
        if peer == self.me:
            raise LocalProtocolError(f"{self.me} is no neighbour of itself: name another broker")
        self._wished[peer] = None
        self._greet(peer, reply=True)

    def unlink(self, peer: NodeId, now: float) -> None:
        """Be its neighbour no more, until it greets again."""
        self._wished.pop(peer, None)
        if peer in self._hops:
            self._greet(peer, lease=0.0)
            self._lose(peer, now)

    def attach(self, broker: NodeId, now: float, *, graft: bool = False, epoch: int = 0) -> None:
        """Have that broker from now on: it is told everything, in a new epoch.

        With `graft` it may use the trees that there are; `epoch` is one of `next_epoch`.
        """
        if self._is_broker:
            raise LocalProtocolError(f"{self.me} is a broker: use link")
        if broker == self.me:
            raise LocalProtocolError(f"{self.me} is no broker: name one, or run `overlay broker`")
        if broker == self._broker:
            return
        self.detach(now)
        self._broker = broker
        for offer in self._own.again(now, graft=graft, epoch=epoch):
            self.router.offer(offer)
        self._beat(now)

    def detach(self, now: float) -> None:
        """Have no broker."""
        if self._broker in self._hops:
            self._greet(self._broker, lease=0.0)
            self._lose(self._broker, now)
        self._broker = ""

    def next_epoch(self, now: float) -> int:
        """An epoch for the next `attach`, to be told to a broker in advance."""
        return self._own.epochs.next(now)

    def stand_alone(self) -> None:
        """See MobileContent."""
        self._own.alone = True

    def rooted(self, entry: EntryId, epoch: int) -> None:
        """See MobileContent."""
        self._own.rooted(entry, epoch)

    def hold(self, most: int) -> None:
        """Keep publications of this client until `let_go`; over that bound `publish` refuses."""
        if self._waiting is None:
            self._waiting = Waiting(most)

    def let_go(self, now: float) -> int:
        """Publish what was kept, in its order and in today's epochs; how many."""
        waiting, self._waiting = self._waiting, None
        kept = [] if waiting is None else waiting.kept
        for msg in kept:
            epoch = self._own.epoch(msg.advertisement)
            if epoch is None:
                self.counts.withdrawn += 1
                continue
            today = replace(msg, epoch=epoch)
            self._carrier.hand_on(self._streams.take(self.me, today, now))
        return len(kept)

    def told(self, peer: NodeId) -> tuple[int, int]:
        """How far this node's ledger for a neighbour, or for its broker, has come: all is sent."""
        self._flush_one(peer)
        reader = self.router.readers.get(peer)
        return (0, 0) if reader is None else (reader.ledger.series, reader.ledger.stamp)

    def expel(self, client: NodeId, now: float) -> None:
        """A client is with another broker: what it told goes, as if it had left."""
        hop = self._hops.get(client)
        if hop is not None and hop.role == CLIENT:
            self._lose(client, now)

    # -- greetings ------------------------------------------------------------------------------

    def _on_greeting(self, src: NodeId, msg: Greeting, now: float) -> None:
        if not msg.lease:
            self._lose(src, now)
            return
        known = self._hops.get(src)
        if known is not None and known.role != msg.role:
            self._lose(src, now)
            known = None
        hop = known or self._admit(src, msg.role)
        if hop is None:
            return
        news = known is None
        if msg.hears and not hop.is_up:
            self._raise(src, hop)
            news = True
        if msg.hears or not hop.is_up:  # who does not hear this node any more is let go
            lease = self.config.lease if hop.role == BROKER else self.config.client_lease
            hop.expires = now + min(msg.lease, lease)
        if msg.reply or news:
            self._greet(src)
        if hop.is_up:
            self._reader.compare(src, hop, msg, now)

    def _admit(self, src: NodeId, role: Role) -> Hop | None:
        """Hear a node that may become a neighbour, a client, or is this client's broker."""
        if not self._is_broker and (src != self._broker or role != BROKER):
            self.counts.strays += 1
            return None
        if role == BROKER and not self._may_be(src, BROKER):
            raise RemoteProtocolError("content-no-right", f"{src} may not be a broker")
        others = sum(hop.role == role for hop in self._hops.values())
        most = self.config.max_links if role == BROKER else self.config.max_clients
        if others >= most:
            self.counts.refused_peers += 1
            self.effects.send(src, Refused(f"{others} {role}s are linked already"))
            return None
        hop = self._hops[src] = Hop(role, self.config)
        return hop

    def _raise(self, src: NodeId, hop: Hop) -> None:
        """Both hear each other: the link is up."""
        hop.is_up = True
        if hop.role == BROKER:
            self.router.add_reader(src, self.rng.getrandbits(61) + 1)
            self.effects.emit(NeighbourUp(src) if self._is_broker else BrokerAttached(src))
        else:
            self.effects.emit(ClientAttached(src))

    def _greet(self, peer: NodeId, *, reply: bool = False, lease: float | None = None) -> None:
        self._flush_one(peer)  # so that count and digest fit together
        reader = self.router.readers.get(peer)
        series, stamp, digest = 0, 0, 0
        if reader is not None:
            ledger = reader.ledger
            series, stamp, digest = ledger.series, ledger.stamp, ledger.digest
        if lease is None:
            lease = self.config.lease if self._is_broker else self.config.client_lease
        role = BROKER if self._is_broker else CLIENT
        hears = peer in self._hops
        self.effects.send(peer, Greeting(role, lease, series, stamp, packed(digest), hears, reply))

    def _beat(self, now: float) -> None:
        for peer in [name for name, hop in self._hops.items() if hop.expires <= now]:
            self._lose(peer, now)
        if not self._is_broker:
            if not self._broker:
                return  # a node that has nothing to do with brokers costs nothing
            self._greet(self._broker, reply=True)
        else:
            linked = [name for name, hop in self._hops.items() if hop.role == BROKER]
            for peer in dict.fromkeys((*self._wished, *self._links(), *linked)):
                if peer != self.me:
                    self._greet(peer, reply=peer not in self._hops)
        self.effects.set_timer(BEAT, now + self.config.beat * self.rng.uniform(0.9, 1.1))

    def _on_link_up(self, event: LinkUp, now: float) -> None:
        wished = (*self._wished, *self._links()) if self._is_broker else (self._broker,)
        if event.peer in wished and event.peer != self.me:
            self._greet(event.peer, reply=True)

    def _on_link_lost(self, event: LinkLost, now: float) -> None:
        hop = self._hops.get(event.peer)
        if hop is not None and hop.role == BROKER:
            hop.expires = min(hop.expires, now + self.config.patience)
            self._greet(event.peer, reply=True)

    def _lose(self, peer: NodeId, now: float) -> None:
        """It left or is silent: everything that it told goes."""
        hop = self._hops.pop(peer, None)
        if hop is None:
            return
        if not hop.is_up:
            return
        self.router.remove_reader(peer)
        self._reader.forget(peer, hop)
        self._carrier.hand_on(self._streams.gone(peer))
        if hop.role == CLIENT:
            self.counts.clients_lost += 1
            self.effects.emit(ClientGone(peer))
        else:
            self.counts.neighbours_lost += 1
            self.effects.emit(NeighbourDown(peer) if self._is_broker else BrokerLost(peer))
        self._flush_later()

    # -- ledgers --------------------------------------------------------------------------------

    def _on_change(self, src: NodeId, msg: Change, now: float) -> None:
        hop = self._teller(src)
        if hop is not None:
            self._reader.change(src, hop, msg, now)
            self._flush_later()

    def _on_page(self, src: NodeId, msg: Page, now: float) -> None:
        hop = self._teller(src)
        if hop is not None:
            self._reader.page(src, hop, msg, now)
            self._flush_later()

    def _teller(self, src: NodeId) -> Hop | None:
        """Who may tell: a broker tells its clients nothing."""
        hop = self._hops.get(src) if self._is_broker else None
        if hop is None or not hop.is_up:
            self.counts.strays += 1
            return None
        return hop

    def _on_again(self, src: NodeId, msg: Again, now: float) -> None:
        reader = self.router.readers.get(src)
        if reader is None:
            self.counts.strays += 1
            return
        ledger = reader.ledger
        if now - ledger.told_whole_at < min(self.config.beat / 4, TOLD_ONCE_IN):
            return  # it was told a moment ago
        ledger.told_whole_at = now
        self.counts.wholes += 1
        for page in ledger.whole(self.config.page_bytes):
            self.effects.send(src, page)

    def _flush_later(self) -> None:
        self.effects.at_tick_end(self._flush)

    def _flush(self, now: float) -> None:
        for peer in self.router.readers:
            self._flush_one(peer)

    def _flush_one(self, peer: NodeId) -> None:
        reader = self.router.readers.get(peer)
        if reader is not None and reader.ledger.pending:
            for change in reader.ledger.changes(self.config.page_bytes):
                self.counts.changes += 1
                self.counts.lines += len(change.advertisements) + len(change.unadvertised)
                self.counts.lines += len(change.subscriptions) + len(change.unsubscribed)
                self.effects.send(peer, change)

    def _on_refused(self, src: NodeId, msg: Refused, now: float) -> None:
        if src not in self._hops and src != self._broker and src not in self._wished:
            self.counts.strays += 1
            return
        self.effects.emit(EntryRefused(src, msg.reason, msg.id))

    # -- publications ---------------------------------------------------------------------------

    def _on_publication(self, src: NodeId, msg: Publication, now: float) -> None:
        hop = self._hops.get(src)
        if hop is None or not hop.is_up:
            self.counts.strays += 1
            return
        checked = self._carrier.checked(src, hop, msg)
        self._carrier.hand_on(self._streams.take(src, checked, now))

    # -- life -----------------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Greet the neighbours, or the broker."""
        self._own.epochs.start(kept)
        self._beat(now)

    def on_timer(self, key: Hashable, now: float) -> None:
        """Greet again, or hand on what waited."""
        if key == BEAT:
            self._beat(now)
        elif isinstance(key, tuple) and key[0] == SETTLE:
            self._carrier.hand_on(self._streams.due(key[1]))

    def on_stop(self, now: float) -> None:
        """Say goodbye."""
        for peer in self._hops:
            self._greet(peer, lease=0.0)

    def check_invariants(self) -> None:
        """Everything is bounded; the routing itself is audited by tests."""
        self._streams.check()
        for peer, hop in self._hops.items():
            if hop.advertisements > hop.room.advertisements:
                raise InvariantViolation(f"{self.me}: {peer} told too many advertisements")
            if hop.subscriptions > hop.room.subscriptions:
                raise InvariantViolation(f"{self.me}: {peer} told too many subscriptions")
        if len(self.neighbours()) > self.config.max_links:
            raise InvariantViolation(f"{self.me}: {len(self.neighbours())} neighbours")
