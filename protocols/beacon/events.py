"""What beacons tell siblings and applications."""

from __future__ import annotations

from overlay.ids import NodeId
from overlay.protocol import Event, Scope


class PeerFound(Event, frozen=True):
    """A node of this overlay that this one did not know is tried now, or told to the zones."""

    peer: NodeId
    zone: Scope
    endpoints: tuple[str, ...]
    how: str  # answer, query, announcement, last known, or who suggested it


class NobodyFound(Event, frozen=True):
    """Alone for `waited` seconds in spite of queries: whoever knows of others may `suggest` them.

    Told again at each later query, which are rarer and rarer.
    """

    zone: Scope
    waited: float
