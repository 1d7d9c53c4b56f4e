"""A node changes its zone or its address, and its streams go along.

Whoever moves says so to all with whom it shares a stream (`Moving`), leaves its zone, and goes on
in the other one as the same publisher and the same receiver, with the numbers that it had. Until
`move_within` everybody keeps the places of before: the mover goes on to send to its old receivers
and to get from its old sources, wherever they are, by the names that it knows them by. Meanwhile
the zones find the new way as they always do: members and gateways hear of interest, and make
offers. A receiver that has all that comes before such an offer takes it (`Offer.start`). Another
one asks who still has what it lacks (`Offer.oldest`) for a Begin, and leaves its old source when
that promises all: what was there a moment ago may be trimmed. So the two ways overlap, numbers tell
copies from news, and nothing is lost though nobody waits. In nack mode history does the same.

A gateway on the way turns round: what it handed out of its zone comes in, or the other way. It,
too, keeps its old receivers until they found the new way, and takes itself to its new source.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from overlay.ids import NodeId
from overlay.protocol import Effects, Event, Group, Message, UdpAddress
from overlay.tracing import Trace
from protocols.topics.arrivals import Arrivals, Past
from protocols.topics.core import Core
from protocols.topics.departures import Departures
from protocols.topics.messages import ArrivalKey
from protocols.topics.modes import Mode
from protocols.topics.publishing import Publisher
from protocols.topics.receiving import Incoming
from protocols.topics.subscribing import Subscriptions
from protocols.topics.subscription import Subscription


class Luggage(NamedTuple):
    """What a node takes along."""

    publishers: tuple[Publisher, ...]
    streams: tuple[Incoming, ...]
    subscriptions: tuple[Subscription, ...]
    past: dict[ArrivalKey, Past]

    @property
    def topics(self) -> tuple[str, ...]:
        """By name: what gateways are told of."""
        named = [one.pattern for one in self.subscriptions if one.is_exact]
        return tuple(dict.fromkeys((*named, *(one.topic for one in self.publishers))))

    @property
    def partners(self) -> list[NodeId]:
        """With whom its streams are shared: it must be able to reach them from elsewhere."""
        found = {stream.source: None for stream in self.streams}
        for publisher in self.publishers:
            found.update({seat.peer: None for seat in publisher.relations})
        return list(found)


def pack(
    core: Core,
    departures: Departures,
    arrivals: Arrivals,
    subscriptions: Subscriptions,
    now: float,
) -> Luggage:
    """Say that this node moves, and take its streams out of the machine; relays stay behind."""
    publishers = tuple(departures.publishers.values())
    for publisher in publishers:
        publisher.flush(now)
        publisher.on_moving(now)
        departures.forget(publisher)
    streams, past = arrivals.give_away()
    for stream in streams:
        if stream.mode is Mode.ACK and stream.begun:
            stream.tell_moving()
    subscribed = tuple(subscriptions.all())
    subscriptions.stop()
    core.effects = Nowhere()
    return Luggage(publishers, streams, subscribed, past)


class Nowhere(Effects):
    """The effects of streams that are on their way: what is published then leaves on arrival."""

    __slots__ = ()

    def send(self, to: NodeId | Sequence[NodeId], msg: Message) -> None:
        """Nobody is reached."""

    def cast(self, address: UdpAddress | Group, msg: Message, reader: NodeId = "") -> None:
        """Nobody is reached."""

    def set_timer(self, key: Hashable, at: float) -> None:
        """Timers are set anew on arrival."""

    def cancel_timer(self, key: Hashable) -> None:
        """There is none."""

    def store(self, key: bytes, value: bytes | None, token: Hashable) -> None:
        """Streams keep nothing."""

    def at_tick_end(self, callback: Callable[[float], None]) -> None:
        """There is no tick."""

    def emit(self, event: Event) -> None:
        """Nobody listens."""

    def trace(self, record: Trace) -> None:
        """Nobody records."""
