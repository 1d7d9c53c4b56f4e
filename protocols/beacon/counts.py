"""How often what happened, since the start."""

from __future__ import annotations

import msgspec


class BeaconCounts(msgspec.Struct):
    """Shown by `overlay status`."""

    queries: int = 0  # that this node sent
    answered: int = 0  # queries of others
    spared: int = 0  # queries left to others to answer
    announced: int = 0
    held_back: int = 0  # announcements that others made unnecessary
    heard: int = 0  # beacons of this overlay
    foreign: int = 0  # beacons of other overlays or authorities
    limited: int = 0  # beacons past the rate of a name or a host, and answers past ours
    stray: int = 0  # answers to nothing that was asked
    unreachable: int = 0  # beacons that told no address that could be used
    found: int = 0  # candidates that were tried or told
    crowded_out: int = 0  # candidates for which there was no room
