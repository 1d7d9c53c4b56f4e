"""What all parts of the gateways machine share: views, settings, time, counts, and what is new."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from overlay.ids import NodeId, Ring, Vid
from overlay.protocol import Effects, Message, Scope
from overlay.timetable import Timetable
from protocols.gateways.config import GatewaysSettings
from protocols.gateways.counts import GatewaysCounts
from protocols.gateways.interface import May
from protocols.gateways.ledger import Book
from protocols.membership.interface import MembershipView
from protocols.zones.interface import ZoneDirectory

FLUSH = "flush"

Delivery = Callable[[Message, float], None]


class Core:
    """One node's place: in a base zone, in the management zone, or in both."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        settings: GatewaysSettings,
        base: MembershipView | None,
        zones: ZoneDirectory,
        may: May | None,
        deliver: Delivery,
    ) -> None:
        self.me = me
        self.effects = effects
        self.rng = rng
        self.settings = settings
        self.base = base
        self.zones = zones
        self.may = may  # None: everybody may everything
        self.timers = Timetable(effects)
        self.counts = GatewaysCounts()
        self.stopped = True
        self.zone: Scope = "" if base is None else base.zone
        self.fellows = Circle()
        self.managers = Circle()
        self.touched: dict[Book, dict[str, None]] = {book: {} for book in Book}
        self._deliver = deliver
        self._stamp = 0
        # A random start, so that a reply to an earlier life of this node matches nothing.
        self._next_id = 1 + rng.getrandbits(48)

    @property
    def manages(self) -> bool:
        """Whether this node is in the management zone, as far as it looked."""
        return len(self.managers.ring) > 0

    def send(self, to: NodeId, message: Message, now: float) -> None:
        """Send; a node that plays two parts hears itself at once."""
        if to == self.me:
            self._deliver(message, now)
        else:
            self.effects.send(to, message)

    def touch(self, book: Book, topic: str, now: float) -> None:
        """Something that peers tell of a topic changed: look at it with the next batch."""
        self.touched[book][topic] = None
        self.flush_soon(now)

    def flush_soon(self, now: float) -> None:
        """Send what changed, and what changes until then."""
        if FLUSH not in self.timers:
            self.timers.set(FLUSH, now + self.settings.batch_delay)

    def begin(self, now: float) -> None:
        """Stamps of a later life are higher, unless the clock was set back: digests mend that."""
        self._stamp = max(self._stamp, int(now * 1000.0), 0)

    def next_stamp(self) -> int:
        """Higher than all before."""
        self._stamp += 1
        return self._stamp

    def next_id(self) -> int:
        """A number for one request."""
        self._next_id += 1
        return self._next_id


class Circle:
    """The ring of a zone as this node last looked at it; it changes only by `follow`.

    So who is responsible for a key is the same for everything that was placed by it.
    """

    __slots__ = ("ring",)

    def __init__(self) -> None:
        self.ring = Ring()

    def clear(self) -> None:
        """Nobody is in it."""
        self.ring = Ring()

    def fill(self, view: MembershipView) -> None:
        """Take a whole view."""
        self.ring = Ring(view.members())

    def follow(
        self, view: MembershipView, names: dict[NodeId, None]
    ) -> tuple[list[NodeId], list[NodeId]]:
        """Look again at these names; return who is new and who is gone."""
        new = [name for name in names if name in view and self.ring.add(name)]
        gone = [name for name in names if name not in view and self.ring.remove(name)]
        return new, gone

    def responsible_for(self, key: Vid) -> NodeId | None:
        """Who is responsible, if anybody is there."""
        return self.ring.responsible_for(key) if len(self.ring) else None
