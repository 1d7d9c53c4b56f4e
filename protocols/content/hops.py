"""Whom this node hears: neighbours, clients, a client's broker; and what their ledgers may hold."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeAlias

import msgspec

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.predicates import Constraint, WireConstraint
from protocols.content.config import ContentSettings
from protocols.content.grafts import Graft
from protocols.content.interface import Advertised, EntryId, Subscribed, owner_of
from protocols.content.ledger import Copy, Line
from protocols.content.messages import AdvertisementLine, GraftLine, Role

REMEMBERED = 20_000  # constraints that need not be read again

_encoded = msgspec.msgpack.Encoder().encode
_decoded = msgspec.msgpack.Decoder(WireConstraint).decode

Row: TypeAlias = Advertised | Subscribed | Graft
"""A row of one of the tables."""

BROKER: Role = "broker"
CLIENT: Role = "client"


class Room(NamedTuple):
    """How many lines of each kind one hop may tell."""

    advertisements: int
    subscriptions: int


class Hop:
    """A node one step away."""

    __slots__ = ("advertisements", "copy", "expires", "is_up", "role", "room", "subscriptions")

    def __init__(self, role: Role, config: ContentSettings) -> None:
        self.role = role
        self.expires = 0.0
        self.is_up = False  # it said that it hears this node, too
        self.copy = Copy()
        self.advertisements = 0
        self.subscriptions = 0
        self.room = (
            Room(config.max_advertisements, config.max_subscriptions)
            if role == BROKER
            else Room(config.client_advertisements, config.client_subscriptions)
        )

    def has_room(self, *, advertisement: bool) -> bool:
        """Whether one line more of that kind fits."""
        if advertisement:
            return self.advertisements < self.room.advertisements
        return self.subscriptions < self.room.subscriptions

    def count(self, change: int, *, advertisement: bool) -> None:
        """So many lines more of that kind."""
        if advertisement:
            self.advertisements += change
        else:
            self.subscriptions += change


def read_line(src: NodeId, role: Role, line: Line) -> Row:
    """The row that a line stands for; RemoteProtocolError when it is not that hop's to tell."""
    check_id(line.id)
    if isinstance(line, GraftLine):
        if role == CLIENT:
            raise RemoteProtocolError("content-not-yours", f"a graft from {src}")
        return Graft(line.id, line.epoch, line.up, line.live, src)
    if role == CLIENT:
        if owner_of(line.id) != src or line.path:
            raise RemoteProtocolError("content-not-yours", f"{line.id[:64]!a} from {src}")
    elif not line.path or line.path[0] != src:
        raise RemoteProtocolError("content-bad-path", f"of {line.id[:64]!a} from {src}")
    constraint = _read_constraint(_encoded(line.constraint))
    if isinstance(line, AdvertisementLine):
        return Advertised(
            *(line.id, line.epoch, constraint, line.model, line.whole, line.note, src, line.path),
            graft=line.graft if role == CLIENT else 0,
        )
    return Subscribed(line.id, constraint, line.model, src, line.path)


@lru_cache(maxsize=REMEMBERED)
def _read_constraint(data: bytes) -> Constraint:
    """The same lines come from several neighbours, and again whenever a path changes.

    By bytes, since 1 and true are equal in Python and not here.
    """
    return Constraint.from_wire(_decoded(data))


def check_id(entry: EntryId) -> None:
    """See that an id has an owner and a name."""
    owner, slash, name = entry.partition("/")
    if not (owner and slash and name):
        raise RemoteProtocolError("content-bad-id", f"{entry[:64]!a}")
