"""The state machine of one node that moves, or whose clients do."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from random import Random
from typing import ClassVar

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId
from overlay.predicates import Constraint
from overlay.protocol import Effects, Event, EventHandler, Handler, Message, OverlayProtocol
from protocols.content.events import (
    AdvertisementAdded,
    AdvertisementChanged,
    AdvertisementRemoved,
    BrokerAttached,
    ClientGone,
    ClientTold,
    NeighbourDown,
)
from protocols.content.interface import Advertised, MayBe, MobileContent, anybody, owner_of
from protocols.mobility.arriving import ANCHOR, ARRIVE, TRANSIT, Arriving
from protocols.mobility.client import MOVE, Mover
from protocols.mobility.config import MobilitySettings
from protocols.mobility.counts import MobilityCounts
from protocols.mobility.events import EVENTS
from protocols.mobility.interface import Nearby, Predictor
from protocols.mobility.leaving import LEAVE, Leaving
from protocols.mobility.messages import (
    MESSAGES,
    HandedOver,
    Handover,
    MoveIn,
    MoveOut,
    Sound,
    Sounded,
    StandIn,
    TreeReady,
)
from protocols.mobility.predicting import predictor
from protocols.mobility.proxies import RENEW, ProxySets
from protocols.mobility.sounding import WAVE, Sounding
from protocols.mobility.standing import STAND, Standing


def nowhere() -> NodeId:
    """The plan of a client that has none."""
    return ""


class Mobility(OverlayProtocol):
    """Moves this client, and serves those who move between brokers."""

    name: ClassVar[str] = "mobility"
    messages: ClassVar[tuple[type[Message], ...]] = MESSAGES
    emits: ClassVar[tuple[type[Event], ...]] = EVENTS

    config: MobilitySettings

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: MobilitySettings,
        content: MobileContent,
        *,
        plan: Callable[[], NodeId] = nowhere,
        nearby: Nearby | None = None,
        may_be: MayBe = anybody,
    ) -> None:
        super().__init__(me, effects, rng, config)
        self.counts = MobilityCounts()
        self._content = content
        self._may_be = may_be
        if config.handover == "lossless" and not content.is_broker:
            content.stand_alone()
        counts = self.counts
        self._mover = Mover(
            *(me, effects, config, content, counts),
            predictor(config.predictor, plan, nearby),
        )
        self._standing = Standing(me, effects, config, content, counts)
        self._sounding = Sounding(me, effects, rng, config, content, counts)
        self._leaving = Leaving(effects, config, content, counts, self._standing, self._sounding)
        self._proxies = ProxySets(
            *(me, effects, config, content, self._standing),
            lambda client, chosen: self._arriving.chose(client, chosen),
        )
        self._arriving = Arriving(
            *(me, effects, config, content, counts),
            *(self._standing, self._sounding, self._leaving, self._proxies),
        )
        self._leaving.passes = self._arriving.passes
        self._leaving.came_by = self._arriving.came_by

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """One handler for each message of the table in the package's docstring."""
        return {
            MoveOut: self._on_move_out,
            MoveIn: self._on_move_in,
            Handover: self._on_handover,
            HandedOver: self._on_handed_over,
            StandIn: self._on_stand_in,
            Sound: self._on_sound,
            Sounded: self._on_sounded,
            TreeReady: self._on_tree_ready,
        }

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """What happens to clients, neighbours and advertisements."""
        return {
            BrokerAttached: self._on_broker_attached,
            ClientTold: self._on_client_told,
            ClientGone: self._on_client_gone,
            NeighbourDown: self._on_neighbour_down,
            AdvertisementAdded: self._on_advertisement_added,
            AdvertisementChanged: self._on_advertisement_changed,
            AdvertisementRemoved: self._on_advertisement_removed,
        }

    # -- commands of a client -------------------------------------------------------------------

    @property
    def is_moving(self) -> bool:
        """Whether this client has no broker, or its trees are not known to stand."""
        return self._mover.is_moving

    @property
    def is_somewhere(self) -> bool:
        """Whether this client has a broker that it can move out of, even a silent one."""
        return self._mover.is_somewhere

    def foretell(self, chosen: Predictor) -> None:
        """Use that predictor from now on."""
        self._mover.predictor = chosen

    def moveout(self, now: float) -> None:
        """Leave the broker; LocalProtocolError where there is none."""
        self._check_client()
        self._mover.moveout(now)

    def movein(self, broker: NodeId, now: float) -> int:
        """Turn to a broker; the number of the move. TreeStands follows, unless in best effort."""
        self._check_client()
        return self._mover.movein(broker, now)

    def _check_client(self) -> None:
        if self._content.is_broker:
            raise LocalProtocolError(f"{self.me} is a broker, which does not move: use a client")

    # -- messages -------------------------------------------------------------------------------

    def _serves(self) -> bool:
        """Whether this node is a broker; messages to brokers alone are strays elsewhere."""
        if not self._content.is_broker:
            self.counts.strays += 1
        return self._content.is_broker

    def _check_broker(self, src: NodeId) -> None:
        if not self._may_be(src, "broker"):
            raise RemoteProtocolError("mobility-no-right", f"{src} may not be a broker")

    def _on_move_out(self, src: NodeId, msg: MoveOut, now: float) -> None:
        if self._serves():
            self._leaving.moved_out(src, msg, now)

    def _on_move_in(self, src: NodeId, msg: MoveIn, now: float) -> None:
        if self._serves():
            self._arriving.moved_in(src, msg, now)

    def _on_handover(self, src: NodeId, msg: Handover, now: float) -> None:
        if self._serves():
            self._check_broker(src)
            self._leaving.handover(src, msg, now)

    def _on_handed_over(self, src: NodeId, msg: HandedOver, now: float) -> None:
        if self._serves():
            self._check_broker(src)
            self._arriving.handed_over(msg, now)

    def _on_stand_in(self, src: NodeId, msg: StandIn, now: float) -> None:
        if not self._serves():
            return
        self._check_broker(src)
        for entry in msg.entries:
            if owner_of(entry.id) != msg.client or entry.id == f"{msg.client}/":
                raise RemoteProtocolError("mobility-not-theirs", f"{entry.id[:64]!a}")
        for entry in msg.entries:
            if not msg.lease:
                self._standing.drop([entry.id])
                continue
            constraint = Constraint.from_wire(entry.constraint)
            offer = Advertised(
                *(entry.id, msg.epoch, constraint, entry.model, entry.whole, entry.note),
                hop=self.me,
                graft=entry.graft,
            )
            seconds = min(msg.lease, self.config.proxy_lease)
            self._standing.add(offer, "proxy" if msg.proxy else "expected", seconds, now)

    def _on_sound(self, src: NodeId, msg: Sound, now: float) -> None:
        if self._serves():
            self._sounding.on_sound(src, msg, now)

    def _on_sounded(self, src: NodeId, msg: Sounded, now: float) -> None:
        if self._serves():
            self._sounding.on_sounded(src, msg, now)

    def _on_tree_ready(self, src: NodeId, msg: TreeReady, now: float) -> None:
        self._mover.ready(src, msg, now)

    # -- events ---------------------------------------------------------------------------------

    def _on_broker_attached(self, event: BrokerAttached, now: float) -> None:
        self._mover.attached(event.broker, now)

    def _on_client_told(self, event: ClientTold, now: float) -> None:
        self._arriving.told(event.client, now)

    def _on_client_gone(self, event: ClientGone, now: float) -> None:
        self._arriving.gone(event.client)
        self._leaving.gone(event.client, now)

    def _on_neighbour_down(self, event: NeighbourDown, now: float) -> None:
        self._sounding.gone(event.peer, now)

    def _on_advertisement_changed(self, event: AdvertisementChanged, now: float) -> None:
        self._sounding.changed(event.advertisement.id)
        self._standing.changed(event.advertisement)
        if event.advertisement.epoch != event.before.epoch:
            self._arriving.rooted(event.advertisement)

    def _on_advertisement_added(self, event: AdvertisementAdded, now: float) -> None:
        self._arriving.rooted(event.advertisement)

    def _on_advertisement_removed(self, event: AdvertisementRemoved, now: float) -> None:
        self._sounding.changed(event.advertisement.id)

    # -- life -----------------------------------------------------------------------------------

    def on_timer(self, key: Hashable, now: float) -> None:
        """Ask again, or let something end."""
        if key == MOVE:
            self._mover.again(now)
        elif isinstance(key, tuple):
            what, about = key
            if what == WAVE:
                self._sounding.on_timer(about, now)
            elif what == STAND:
                self._standing.on_timer(about, now)
            elif what == ARRIVE:
                self._arriving.on_timer(about, now)
            elif what == TRANSIT:
                self._arriving.ask_for_transit(about, now)
            elif what == ANCHOR:
                self._arriving.stayed(about)
            elif what == LEAVE:
                self._leaving.on_timer(about, now)
            elif what == RENEW:
                self._proxies.renew(about, now)

    def check_invariants(self) -> None:
        """Everything is bounded."""
        self._standing.check()
