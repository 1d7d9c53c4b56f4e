"""Where a message for a key goes next: greedily nearer, over links that exist."""

from __future__ import annotations

from collections.abc import Container

from overlay.ids import FULL_SPACE, NodeId, Ring, Vid, vid_of
from protocols.topology.interface import TopologyView

WALK = 3  # nearest members by the view that are tried where no link leads nearer


def apart(a: Vid, b: Vid) -> int:
    """The distance of two places, the shorter way around."""
    return min(FULL_SPACE.distance(a, b), FULL_SPACE.distance(b, a))


def next_hop(
    me: NodeId,
    target: NodeId,
    links: TopologyView,
    ring: Ring,
    lost: Container[NodeId] = (),
    *,
    direct: bool = False,
) -> NodeId | None:
    """The neighbour nearest to the target, if it is nearer than I am; None when no way is left.

    Links are symmetric, so the way may lead around the ring in either direction; that halves the
    hops of a clockwise walk. Every hop comes strictly nearer, so a message cannot loop while views
    agree on the target; only around a target that is lost to me does it take a detour.
    """
    if target not in lost and (direct or links.is_neighbour(target)):
        return target
    goal = vid_of(target)
    distance = apart(vid_of(me), goal)
    nearer = {apart(vid_of(peer), goal): peer for peer in links.neighbours() if peer not in lost}
    nearest = min(nearer, default=distance)
    if nearest < distance:
        return nearer[nearest]
    # My own ring links are not up yet, or their ends are lost: walk by the view instead.
    for peer in (*ring.successors(me, WALK), *ring.predecessors(me, WALK), target):
        if peer not in lost and apart(vid_of(peer), goal) < distance:
            return peer
    for peer in (*ring.successors(target, 1), *ring.predecessors(target, 1)):
        if peer not in lost and peer != me:
            return peer
    return None
