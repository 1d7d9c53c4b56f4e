"""Who stands for a zone: computed alike by everybody from the full view, without votes."""

from __future__ import annotations

from heapq import nsmallest
from typing import TypeAlias

from overlay.ids import NodeId, Vid, vid_of
from protocols.membership.interface import MembershipView
from protocols.zones.interface import DELEGATE

AVAILABLE = "delegate"
"""The attribute by which a member says that it is no candidate, when it is False."""

Rank: TypeAlias = tuple[bool, int, Vid, NodeId]


def rank(view: MembershipView, name: NodeId) -> Rank | None:
    """The lower the better; None for who is no candidate.

    Who serves stays: a newcomer displaces nobody. Of others the oldest life comes first, since
    who lived long is likely to live on; then the ring decides.
    """
    record = view.record(name)
    if record is None or not record.present:
        return None
    if view.attributes(name).get(AVAILABLE) is False:
        return None
    return (DELEGATE not in view.roles(name), record.born, vid_of(name), name)


def elect(view: MembershipView, count: int) -> list[Rank]:
    """The best candidates, the best first."""
    ranks = (rank(view, name) for name in view.ring())
    return nsmallest(count, (found for found in ranks if found is not None))


def serving(elected: list[Rank]) -> tuple[NodeId, ...]:
    """Those of the elected who serve already."""
    return tuple(name for idle, _, _, name in elected if not idle)
