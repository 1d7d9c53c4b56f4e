"""A mobile subscriber: it tells brokers where it was, and takes each publication once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from random import Random
from typing import ClassVar

import msgspec

from overlay.errors import InvariantViolation, LocalProtocolError
from overlay.ids import NodeId
from overlay.predicates import Constraint, item_from_wire
from overlay.protocol import (
    Effects,
    Event,
    EventHandler,
    Handler,
    LinkUp,
    Message,
    OverlayProtocol,
)
from protocols.content.events import BrokerAttached
from protocols.mobility.box import FORGOTTEN, Inlet, Marks
from protocols.mobility.events import MovedOut
from protocols.mobility.keeping_config import KeepingSettings
from protocols.mobility.keeping_counts import FollowingCounts
from protocols.mobility.keeping_events import SUBSCRIBER_EVENTS, Gap, NotKept, Received, Settled
from protocols.mobility.keeping_messages import (
    MAX_MODEL,
    MAX_NAME,
    MAX_PLACES,
    MESSAGES,
    Away,
    Batch,
    Here,
    Hosted,
    Kept,
    Place,
    Taken,
    Want,
)

BEAT = "beat"
TOO_MANY = "too many brokers that did not answer"
KEPT = b"place"  # the key of where this subscriber was last
VISITS_PER_SECOND = 1000  # a visit is named by its time: it grows from one life to the next


class KeptPlaces(msgspec.Struct, frozen=True, array_like=True):
    """What a subscriber remembers of an earlier life."""

    visit: int
    places: tuple[Place, ...]


class Follower(OverlayProtocol):
    """The subscriptions of one mobile node, and where what matches is kept for it."""

    name: ClassVar[str] = "following"
    messages: ClassVar[tuple[type[Message], ...]] = MESSAGES
    emits: ClassVar[tuple[type[Event], ...]] = SUBSCRIBER_EVENTS

    config: KeepingSettings

    def __init__(self, me: NodeId, effects: Effects, rng: Random, config: KeepingSettings) -> None:
        super().__init__(me, effects, rng, config)
        self.counts = FollowingCounts()
        self._near: NodeId = ""  # the broker of the client that shares this node
        self._wants: dict[str, Want] = {}
        self._revision = 0
        self._broker: NodeId = ""
        self._visit = 0
        self._hosted = 0  # the revision that the broker has; 0: it keeps nothing yet
        self._complete = False
        self._endpoints: tuple[str, ...] = ()
        self._since: tuple[Place, ...] = ()
        self._inlet = Inlet(0)
        self._marks = Marks(config.max_marks)

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """What its broker tells it."""
        return {Hosted: self._on_hosted, Batch: self._on_batch}

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """Where the client of content-based routing is that shares this node, it goes as well."""
        return {
            LinkUp: self._on_link_up,
            BrokerAttached: self._on_broker_attached,
            MovedOut: self._on_moved_out,
        }

    @property
    def broker(self) -> NodeId | None:
        """The broker that keeps for this node, once it said so."""
        return self._broker if self._hosted else None

    @property
    def visit(self) -> int:
        """The number of its stay there."""
        return self._visit

    def wants(self) -> dict[str, Constraint]:
        """Its subscriptions."""
        return {name: Constraint.from_wire(want.constraint) for name, want in self._wants.items()}

    # -- commands -------------------------------------------------------------------------------

    def subscribe(self, name: str, constraint: Constraint, now: float, *, model: str = "") -> str:
        """Want every publication that matches, wherever this node is: `Received` for each."""
        if not name or len(name.encode()) > MAX_NAME:
            raise LocalProtocolError(f"a name of {len(name)} characters: give 1 to {MAX_NAME}")
        if len(model) > MAX_MODEL:
            raise LocalProtocolError(f"a model of {len(model)} characters: at most {MAX_MODEL}")
        most = self.config.max_wants
        if name not in self._wants and len(self._wants) >= most:
            raise LocalProtocolError(f"{most} subscriptions: end some, or raise mobility.max_wants")
        want = Want(name, constraint.wire(), model)
        if self._wants.get(name) != want:
            self._wants[name] = want
            self._changed()
        if not self._broker and self._near:
            self.settle(self._near, now)
        return name

    def unsubscribe(self, name: str, now: float) -> None:
        """Want it no more; LocalProtocolError when there is none of that name."""
        if self._wants.pop(name, None) is None:
            raise LocalProtocolError(f"{name!a} is not subscribed to by {self.me}")
        self._changed()

    def settle(self, broker: NodeId, now: float) -> None:
        """Be with that broker from now on; what others kept is fetched from there."""
        if broker == self.me:
            raise LocalProtocolError(f"{self.me} is no broker for itself: name another one")
        if broker == self._broker:
            self._call()
            return
        if self._broker:
            self.counts.moves += 1
        self._visit_anew(broker, now)

    def leave(self, now: float, *, keep_for: float | None = None) -> None:
        """Go away; the broker keeps what matches, 0: it need not."""
        if not self._broker:
            return
        if self._hosted:
            seconds = self.config.keep_for if keep_for is None else keep_for
            self.effects.send(self._broker, Away(self._visit, self._inlet.next, seconds))
        self._since = () if keep_for == 0 else self._places()[:MAX_PLACES]
        self._broker, self._hosted = "", 0
        self.effects.cancel_timer(BEAT)

    # -- where it is ----------------------------------------------------------------------------

    def _places(self) -> tuple[Place, ...]:
        """Where something may be kept for this node, the newest first."""
        if not self._broker:
            return self._since
        here = Place(
            self._broker,
            self._visit,
            self._inlet.next if self._hosted else 0,
            bool(self._hosted),
            self._endpoints if self._hosted else (),
        )
        older = () if self._hosted and self._complete else self._since
        return (here, *older)

    def _visit_anew(self, broker: NodeId, now: float) -> None:
        self._since = self._places()
        if len(self._since) > MAX_PLACES:  # the newest may have the boxes of all others
            self._since = self._since[:MAX_PLACES]
            self._gap(0, TOO_MANY)
        self._broker = broker
        self._visit = max(self._visit + 1, int(now * VISITS_PER_SECOND))
        self._hosted, self._complete = 0, False
        self._inlet = Inlet(0)
        self._remember()
        self._call()
        self._beat_later(now)

    def _remember(self) -> None:
        """So that a later life can say where it was."""
        kept = KeptPlaces(self._visit, self._places()[:MAX_PLACES])
        self.effects.store(KEPT, msgspec.msgpack.encode(kept), KEPT)

    def _changed(self) -> None:
        self._revision += 1
        if self._broker:
            self.effects.at_tick_end(self._tell)

    def _tell(self, now: float) -> None:
        self._call()

    def _call(self) -> None:
        if self._broker:
            wants = tuple(self._wants.values())
            self.effects.send(
                self._broker,
                Here(self._visit, self._revision + 1, wants, self._since, self.config.keep_for),
            )

    def _on_broker_attached(self, event: BrokerAttached, now: float) -> None:
        self._near = event.broker
        if self._wants:
            self.settle(event.broker, now)

    def _on_moved_out(self, event: MovedOut, now: float) -> None:
        self._near = ""
        self.leave(now)

    def _on_link_up(self, event: LinkUp, now: float) -> None:
        if event.peer == self._broker:
            self._speak()

    def _speak(self) -> None:
        if self._hosted == self._revision + 1 and self._complete:
            self.effects.send(self._broker, Taken(self.me, self._visit, self._inlet.next))
        elif self._hosted:
            self._call()
            self.effects.send(self._broker, Taken(self.me, self._visit, self._inlet.next))
        else:
            self._call()

    def _beat_later(self, now: float) -> None:
        self.effects.set_timer(BEAT, now + self.config.beat * self.rng.uniform(0.9, 1.1))

    def on_timer(self, key: Hashable, now: float) -> None:
        """A sign of life, or the call again."""
        if self._broker:
            self._speak()
            self._beat_later(now)

    def _on_hosted(self, src: NodeId, msg: Hosted, now: float) -> None:
        if src != self._broker or msg.visit != self._visit:
            self.counts.strays += 1
            return
        if not msg.revision:
            if self._hosted and msg.reason == "unknown":  # it forgot all, in a restart
                self._gap(0, FORGOTTEN)
                self._since = () if self._complete else self._since
                self._visit_after_loss(now)
            elif msg.reason != "unknown":
                self.effects.emit(NotKept(src, msg.reason))
            return
        first = not self._hosted
        self._hosted = msg.revision
        self._endpoints = msg.endpoints
        if first:
            self._inlet = Inlet(msg.start)
        if msg.complete and not self._complete:
            self._complete = True
            self._since = ()
            self._remember()
        elif first:
            self._remember()
        if first:
            self.effects.emit(Settled(src, msg.visit))
            self.effects.send(src, Taken(self.me, self._visit, self._inlet.next))

    def _visit_after_loss(self, now: float) -> None:
        broker, self._broker = self._broker, ""
        self._visit_anew(broker, now)

    # -- what it takes --------------------------------------------------------------------------

    def _on_batch(self, src: NodeId, msg: Batch, now: float) -> None:
        if src != self._broker or msg.visit != self._visit or not self._hosted:
            self.counts.strays += 1
            return
        for entry in self._inlet.take(msg):
            self._take(entry)
        self.effects.send(src, Taken(self.me, self._visit, self._inlet.next))

    def _take(self, entry: Kept) -> None:
        if not entry.advertisement:
            self._gap(entry.lost, entry.reason)
            return
        if entry.subscription not in self._wants:
            return  # it is wanted no more
        item = item_from_wire(entry.item)
        forgotten = self._marks.forgotten
        if not self._marks.passes(entry):
            self.counts.repeats += 1
            return
        self.counts.marks_forgotten += self._marks.forgotten - forgotten
        self.counts.received += 1
        self.effects.emit(
            Received(entry.subscription, entry.advertisement, entry.epoch, entry.sequence, item)
        )

    def _gap(self, lost: int, reason: str) -> None:
        self.counts.gaps += 1
        self.counts.lost += lost
        self.effects.emit(Gap(lost, reason))

    # -- life -----------------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Remember where an earlier life was."""
        if KEPT in kept:
            found = msgspec.msgpack.decode(kept[KEPT], type=KeptPlaces)
            self._visit, self._since = found.visit, found.places

    def on_stop(self, now: float) -> None:
        """Say goodbye: the broker keeps what matches, and need not wait for silence."""
        self.leave(now)

    def check_invariants(self) -> None:
        """Bounds hold."""
        if len(self._wants) > self.config.max_wants or len(self._marks) > self.config.max_marks:
            raise InvariantViolation(f"{self.me} wants or remembers too much")
        if len(self._since) > MAX_PLACES:
            raise InvariantViolation(f"{self.me} was at {len(self._since)} brokers")
