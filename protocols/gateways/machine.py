"""The state machine of gateways: its parts, and which input goes to which."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from random import Random
from typing import Any, ClassVar

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId, Vid
from overlay.protocol import (
    ContactLearned,
    Effects,
    Event,
    EventHandler,
    Handler,
    Message,
    OverlayProtocol,
)
from protocols.gateways.checking import ZONE
from protocols.gateways.config import GatewaysSettings
from protocols.gateways.core import FLUSH, Core
from protocols.gateways.counts import GatewaysCounts
from protocols.gateways.covering import Covering, read_patterns
from protocols.gateways.declaring import Declarer
from protocols.gateways.delegating import Envoy
from protocols.gateways.events import (
    GatewayAppointed,
    GatewayDismissed,
    GatewayMoved,
    GatewaysChanged,
    TopicKnown,
    TopicUnknown,
)
from protocols.gateways.homing import VERSED, Home
from protocols.gateways.interface import PATTERNS, May, RemoteGateway
from protocols.gateways.ledger import PUBLISHES, Book, Stake
from protocols.gateways.messages import (
    MESSAGES,
    LedgerAgreed,
    LedgerChange,
    LedgerDigest,
    LedgerPage,
    LedgerRequest,
    TopicAnswer,
    TopicRequest,
)
from protocols.gateways.questions import QUESTION, Questions
from protocols.gateways.reading import EXPIRE, FETCH, LINGER, Reader
from protocols.gateways.standing import Gatekeeper
from protocols.gateways.writing import COMPARE, Writer
from protocols.membership.events import (
    AttributesChanged,
    MemberFailed,
    MemberJoined,
    MemberLeft,
)
from protocols.membership.interface import MembershipView
from protocols.zones.events import (
    DelegateAppointed,
    DelegateDismissed,
    ZoneAppeared,
    ZoneChanged,
    ZoneVanished,
)
from protocols.zones.interface import MANAGEMENT, ZoneDirectory, ZoneMembership

REVIEW = "review"


class Gateways(OverlayProtocol):
    """One per node, in the node's own scope; implements `GatewayBook`.

    `base` is the view of this node's zone; without it the node is a supervisor, and only a home.
    `may` tells what a name's certificate allows; without it everybody may everything.
    """

    name: ClassVar[str] = "gateways"
    messages: ClassVar[tuple[type[Message], ...]] = MESSAGES
    emits: ClassVar[tuple[type[Event], ...]] = (
        GatewayMoved,
        GatewayAppointed,
        GatewayDismissed,
        GatewaysChanged,
        TopicKnown,
        TopicUnknown,
        ContactLearned,
    )

    config: GatewaysSettings

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: GatewaysSettings,
        *,
        base: MembershipView | None = None,
        zones: ZoneDirectory,
        may: May | None = None,
    ) -> None:
        super().__init__(me, effects, rng, config)
        self._core = core = Core(me, effects, rng, config, base, zones, may, self._hear_myself)
        self._covering = Covering()
        self._reader = Reader(core)
        self._writer = Writer(core)
        self._declarer = Declarer(core, self._writer)
        self._gatekeeper = Gatekeeper(core, self._reader, self._writer, self._covering)
        self._envoy = Envoy(core, self._reader, self._writer, self._covering)
        self._home = Home(core, self._reader, self._writer)
        self._questions = Questions(core, self._home)
        self._inside: ZoneMembership | None = None  # the management zone, as it was last seen
        self._fellows: dict[NodeId, None] = {}  # who came or went since the last review
        self._managers: dict[NodeId, None] = {}
        self._patterns_changed = False
        self._handlers: dict[type[Message], Handler] = {
            LedgerChange: self._attended(self._reader.on_change),
            LedgerDigest: self._attended(self._reader.on_digest),
            LedgerPage: self._attended(self._reader.on_page),
            LedgerAgreed: self._attended(self._writer.on_agreed),
            LedgerRequest: self._attended(self._writer.on_request),
            TopicRequest: self._attended(self._questions.on_request),
            TopicAnswer: self._attended(self._questions.on_answer),
        }
        self._hearers: dict[type[Event], EventHandler] = {
            MemberJoined: self._heard(self._on_joined),
            MemberFailed: self._heard(self._on_gone),
            MemberLeft: self._heard(self._on_gone),
            AttributesChanged: self._heard(self._on_attributes),
            **dict.fromkeys(
                (ZoneAppeared, ZoneChanged, ZoneVanished, DelegateAppointed, DelegateDismissed),
                self._heard(self._on_zones),
            ),
        }

    # -- what siblings and the application see --------------------------------------------------

    @property
    def counts(self) -> GatewaysCounts:
        """What happened since the start."""
        return self._core.counts

    @property
    def delegate(self) -> NodeId | None:
        """With whom this node registers topics; None: there is no other zone, or no delegate."""
        return self._gatekeeper.delegate

    @property
    def lines_held(self) -> int:
        """How many lines peers keep for this node, in all books."""
        return len(self._reader)

    @property
    def open_questions(self) -> int:
        """How many questions, of this node and forwarded ones, wait for an answer."""
        return len(self._questions)

    def topics_held(self) -> tuple[str, ...]:
        """The topics that this node is the gateway of."""
        return tuple(self._gatekeeper.held)

    def home_of(self) -> Mapping[str, Mapping[NodeId, Stake]]:
        """The topics that this node is the home of, and their gateways."""
        return self._home.topics

    def declare(self, topic: str, *, publishes: bool, subscribes: bool, now: float) -> None:
        """Tell what this node does with a topic, from now on; neither: it withdraws."""
        self._running(now)
        self._declarer.declare(topic, publishes=publishes, subscribes=subscribes, now=now)

    def gateway_of(self, topic: str) -> NodeId | None:
        """The topic's gateway in this node's zone; None on a supervisor."""
        return self._declarer.gateway_of(topic)

    def is_gateway(self, topic: str) -> bool:
        """Whether this node is the topic's gateway, and somebody in the zone is interested."""
        return topic in self._gatekeeper.held

    def remote_gateways(self, topic: str) -> Mapping[NodeId, RemoteGateway]:
        """At the topic's gateway: the gateways of all other interested zones."""
        return self._gatekeeper.remote(topic)

    def knows_remote(self, topic: str) -> bool:
        """Whether `remote_gateways` is what a home told, or there are no other zones."""
        return self._gatekeeper.knows_remote(topic)

    def local_publishers(self, topic: str) -> tuple[NodeId, ...]:
        """At the topic's gateway: the members of this zone that declared to publish to it."""
        return tuple(self._gatekeeper.declared(topic, PUBLISHES))

    def local_subscribers(self, topic: str) -> tuple[NodeId, ...]:
        """At the topic's gateway: those that subscribe to it, by name or perhaps by pattern."""
        return tuple(self._gatekeeper.subscribers(topic))

    def ask_topic(self, topic: str | Vid, now: float) -> int:
        """Ask for the name of an id, or by a name for the zones; the id returned is in one
        TopicKnown or TopicUnknown."""
        self._running(now)
        return self._questions.ask(topic, now)

    def _running(self, now: float) -> None:
        if self._core.stopped:
            raise LocalProtocolError(f"{self.me} does not run: start it first")
        self._core.timers.notice(now)

    # -- life -----------------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Begin to follow the views."""
        core = self._core
        core.stopped = False
        core.timers.notice(now)
        core.begin(now)
        if core.base is not None:
            core.fellows.fill(core.base)
            for name in core.base.members():
                self._look_at_patterns(name)
        self._review_soon(now)

    def on_stop(self, now: float) -> None:
        """Stop following; the memberships say goodbye, and that takes this node's lines along."""
        self._core.stopped = True
        self._core.timers.cancel_all()

    # -- inputs ---------------------------------------------------------------------------------

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """One handler for each message of the table in the package's docstring."""
        return self._handlers

    def _attended(self, handler: Handler) -> Handler:
        core = self._core

        def attend(src: NodeId, message: Any, now: float) -> None:
            if not core.stopped:
                core.timers.notice(now)
                handler(src, message, now)

        return attend

    def _hear_myself(self, message: Message, now: float) -> None:
        self._handlers[type(message)](self.me, message, now)

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """Changes of both views, of delegates and of zones."""
        return self._hearers

    def _heard(self, hearer: EventHandler) -> EventHandler:
        core = self._core

        def hear(event: Any, now: float) -> None:
            if not core.stopped:
                core.timers.notice(now)
                hearer(event, now)

        return hear

    def _on_joined(self, event: MemberJoined, now: float) -> None:
        if event.zone == MANAGEMENT:
            self._managers[event.member] = None
        elif event.zone == self._core.zone:
            self._fellows[event.member] = None
            self._look_at_patterns(event.member)
        else:
            return
        self._writer.greet(event.member, now)
        self._review_soon(now)

    def _on_gone(self, event: MemberFailed | MemberLeft, now: float) -> None:
        name = event.member
        if event.zone == MANAGEMENT:
            self._managers[name] = None
            for book in (Book.INTERESTS, Book.REPLICAS, Book.EXISTING):
                self._reader.doubt_all(book, name, now)
        elif event.zone == self._core.zone:
            self._fellows[name] = None
            self._look_at_patterns(name)
            self._reader.drop(Book.DECLARATIONS, name, now)
            self._reader.drop(Book.REGISTRATIONS, name, now)
            self._reader.doubt_all(Book.PROSPECTS, name, now)
        else:
            return
        self._review_soon(now)

    def _on_attributes(self, event: AttributesChanged, now: float) -> None:
        if event.zone == MANAGEMENT:
            if ZONE in event.keys or PATTERNS in event.keys:
                self._review_soon(now)
        elif event.zone == self._core.zone and PATTERNS in event.keys:
            self._look_at_patterns(event.member)
            self._review_soon(now)

    def _on_zones(self, _event: Event, now: float) -> None:
        self._review_soon(now)

    def _look_at_patterns(self, name: NodeId) -> None:
        view = self._core.base
        assert view is not None
        said = view.attributes(name).get(PATTERNS) if name in view else None
        patterns, good = read_patterns(said)
        self._core.counts.bad_patterns += not good
        if self._covering.put(name, patterns):
            self._patterns_changed = True

    def _review_soon(self, now: float) -> None:
        core = self._core
        if REVIEW not in core.timers:
            core.timers.set(REVIEW, now + core.settings.review_delay)

    # -- what is due ----------------------------------------------------------------------------

    def on_timer(self, key: Hashable, now: float) -> None:
        """Something is due."""
        core = self._core
        if core.stopped:
            return
        core.timers.notice(now)
        if not core.timers.rings(key):
            return
        if key == FLUSH:
            self._flush(now)
        elif key == REVIEW:
            self._review(now)
        elif key == VERSED:
            self._home.on_versed_alarm(now)
        elif isinstance(key, tuple):
            if key[0] == QUESTION:
                self._questions.on_timeout(key[1], now)
            else:
                kind, book, peer = key
                self._on_ledger_alarm(kind, book, peer, now)

    def _on_ledger_alarm(self, kind: str, book: Book, peer: NodeId, now: float) -> None:
        if kind == COMPARE:
            self._writer.on_compare_alarm(book, peer, now)
            if book is Book.REGISTRATIONS:
                self._gatekeeper.review(now)  # it may be silent
        elif kind == EXPIRE:
            self._reader.on_expire_alarm(book, peer, now)
        elif kind == FETCH:
            self._reader.on_fetch_alarm(book, peer, now)
        elif kind == LINGER:
            self._reader.on_linger_alarm(book, peer, now)

    def _flush(self, now: float) -> None:
        """Look at every topic of which something is new, then tell what follows from it."""
        self._look_inside(now)
        declared = {**self._taken(Book.DECLARATIONS), **self._taken(Book.PROSPECTS)}
        self._gatekeeper.settle(declared, now)
        self._gatekeeper.settle_rosters(self._taken(Book.ROSTERS))
        self._envoy.settle(self._taken(Book.REGISTRATIONS), now)
        self._envoy.settle_existing(self._taken(Book.EXISTING), now)
        told = {**self._taken(Book.INTERESTS), **self._taken(Book.REPLICAS)}
        self._home.settle(told, now)
        self._writer.flush(now)

    def _taken(self, book: Book) -> dict[str, None]:
        touched, self._core.touched[book] = self._core.touched[book], {}
        return touched

    def _review(self, now: float) -> None:
        """Follow both views, and everything that hangs on them."""
        core = self._core
        self._look_inside(now)
        management = self._inside
        fellows, self._fellows = self._fellows, {}
        if core.base is not None and fellows:
            new, gone = core.fellows.follow(core.base, fellows)
            self._declarer.follow(new, gone, now)
            self._envoy.follow_fellows(new, gone, now)
        managers, self._managers = self._managers, {}
        if management is not None and managers:
            new, gone = core.managers.follow(management.view, managers)
            if new or gone:
                self._envoy.follow_managers(new, gone, now)
                self._home.follow(now, grew=bool(gone))
            for name in gone:
                for book in (Book.REPLICAS, Book.EXISTING):
                    self._writer.drop(book, name)
        if self._patterns_changed:
            self._patterns_changed = False
            for topic in self._reader.topics(Book.PROSPECTS):
                core.touch(Book.PROSPECTS, topic, now)
            self._envoy.publish(now)
        self._gatekeeper.review(now)
        self._home.review_zones(now)

    def _look_inside(self, now: float) -> None:
        """See whether this node entered the management zone, or left it: nobody says so."""
        core = self._core
        management = core.zones.management
        if management is self._inside:
            return
        if self._inside is not None:
            core.managers.clear()
            for book in (Book.INTERESTS, Book.REPLICAS, Book.ROSTERS, Book.EXISTING):
                self._writer.drop_book(book)
            for book in (Book.INTERESTS, Book.REPLICAS, Book.EXISTING):
                self._reader.drop_book(book, now)
                core.touched[book].clear()
            self._envoy.left(now)
            self._home.left()
        self._inside = management
        if management is not None:
            core.managers.fill(management.view)
            self._managers.clear()
            self._envoy.entered(now)
            self._home.entered(now)

    # -- invariants -----------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """See the package's docstring."""
        if not self._core.stopped:
            self._reader.check()
            self._writer.check()
            self._questions.check()
            self._gatekeeper.check()
            self._home.check()

    def audit(self) -> None:
        """Check everything, at a cost that grows with the topics: for the end of a scenario."""
        if not self._core.stopped:
            self.check_invariants()
            self._reader.audit()
            self._writer.audit()
