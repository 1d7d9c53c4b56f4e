"""The state machine of one node: messages and commands in, ledgers and publications out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from random import Random
from typing import ClassVar

from overlay.errors import InvariantViolation, LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId
from overlay.predicates import Constraint, Item, check_item, determines
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
    entry_id,
)
from protocols.content.ledger import packed
from protocols.content.messages import (
    MAX_MODEL,
    MAX_NAME,
    MAX_NOTE,
    MESSAGES,
    Again,
    Change,
    Greeting,
    Page,
    Publication,
    Refused,
    Role,
)
from protocols.content.own import OwnAdvertisement
from protocols.content.reading import LedgerReader
from protocols.content.router import Router
from protocols.content.streams import SETTLE, Streams

BEAT = "beat"
EPOCHS_PER_SECOND = 1000


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
        self._own: dict[EntryId, OwnAdvertisement] = {}
        self._subscribed = 0
        self._epoch = 0
        self.router = Router(me, is_broker=self._is_broker, counts=self.counts, emit=effects.emit)
        self._reader = LedgerReader(self.router, effects, config, self.counts)
        self._carrier = Carrier(me, effects, self.router, self._hops, self.counts)
        self._streams = Streams(effects, config, self.counts)

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
        entry = self._check_entry(name, model)
        if len(note) > MAX_NOTE:
            raise LocalProtocolError(f"a note of {len(note)} bytes: at most {MAX_NOTE}")
        before = self._own.get(entry)
        if before is None and len(self._own) >= self.config.client_advertisements:
            raise LocalProtocolError(
                f"{len(self._own)} advertisements: withdraw some, or raise"
                " content.client_advertisements"
            )
        if before is not None and before.says(constraint, model, whole, note):
            return entry
        own = OwnAdvertisement(constraint, model, whole, note, self._next_epoch(now))
        if before is not None:
            own.sequence = before.sequence
        self._own[entry] = own
        self._offer_own(entry, own)
        return entry

    def unadvertise(self, name: str, now: float) -> None:
        """See ContentRouter."""
        entry = entry_id(self.me, name)
        if self._own.pop(entry, None) is None:
            raise LocalProtocolError(f"{name!a} is not advertised by {self.me}")
        self.router.retract(entry, self.me)
        self._flush_later()

    def subscribe(
        self, name: str, constraint: Constraint, now: float, *, model: str = ""
    ) -> EntryId:
        """See ContentRouter."""
        entry = self._check_entry(name, model)
        is_new = self.me not in self.router.prt.rows(entry)
        if is_new and self._subscribed >= self.config.client_subscriptions:
            raise LocalProtocolError(
                f"{self._subscribed} subscriptions: end some, or raise content.client_subscriptions"
            )
        self._subscribed += is_new
        self.router.want(Subscribed(entry, constraint, model, self.me))
        self._flush_later()
        return entry

    def unsubscribe(self, name: str, now: float) -> None:
        """See ContentRouter."""
        entry = entry_id(self.me, name)
        if self.me not in self.router.prt.rows(entry):
            raise LocalProtocolError(f"{name!a} is not subscribed to by {self.me}")
        self._subscribed -= 1
        self.router.unwant(entry, self.me)
        self._flush_later()

    def publish(self, name: str, item: Item, now: float) -> int:
        """See ContentRouter."""
        entry = entry_id(self.me, name)
        own = self._own.get(entry)
        if own is None:
            raise LocalProtocolError(f"{name!a} is not advertised by {self.me}: advertise it first")
        checked = check_item(item)
        if not determines(own.constraint, checked):
            raise LocalProtocolError(
                f"the advertisement {name!a} does not determine the item: it is {own.constraint}"
            )
        own.sequence += 1
        self.counts.published += 1
        msg = Publication(entry, own.epoch, own.sequence, checked, own.model)
        self._carrier.rows.published(msg)
        self._carrier.hand_on(self._streams.take(self.me, msg, now))
        return own.sequence

    def link(self, peer: NodeId, now: float) -> None:
        """Be a neighbour of that broker from now on."""
        if not self._is_broker:
            raise LocalProtocolError(f"{self.me} is a client: use attach")
        self._wished[peer] = None
        self._greet(peer, reply=True)

    def unlink(self, peer: NodeId, now: float) -> None:
        """Be its neighbour no more, until it greets again."""
        self._wished.pop(peer, None)
        if peer in self._hops:
            self._greet(peer, lease=0.0)
            self._lose(peer, now)

    def attach(self, broker: NodeId, now: float) -> None:
        """Have that broker from now on: it is told everything, in a new epoch."""
        if self._is_broker:
            raise LocalProtocolError(f"{self.me} is a broker: use link")
        if broker == self._broker:
            return
        self.detach(now)
        self._broker = broker
        for entry, own in self._own.items():
            own.epoch = self._next_epoch(now)
            self._offer_own(entry, own)
        self._beat(now)

    def detach(self, now: float) -> None:
        """Have no broker."""
        if self._broker in self._hops:
            self._greet(self._broker, lease=0.0)
            self._lose(self._broker, now)
        self._broker = ""

    def _check_entry(self, name: str, model: str) -> EntryId:
        if not name or len(name.encode()) > MAX_NAME:
            raise LocalProtocolError(f"a name of {len(name)} characters: give 1 to {MAX_NAME}")
        if len(model) > MAX_MODEL:
            raise LocalProtocolError(f"a model of {len(model)} characters: at most {MAX_MODEL}")
        return entry_id(self.me, name)

    def _next_epoch(self, now: float) -> int:
        """Later than any before, also of an earlier life: the node's clock is Unix time."""
        self._epoch = max(self._epoch + 1, int(now * EPOCHS_PER_SECOND))
        return self._epoch

    def _offer_own(self, entry: EntryId, own: OwnAdvertisement) -> None:
        self.router.offer(own.offer(entry, self.me))
        self._flush_later()

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
        if now - ledger.told_whole_at < self.config.beat / 4:
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
