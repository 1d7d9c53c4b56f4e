"""The state machine of zones: its parts, and which input goes to which."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from random import Random
from typing import Any, ClassVar

from overlay.errors import InvariantViolation, LocalProtocolError
from overlay.ids import NodeId
from overlay.protocol import (
    ContactLearned,
    Effects,
    Event,
    EventHandler,
    Handler,
    Message,
    OverlayProtocol,
    PeerMet,
    Scope,
)
from protocols.membership.events import (
    AttributesChanged,
    MemberFailed,
    MemberJoined,
    MemberLeft,
    NameTaken,
)
from protocols.zones.config import ZonesSettings
from protocols.zones.contacts import CONTACTS, ContactBook
from protocols.zones.core import Core, MayBe, MayJoin
from protocols.zones.counts import ZonesCounts
from protocols.zones.directory import CLAIM_KEYS, DIRECTORY, VANISH, Directory
from protocols.zones.events import (
    DelegateAppointed,
    DelegateDismissed,
    ZoneAppeared,
    ZoneChanged,
    ZoneMembersKnown,
    ZoneMembersUnknown,
    ZoneVanished,
)
from protocols.zones.interface import ZoneEntry, ZoneMembership
from protocols.zones.messages import (
    MESSAGES,
    Contacts,
    ContactsRequest,
    MembersDenied,
    MembersPage,
    MembersRequest,
    RosterDigest,
    TablePage,
    TableRequest,
)
from protocols.zones.naming import MANAGEMENT, check_zone_name
from protocols.zones.office import APPOINT, DISMISS, ELECTION, UNBAR, Office
from protocols.zones.publishing import PUBLISH, Publisher, presentation
from protocols.zones.questions import QUESTION, Questions
from protocols.zones.rosters import ANNOUNCE, CALL, Rosters
from protocols.zones.seeking import SEEK, Seeker
from protocols.zones.tables import POLL, POLL_TIMEOUT, Tables

REUNION_TRIES = 4  # until the next look for the rest of the zone


def _anybody(_name: NodeId, _what: str) -> bool:
    return True


class Zones(OverlayProtocol):
    """One per node, in the node's own scope; implements `ZoneDirectory`.

    `base` is the membership of this node's zone; without it, the node is a supervisor. The
    membership of the management zone is handed over by `enter_management` whenever the recipe
    has started it. `contacts` are nodes that may know the management zone; `may_join` and
    `may_be` tell what a name's certificate allows.
    """

    name: ClassVar[str] = "zones"
    messages: ClassVar[tuple[type[Message], ...]] = MESSAGES
    emits: ClassVar[tuple[type[Event], ...]] = (
        ZoneAppeared,
        ZoneChanged,
        ZoneVanished,
        DelegateAppointed,
        DelegateDismissed,
        ZoneMembersKnown,
        ZoneMembersUnknown,
        ContactLearned,
    )

    config: ZonesSettings

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: ZonesSettings,
        *,
        base: ZoneMembership | None = None,
        contacts: Iterable[NodeId] = (),
        may_join: MayJoin = _anybody,
        may_be: MayBe = _anybody,
    ) -> None:
        super().__init__(me, effects, rng, config)
        if base is not None:
            check_zone_name(base.view.zone)
        self._core = core = Core(me, effects, rng, config, base, may_join, may_be)
        self._book = ContactBook(name for name in contacts if name != me)
        self._office = Office(core)
        self._directory = Directory(core)
        self._seeker = Seeker(core, self._office, self._directory, self._book)
        self._tables = Tables(core, self._office, self._directory)
        self._questions = Questions(core, self._office, self._directory)
        self._rosters = Rosters(core, self._directory, self._questions, self._seeker)
        self._publisher = Publisher(core, self._seeker)
        # Made once: a host that removes an instance looks for the same objects again.
        self._handlers: dict[type[Message], Handler] = {
            ContactsRequest: self._attended(self._seeker.on_request),
            Contacts: self._attended(self._seeker.on_contacts),
            TableRequest: self._attended(self._tables.on_request),
            TablePage: self._attended(self._tables.on_page),
            MembersRequest: self._attended(self._questions.on_request),
            MembersPage: self._attended(self._questions.on_page),
            MembersDenied: self._attended(self._questions.on_denied),
            RosterDigest: self._attended(self._rosters.on_digest),
        }
        self._hearers: dict[type[Event], EventHandler] = {
            MemberJoined: self._heard(self._on_joined),
            MemberFailed: self._heard(self._on_gone),
            MemberLeft: self._heard(self._on_gone),
            AttributesChanged: self._heard(self._on_attributes),
            NameTaken: self._heard(self._on_name_taken),
            PeerMet: self._heard(self._seeker.met),
        }

    # -- what siblings and the application see --------------------------------------------------

    @property
    def zone(self) -> Scope:
        """The base zone of this node; empty on a supervisor."""
        return self._core.zone

    @property
    def is_delegate(self) -> bool:
        """Whether this node stands for its zone."""
        return self._office.serves

    @property
    def delegates(self) -> tuple[NodeId, ...]:
        """The delegates of this node's zone, the most senior first."""
        return self._office.delegates

    @property
    def in_management(self) -> bool:
        """Whether this node is in the management zone now."""
        return self._core.management is not None

    @property
    def management(self) -> ZoneMembership | None:
        """The membership of the management zone, while this node is in it."""
        return self._core.management

    @property
    def counts(self) -> ZonesCounts:
        """What happened since the start."""
        return self._core.counts

    @property
    def open_questions(self) -> int:
        """How many questions, of this node and forwarded ones, wait for an answer."""
        return len(self._questions)

    def zones(self) -> tuple[ZoneEntry, ...]:
        """All zones, by name; on a plain member as its delegate told last."""
        return self._directory.zones()

    def refresh(self, now: float) -> None:
        """Have a plain member ask its delegate for news of other zones at once."""
        core = self._core
        if not core.stopped and core.base is not None and core.management is None:
            core.timers.notice(now)
            self._tables.refresh(now)

    def knows_members_of(self, zone: Scope) -> bool:
        """Whether this node can answer for a zone by itself."""
        return (self._core.base is not None and zone == self.zone) or zone in (
            self._questions.rosters
        )

    def ask_members(self, zone: Scope, now: float) -> int:
        """Ask who is in a zone; ZoneMembersKnown or ZoneMembersUnknown carries the id returned."""
        core = self._core
        if core.stopped:
            raise LocalProtocolError(f"{self.me} does not run: start it first")
        core.timers.notice(now)
        return self._questions.ask(zone, now)

    # -- the management zone, as the recipe starts and stops it ----------------------------------

    @property
    def wants_management(self) -> bool:
        """Whether the recipe should run the management zone's membership on this node."""
        core = self._core
        return not core.stopped and (core.base is None or self._office.serves)

    def presentation(self) -> Mapping[str, str | int]:
        """The attributes with which this node's membership of the management zone starts."""
        core = self._core
        return presentation(core.zone, None if core.base is None else core.base.view)

    def enter_management(self, membership: ZoneMembership, now: float) -> None:
        """The membership of the management zone runs: find others, publish, supervise."""
        core = self._core
        if membership.view.zone != MANAGEMENT:
            raise LocalProtocolError(f"{membership.view.zone!r} is not the management zone")
        if core.management is not None:
            raise LocalProtocolError(f"{self.me} is in the management zone already")
        core.timers.notice(now)
        core.management = membership
        self._directory.entered(now)
        self._publisher.entered(now)
        self._seeker.entered(now)
        if core.base is not None:
            self._rosters.on_announce_alarm(now)

    def leave_management(self, now: float) -> None:
        """It is about to stop; harmless when it does not run."""
        core = self._core
        if core.management is None:
            return
        core.timers.notice(now)
        self._directory.left(now)
        core.management = None
        self._seeker.left()
        self._rosters.left()
        self._publisher.left(now)

    # -- life -----------------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Begin to follow the views."""
        core = self._core
        core.stopped = False
        core.timers.notice(now)
        self._seeker.recall(kept)
        if core.base is not None:
            self._office.start(now)
            self._tables.start(now)

    def on_stop(self, now: float) -> None:
        """Stop following; the memberships say goodbye themselves."""
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

    def _reunite(self, now: float) -> None:
        """Join those who stand for this node's zone and are not in its view.

        Members whose only contacts are in other zones begin alone, each in a zone of one; the
        management zone is where they learn of each other. It also heals a zone that was split.
        """
        core = self._core
        if core.base is not None and core.management is not None:
            view = core.base.view
            apart = [name for name in self._directory.delegates(core.zone) if name not in view]
            if apart:
                core.base.join(tuple(apart), now, tries=REUNION_TRIES)

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """Changes of both views; whoever answered at an address."""
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
            self._follow_manager(event.member, now)
        elif event.zone == self.zone:
            self._office.joined(event.member, now)
            self._publisher.soon(now)

    def _on_gone(self, event: MemberFailed | MemberLeft, now: float) -> None:
        if event.zone == MANAGEMENT:
            self._follow_manager(event.member, now)
        elif event.zone == self.zone:
            self._office.gone(event.member, now)
            self._publisher.soon(now)

    def _on_attributes(self, event: AttributesChanged, now: float) -> None:
        if event.zone == MANAGEMENT:
            if any(key in CLAIM_KEYS for key in event.keys):
                self._follow_manager(event.member, now)
        elif event.zone == self.zone:
            self._office.attributes_changed(event.member, event.keys, now)
            if CONTACTS in event.keys and self._core.base is not None:
                told = self._core.base.view.attributes(event.member).get(CONTACTS)
                if isinstance(told, str) and event.member != self.me:
                    self._book.published(event.member, told)
            self._publisher.soon(now)

    def _follow_manager(self, member: NodeId, now: float) -> None:
        if self._core.management is not None:
            self._directory.look_at(member, now)
            self._publisher.soon(now)

    def _on_name_taken(self, event: NameTaken, now: float) -> None:
        if event.zone == MANAGEMENT:
            self._office.bar(now)
        elif event.zone == self.zone:
            self._office.resign(now)

    def on_timer(self, key: Hashable, now: float) -> None:
        """Something is due."""
        core = self._core
        if core.stopped:
            return
        core.timers.notice(now)
        if not core.timers.rings(key):
            return
        if key == ELECTION:
            self._office.review(now)
            self._tables.delegates_changed(now)
        elif key == APPOINT:
            self._office.take(now)
        elif key == DISMISS:
            self._office.resign(now)
        elif key == UNBAR:
            self._office.unbar(now)
        elif key == DIRECTORY:
            self._rosters.zones_changed(self._directory.refresh(now), now)
            self._reunite(now)
        elif key == PUBLISH:
            self._publisher.publish(now)
            self._rosters.announce(now)
        elif key == SEEK:
            self._seeker.on_alarm(now)
            self._reunite(now)
        elif key == ANNOUNCE:
            self._rosters.on_announce_alarm(now)
        elif key == CALL:
            self._rosters.on_call_alarm(now)
        elif key == POLL:
            self._tables.on_alarm(now)
            self._office.look_again(now)
        elif key == POLL_TIMEOUT:
            self._tables.on_timeout(now)
        elif isinstance(key, tuple):
            kind, what = key
            if kind == VANISH:
                self._directory.vanish(what)
                self._rosters.zones_changed([what], now)
            elif kind == QUESTION:
                self._questions.on_timeout(what, now)

    # -- invariants -----------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """See the package's docstring."""
        core = self._core
        if core.stopped:
            return
        if (self.me in self.delegates) != self.is_delegate:
            raise InvariantViolation(f"{self.me}: is a delegate and is none")
        if self.open_questions > self.config.max_open:
            raise InvariantViolation(f"{self.me}: {self.open_questions} questions are open")
        self._questions.check()
        self._directory.check()
        if core.management is not None and SEEK not in core.timers:
            raise InvariantViolation(f"{self.me}: looks for nobody in the management zone")
        if core.base is not None and POLL not in core.timers:
            raise InvariantViolation(f"{self.me}: asks for no table of zones any more")

    def audit(self) -> None:
        """Check everything against the views: for the end of a scenario."""
        if not self._core.stopped:
            self.check_invariants()
            self._directory.audit()
