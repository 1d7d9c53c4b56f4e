"""The state machine of a zone's membership: its parts, and which input goes to which."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from random import Random
from typing import Any, ClassVar

from overlay.errors import InvariantViolation, LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import (
    ContactLearned,
    Effects,
    Event,
    EventHandler,
    Handler,
    LinkLost,
    LinkUp,
    Message,
    NetworkChanged,
    OverlayProtocol,
    PeerMet,
    Scope,
)
from protocols.membership.attributes import Value
from protocols.membership.config import MembershipSettings
from protocols.membership.core import GOSSIP, Core, MayJoin
from protocols.membership.counts import MembershipCounts
from protocols.membership.events import (
    AttributesChanged,
    MemberFailed,
    MemberJoined,
    MemberLeft,
    MemberRefuted,
    MemberSuspected,
    NameTaken,
    ZoneEntered,
)
from protocols.membership.interface import MembershipView
from protocols.membership.joining import JOIN, Doorkeeper, Joiner
from protocols.membership.messages import (
    MESSAGES,
    Ack,
    Gossip,
    IndirectAck,
    Join,
    JoinRefused,
    JoinReply,
    Ping,
    PingRequest,
    Sync,
    SyncRecords,
    SyncSummary,
)
from protocols.membership.probing import PROBE, RELAY, WAIT, Prober
from protocols.membership.reconciling import SYNC_NEXT, SYNC_TIMEOUT, Reconciler
from protocols.membership.records import MAX_INCARNATION
from protocols.membership.remembering import KNOCK, Remembrance
from protocols.membership.suspects import SUSPECT, Suspects

MET_TRIES = 6  # Joins to a peer that nobody said to be of this zone: half a minute's worth


def _everybody(_name: NodeId, _zone: Scope) -> bool:
    return True


def _nowhere() -> tuple[str, ...]:
    return ()


class Membership(OverlayProtocol):
    """Membership of one zone; give it the zone's name as scope.

    `here` tells this node's endpoints once it is bound; `contacts` are members to ask at the start;
    `attributes` are this node's first ones; `may_join` tells whether a name's certificate allows
    the zone.
    """

    name: ClassVar[str] = "membership"
    messages: ClassVar[tuple[type[Message], ...]] = MESSAGES
    emits: ClassVar[tuple[type[Event], ...]] = (
        MemberJoined,
        MemberSuspected,
        MemberRefuted,
        MemberFailed,
        MemberLeft,
        AttributesChanged,
        ZoneEntered,
        NameTaken,
        ContactLearned,
    )

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: MembershipSettings,
        *,
        zone: Scope,
        contacts: Iterable[NodeId] = (),
        here: Callable[[], tuple[str, ...]] = _nowhere,
        attributes: Mapping[str, Value] | None = None,
        may_join: MayJoin = _everybody,
    ) -> None:
        super().__init__(me, effects, rng, config)
        self._core = Core(zone, me, effects, rng, config, may_join)
        self._reconciler = Reconciler(self._core)
        self._prober = Prober(self._core, self._reconciler.heard)
        self._suspects = Suspects(self._core, self._prober)
        self._remembrance = Remembrance(self._core, self._reconciler.hasten)
        self._joiner = Joiner(self._core, self._reconciler)
        self._doorkeeper = Doorkeeper(self._core, self._prober)
        self._core.watchers += [self._prober, self._suspects, self._remembrance]
        self._joiner.add(contacts)
        self._here = here
        self._first_attributes = dict(attributes or {})

    # -- what siblings and the application see --------------------------------------------------

    @property
    def view(self) -> MembershipView:
        """The members, for siblings to read."""
        return self._core.table

    @property
    def entered(self) -> bool:
        """Whether a contact answered with its whole view."""
        return self._joiner.entered

    @property
    def stopped(self) -> bool:
        """Whether this node is no member: it did not start yet, left, or its name is taken."""
        return self._core.silent

    @property
    def incarnation(self) -> int:
        """This node's own incarnation."""
        return self._core.myself.incarnation

    @property
    def health(self) -> int:
        """0 when this node is well, more when it should distrust its own observations."""
        return self._core.health.score

    @property
    def counts(self) -> MembershipCounts:
        """What happened since the start."""
        return self._core.counts

    def join(self, contacts: Iterable[NodeId], now: float, *, tries: int = -1) -> None:
        """Ask these members, too, to let this node in; so often, or until they answer."""
        self._ask(contacts, now, tries)

    def _ask(self, contacts: Iterable[NodeId], now: float, tries: int = -1) -> None:
        if not self._core.silent:
            self._core.clock.read(now)
        self._joiner.add(contacts, tries)

    def set_attribute(self, key: str, value: Value, now: float) -> None:
        """Set an attribute of this node; everybody learns of it."""
        self._running(now)
        self._core.set_attribute(key, value)

    def remove_attribute(self, key: str, now: float) -> None:
        """Remove an attribute of this node."""
        self._running(now)
        self._core.remove_attribute(key)

    def readdress(self, now: float) -> None:
        """This node's endpoints changed: tell everybody."""
        self._core.readdress(self._here(), self._running(now))

    def leave(self, now: float) -> None:
        """Say goodbye; the instance does nothing afterwards."""
        self._core.farewell(self._core.clock.read(now))

    def _running(self, now: float) -> float:
        if self._core.silent:
            raise LocalProtocolError(
                f"{self.me} is no member of zone {self._core.zone!r}: start it first"
            )
        return self._core.clock.read(now)

    # -- inputs ---------------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Begin a life, above every earlier one, and look for the others."""
        core = self._core
        core.clock.start(now)
        stored = kept.get(b"incarnation", b"0")
        earlier = int(stored) if stored.isdigit() and len(stored) < 20 else 0
        incarnation = min(max(earlier + 1, int(now * 1000), 1), MAX_INCARNATION)
        core.effects.store(b"incarnation", str(incarnation).encode(), "incarnation")
        core.begin(incarnation, self._here(), core.clock.steady)
        for key, value in self._first_attributes.items():
            core.set_attribute(key, value)
        self._prober.start()
        self._joiner.start(core.clock.steady)

    def on_stop(self, now: float) -> None:
        """Say goodbye."""
        self.leave(now)

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """All messages; each handler gets steady time, and none while this node is silent."""
        return {
            Ping: self._attended(self._prober.on_ping),
            Ack: self._attended(self._prober.on_ack),
            PingRequest: self._attended(self._prober.on_ping_request),
            IndirectAck: self._attended(self._prober.on_indirect_ack),
            Gossip: self._attended(self._on_gossip),
            Join: self._attended(self._doorkeeper.on_join, check=False),  # it says why not
            JoinReply: self._attended(self._joiner.on_reply),
            JoinRefused: self._attended(self._joiner.on_refused),
            Sync: self._attended(self._reconciler.on_sync),
            SyncSummary: self._attended(self._reconciler.on_summary),
            SyncRecords: self._attended(self._reconciler.on_records),
        }

    def _attended(self, handler: Handler, *, check: bool = True) -> Handler:
        core = self._core
        read = core.clock.read

        def attend(src: NodeId, message: Any, now: float) -> None:
            if core.silent:
                return
            if check and not core.may_join(src, core.zone):
                raise RemoteProtocolError("zone-not-allowed", f"{src} in zone {core.zone!r}")
            handler(src, message, read(now))

        return attend

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """Links, addresses that answered, and addresses of our own; a lost link is only a hint."""
        return {
            LinkUp: self._on_link_up,
            LinkLost: self._on_link_lost,
            PeerMet: self._on_peer_met,
            NetworkChanged: self._on_network_changed,
        }

    def _on_link_up(self, up: LinkUp, now: float) -> None:
        self._core.partners.link_up(up.peer)

    def _on_link_lost(self, lost: LinkLost, now: float) -> None:
        core = self._core
        was_open = core.partners.link_lost(lost.peer)
        if not core.silent and lost.peer in core.table and lost.peer != core.me:
            self._prober.link_lost(lost.peer, lost.closed, was_open, core.clock.read(now))

    def _on_peer_met(self, met: PeerMet, now: float) -> None:
        if met.peer not in self._core.table and met.zone in ("", self._core.zone):
            self._ask([met.peer], now, MET_TRIES)  # it may belong to another zone

    def _on_network_changed(self, event: NetworkChanged, now: float) -> None:
        if not self._core.silent and self._here() != self._core.myself.endpoints:
            self.readdress(now)

    def _on_gossip(self, src: NodeId, gossip: Gossip, now: float) -> None:
        self._core.learn(src, gossip.news, gossip.attributes, now)

    def on_timer(self, key: Hashable, now: float) -> None:
        """An alarm, unless the clock jumped: then it is set again."""
        core = self._core
        if core.silent:
            return
        steady = core.clock.read(now)
        if not core.alarms.rings(key, judges=isinstance(key, tuple)):
            return
        if key == PROBE:
            self._prober.on_probe_alarm(steady)
        elif key == GOSSIP:
            core.gossip()
        elif key == JOIN:
            self._joiner.on_alarm(steady)
        elif key == KNOCK:
            self._remembrance.on_alarm(steady)
        elif key == SYNC_NEXT:
            self._reconciler.on_next_alarm(steady)
        elif key == SYNC_TIMEOUT:
            self._reconciler.on_timeout_alarm()
        elif isinstance(key, tuple):
            kind, what = key
            if kind == WAIT:
                self._prober.on_wait_alarm(what, steady)
            elif kind == RELAY:
                self._prober.on_relay_alarm(what)
            elif kind == SUSPECT:
                self._suspects.on_alarm(what, steady)

    def check_invariants(self) -> None:
        """What changed in the view fits together, I am in it, and everything due has an alarm."""
        core = self._core
        if core.silent:
            return
        core.table.check()
        if core.table.record(self.me) is not core.myself:
            raise InvariantViolation(f"{self.me}: is not itself in its own view")
        if PROBE not in core.alarms:
            raise InvariantViolation(f"{self.me}: probes nobody any more")
        if core.rumours and len(core.table) > 1 and GOSSIP not in core.alarms:
            raise InvariantViolation(f"{self.me}: keeps news to itself")
        if core.table.gone() and KNOCK not in core.alarms:
            raise InvariantViolation(f"{self.me}: knocks at none of the dead")
        self._prober.check()
        self._suspects.check()

    def audit(self) -> None:
        """Check everything, at a cost that grows with the zone: for the end of a scenario."""
        if not self._core.silent:
            self.check_invariants()
            self._core.table.audit()
            self._prober.audit()
            self._suspects.audit()
