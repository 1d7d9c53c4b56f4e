"""The colony machine: one unit's life as an individual, a leader, a servant and a client."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
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
    LinkLost,
    LinkUp,
    Message,
    OverlayProtocol,
)
from protocols.colony import attaching, courier, leading, searching
from protocols.colony.asking import GIVE_UP, Client
from protocols.colony.attaching import Attachment
from protocols.colony.config import ColonySettings
from protocols.colony.core import Core
from protocols.colony.courier import Courier
from protocols.colony.events import (
    ColonyUsed,
    IndividualLoggedIn,
    IndividualLoggedOut,
    LeaderFound,
    LeaderLost,
    LeaderRefused,
    LeaderWanted,
    RequestEnded,
    ServantFound,
    ServiceRejected,
)
from protocols.colony.interface import (
    Card,
    Individual,
    Policy,
    Service,
    Terms,
    Trust,
    Wish,
    believed,
    everybody,
)
from protocols.colony.keeping import Keeper
from protocols.colony.leading import Registry
from protocols.colony.messages import (
    Ack,
    Ancestry,
    Beat,
    LogIn,
    LogInRefused,
    LogOut,
    Offers,
    ServiceRequest,
    ServiceResponse,
    Welcome,
)
from protocols.colony.searching import Searcher
from protocols.colony.services import written
from protocols.colony.serving import Servant
from protocols.colony.table import Child, RoutingTable


class Colony(OverlayProtocol):
    """A unit of a colony: always a computer, and a broker while it leads."""

    name: ClassVar[str] = "colony"
    messages: ClassVar[tuple[type[Message], ...]] = (
        *(LogIn, Welcome, LogInRefused, LogOut, Beat, Ancestry, Offers),
        *(ServiceRequest, ServiceResponse, Ack),
    )
    emits: ClassVar[tuple[type[Event], ...]] = (
        *(LeaderFound, LeaderLost, LeaderRefused, LeaderWanted),
        *(IndividualLoggedIn, IndividualLoggedOut, ColonyUsed),
        *(ServantFound, ServiceRejected, RequestEnded, ContactLearned),
    )

    config: ColonySettings

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: ColonySettings,
        *,
        leads: bool = False,
        leader: NodeId = "",
        leaders: Sequence[NodeId] = (),
        offers: Iterable[Service] = (),
        card: Callable[[], Card] | None = None,
        policy: Policy = everybody,
        trust: Trust = believed,
    ) -> None:
        super().__init__(me, effects, rng, config)
        plain = Card(me)
        self._core = core = Core(me, effects, rng, config, card or (lambda: plain))
        self.counts = core.counts
        self._first_leader = leader
        self._used = False
        self._registry = Registry(core)
        self._attachment = Attachment(core, self._registry.path_changed)
        self._attachment.others.update(dict.fromkeys(leaders))
        self._courier = Courier(core)
        self._keeper = Keeper(core)
        self._searcher = Searcher(core, self._registry, self._courier, self._keeper)
        self._servant = Servant(core, self._courier, policy, trust)
        self._client = Client(core, self._courier, trust)
        core.leads = leads
        self._own = Child(me, "computer", 0, 0.0)
        core.table.add(self._own, map(written, offers))
        self._connect()

    def _connect(self) -> None:
        """Who tells whom within a node; never before the present input is worked off."""
        core, me = self._core, self.me
        self._searcher.ask_own_computer = lambda msg, now: self._servant.on_request(me, msg, now)
        self._searcher.tell_own_client = lambda msg, now: self._client.on_response(me, msg, now)
        self._servant.tell_own_broker = lambda msg, now: self._searcher.on_response(me, msg, now)
        self._client.ask_own_broker = lambda msg, now: self._searcher.on_request(me, msg, now)
        self._keeper.take_up = lambda src, msg, now: self._searcher.on_request(
            src, msg, now, recovered=True
        )
        self._registry.on_gone = lambda child, now: core.inside(
            lambda then: self._searcher.gone(child.name, then, is_broker=child.unit == "broker")
        )
        self._attachment.on_lost = lambda leader, now: core.inside(
            lambda then: self._searcher.gone(leader, then, is_broker=True)
        )
        self._registry.on_first = self._keeper.led
        self._registry.on_offers_grown = lambda: core.inside(self._searcher.go_on)
        self._attachment.on_found = (self._client.ask_again, self._searcher.go_on)

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """One handler for each message of the table in the package's docstring."""
        handlers: dict[type[Message], Handler] = {
            LogIn: self._registry.on_log_in,
            Welcome: self._attachment.on_welcome,
            LogInRefused: self._attachment.on_refused,
            LogOut: self._on_log_out,
            Beat: self._registry.on_beat,
            Ancestry: self._attachment.on_ancestry,
            Offers: self._registry.on_offers,
            ServiceRequest: self._on_request,
            ServiceResponse: self._on_response,
            Ack: self._courier.on_ack,
        }
        return {kind: self._settling(handler) for kind, handler in handlers.items()}

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """Hints of the driver."""
        return {LinkLost: self._on_link_lost, LinkUp: self._on_link_up}

    def _settling(self, handler: Handler) -> Handler:
        def handle(src: NodeId, msg: Any, now: float) -> None:
            handler(src, msg, now)
            self._settle(now)

        return handle

    def _settle(self, now: float) -> None:
        self._core.settle(now)
        if self._core.table.changed:
            self.effects.at_tick_end(self._attachment.tell_changes)

    # -- commands of the application ----------------------------------------------------------

    def lead(self, now: float) -> None:
        """Be a broker: take individuals from now on."""
        if not self._core.leads:
            self._registry.lead(now)
            self._attachment.come_again("is a broker now", now)
            self._settle(now)

    def stop_leading(self, now: float) -> None:
        """Be a computer only; individuals have to find another leader."""
        if self._core.leads:
            self._registry.stop_leading(leading.NO_LEADER, now)
            self._attachment.come_again("is a computer now", now)
            self._settle(now)

    def follow(self, leader: NodeId, now: float) -> None:
        """Log in to a leader: a root that does so merges two colonies."""
        self._attachment.follow(leader, now)
        self._settle(now)

    def delog(self, now: float) -> None:
        """Leave the leader, and follow nobody: a broker splits its colony off."""
        self._attachment.follow("", now)
        self._settle(now)

    def learn_leaders(self, leaders: Iterable[NodeId], now: float) -> None:
        """Turn to these when no other leader is left, as after a broker discovery."""
        self._attachment.learn(leaders, now)
        self._settle(now)

    def expel(self, name: NodeId, now: float) -> None:
        """Delog an individual."""
        if name not in self._core.table.children or name == self.me:
            raise LocalProtocolError(f"{name} is no individual of {self.me}'s colony")
        self._registry.expel(name, now)
        self._settle(now)

    def offer(self, service: Service, now: float) -> None:
        """Declare a service of this computer."""
        self._core.table.change(self._own, (written(service),), ())
        self._settle(now)

    def withdraw(self, service: Service, now: float) -> None:
        """Declare it no more."""
        if written(service) not in self._own.services:
            raise LocalProtocolError(f"{self.me} does not offer {service}")
        self._core.table.change(self._own, (), (written(service),))
        self._settle(now)

    def ask(self, wishes: Sequence[Wish], terms: Terms, now: float) -> int:
        """Have servants found; ServantFound, ServiceRejected and RequestEnded carry the id."""
        request = self._client.ask(wishes, terms, now)
        self._settle(now)
        return request

    def set_policy(self, policy: Policy, now: float) -> None:
        """Decide by this from now on."""
        self._servant.policy = policy

    def use(self, now: float) -> None:
        """The application is about to ask: this unit is worth a leader's while."""
        self._used = True
        self.effects.emit(ColonyUsed())

    # -- looking ------------------------------------------------------------------------------

    @property
    def leads(self) -> bool:
        """Whether this unit is a broker."""
        return self._core.leads

    @property
    def is_used(self) -> bool:
        """Whether anybody offers or asks something here, in this unit or below."""
        return self._used or len(self._core.table.children) > 1 or bool(self._own.services)

    @property
    def is_announced(self) -> bool:
        """Whether the leader knows what this colony offers, or there is nobody above to tell."""
        return self._attachment.is_told or (self._core.leads and not self._attachment.home)

    @property
    def home(self) -> NodeId:
        """The leader that this unit was told to have."""
        return self._attachment.home

    @property
    def leader(self) -> NodeId:
        """Whose individual this unit is; empty: nobody's."""
        return self._core.leader

    @property
    def path(self) -> tuple[NodeId, ...]:
        """From the leader to the root."""
        return self._core.path

    @property
    def table(self) -> RoutingTable:
        """What this broker knows of its colony; do not change it."""
        return self._core.table

    @property
    def own_services(self) -> tuple[str, ...]:
        """What this computer offers."""
        return tuple(self._own.services)

    @property
    def open_requests(self) -> int:
        """Of this node's own."""
        return len(self._client)

    @property
    def searches(self) -> int:
        """Requests that this broker has in hand."""
        return len(self._searcher)

    def individuals(self) -> list[Individual]:
        """Who is in this colony directly, the broker's own computer left out."""
        return [
            Individual(
                *(one.name, one.unit, len(one.services), one.rtt),
                *(one.asked, one.accepted, one.silent),
            )
            for one in self._core.table.children.values()
            if one is not self._own
        ]

    # -- messages -----------------------------------------------------------------------------

    def _on_log_out(self, src: NodeId, msg: LogOut, now: float) -> None:
        self._attachment.on_log_out(src, msg, now)
        self._registry.on_log_out(src, msg, now)

    def _on_request(self, src: NodeId, msg: ServiceRequest, now: float) -> None:
        if self._core.leads:
            self._searcher.on_request(src, msg, now)
        else:
            self._servant.on_request(src, msg, now)

    def _on_response(self, src: NodeId, msg: ServiceResponse, now: float) -> None:
        if msg.serial:
            self.effects.send(src, Ack(msg.serial))
        if msg.client == self.me and self._client.has_asked(src, msg.id):
            self._client.on_response(src, msg, now)
        else:
            self._searcher.on_response(src, msg, now)

    # -- life and time ------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Log in where this unit was told to."""
        self._core.timers.notice(now)
        self._keeper.on_start(now, kept)
        if self._first_leader:
            self._attachment.follow(self._first_leader, now)
        self._settle(now)

    def on_timer(self, key: Hashable, now: float) -> None:
        """Whatever is due."""
        self._core.timers.notice(now)
        if not self._core.timers.rings(key):
            return
        match key:
            case (word, int(id)) if word == GIVE_UP:
                self._client.on_timer(id, now)
            case attaching.BEAT:
                self._attachment.on_beat_timer(now)
            case attaching.LOGIN:
                self._attachment.on_login_timer(now)
            case attaching.LOST:
                self._attachment.on_lost_timer(now)
            case leading.SWEEP:
                self._registry.on_sweep_timer(now)
            case searching.EXPIRE:
                self._searcher.on_timer(now)
            case courier.RESEND:
                self._courier.on_timer(now)
        self._settle(now)

    def on_stored(self, token: Hashable, now: float) -> None:
        """A reliable request is safe."""
        self._keeper.on_stored(token)

    def on_stop(self, now: float) -> None:
        """Send individuals away, who still know whom to turn to, and delog."""
        self._registry.stop_leading("its leader leaves", now)
        self._attachment.leave("leaves", now)

    def _on_link_lost(self, event: LinkLost, now: float) -> None:
        self._attachment.on_link_lost(event.peer, now)
        self._registry.on_link_lost(event.peer, now)
        self._settle(now)

    def _on_link_up(self, event: LinkUp, now: float) -> None:
        self._attachment.on_link_up(event.peer, now)

    def check_invariants(self) -> None:
        """See the package's docstring."""
        self._core.table.check(self.me)
        self._searcher.check()
        self._client.check()
        if self._core.leader == self.me or self.me in self._core.path:
            raise InvariantViolation(f"{self.me} is on its own path: {self._core.path}")
        if bool(self._core.path) != bool(self._core.leader):
            raise InvariantViolation(f"{self.me}: a path without a leader, or none with one")
