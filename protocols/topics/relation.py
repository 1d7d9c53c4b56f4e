"""What a sender knows of one receiver of a stream."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from overlay.ids import NodeId
from protocols.topics.messages import RELAY

ALL_OTHER_ZONES = "@"  # whom the gateway of a publisher's own zone stands for
EVERYBODY = ""  # in the place of a zone: all who were let go at once, and may come back


class Seat(NamedTuple):
    """A receiver's part in a stream: a gateway may have one for itself and one for others."""

    peer: NodeId
    relay: bool = False  # it stands for others


class Orphan(NamedTuple):
    """A zone whose gateway is gone: what it lacked is kept for who comes next."""

    position: int  # all behind it have everything up to here
    until: float
    excused: int = 0  # as of a relation


class Relation:
    """From the first offer (`receiver` is None) over Accept to the end.

    In ack mode `acked` is how far it has everything, and `sent` how far it was sent.
    """

    __slots__ = (
        "acked",
        "acked_end",
        "ask_at",
        "ask_pause",
        "begun",
        "discovered_at",
        "excused",
        "flags",
        "heard_at",
        "inherited",
        "live",
        "lost_at",
        "moves_until",
        "offer_at",
        "offer_pause",
        "peer",
        "receiver",
        "resent",
        "seat",
        "sent",
        "slow",
        "stands_for",
        "waits_since",
    )

    def __init__(
        self, seat: Seat, stands_for: str, position: int, offset: int, pause: float, now: float
    ) -> None:
        self.seat = seat
        self.peer = seat.peer
        self.flags = RELAY if seat.relay else 0  # of all Data for it
        self.stands_for = stands_for  # a zone, ALL_OTHER_ZONES, or nobody but itself: ""
        self.inherited = False  # it goes on where another one was that stood for the same
        self.receiver: int | None = None  # its life, once it accepted
        self.begun = 0  # the first message that it was promised
        self.live = 0  # the first one that is news to who is new behind it; 0: the same
        self.acked = position
        self.acked_end = offset  # of `acked` in the bytes of the stream
        self.sent = position
        self.discovered_at = self.heard_at = now
        self.offer_at = now
        self.offer_pause = pause
        self.ask_at = inf
        self.ask_pause = 0.0
        self.lost_at: float | None = None  # when membership removed it
        self.moves_until = 0.0  # it, or the publisher, changes its zone: it keeps its place
        self.slow = False  # and told so
        self.waits_since = now  # when the first message that it did not acknowledge was sent
        self.excused = 0  # silent since, and up to here who had its place, and left, had it all
        self.resent: dict[int, float] = {}  # when which chunk was sent again

    @property
    def operational(self) -> bool:
        """Whether it accepted."""
        return self.receiver is not None
