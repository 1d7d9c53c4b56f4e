"""How a request ends: exactly one of these is emitted for each."""

from overlay.ids import NodeId
from overlay.protocol import Event


class EchoAnswered(Event, frozen=True):
    """`peer` sent the payload of request `id` back, unchanged."""

    peer: NodeId
    id: int
    round_trip: float  # seconds since the first try
    tries: int


class EchoTimedOut(Event, frozen=True):
    """`peer` answered none of the tries of request `id`."""

    peer: NodeId
    id: int
    tries: int
