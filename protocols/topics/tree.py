"""Pruned broadcast in a zone: a chunk goes down a tree over the overlay's links.

Range splitting as in `protocols/routing` ([El-Ansary03]), but without custody: what is lost on the
way the stream's own reliability brings. Arcs in which nobody is interested are left out (§3.1).
"""

from __future__ import annotations

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId, vid_from_wire, vid_of, vid_to_wire
from overlay.tracing import Level
from protocols.routing.interface import Arc, everybody_but, split
from protocols.topics import tracing
from protocols.topics.core import Core
from protocols.topics.messages import Data, TreeData

MOST_HOPS = 64  # far above log2 n: only a loop gets there


def cast(core: Core, data: Data) -> None:
    """Begin a tree at this node."""
    _hand_on(core, data, core.me, everybody_but(core.me), 1)


def hand_on(core: Core, src: NodeId, msg: TreeData) -> None:
    """Send a chunk on to those in its arc; RemoteProtocolError when I am not in it."""
    arc = Arc(vid_from_wire(msg.start), vid_from_wire(msg.upto))
    if not arc.holds(vid_of(core.me)):
        raise RemoteProtocolError("range-elsewhere", f"{src} hands over a range without me")
    if arc.holds(vid_of(src)):
        raise RemoteProtocolError("range-too-wide", f"{src} hands over its own place, too")
    if msg.hops >= MOST_HOPS:
        raise RemoteProtocolError("hop-limit", f"{msg.hops} hops")
    data = untied(msg)
    for side in arc.without(vid_of(core.me)):
        _hand_on(core, data, msg.root, side, msg.hops + 1)


def untied(msg: TreeData) -> Data:
    """What it brings, without the way."""
    return Data(
        msg.origin,
        msg.stream,
        msg.topic,
        msg.mode,
        msg.first,
        msg.count,
        msg.oldest,
        msg.sent_at,
        msg.flags,
        msg.payload,
    )


def _hand_on(core: Core, data: Data, root: NodeId, arc: Arc, hops: int) -> None:
    anybody = core.audience.anybody_in
    if not anybody(arc.start, arc.upto, data.topic):
        return
    # Deeper than a tree over good links gets: halve the range, over links or not.
    balanced = hops > len(core.members).bit_length() + 1
    for part in split(arc, core.members.ring(), core.links.neighbours(), balanced=balanced):
        start, upto = part.arc
        if anybody(start, upto, data.topic):
            core.counts.forwarded += 1
            if core.effects.tracing >= Level.MESSAGES:
                tracing.forwarded(core, data, part.head, hops)
            core.effects.send(
                part.head,
                TreeData(
                    data.origin,
                    data.stream,
                    data.topic,
                    data.mode,
                    data.first,
                    data.count,
                    data.oldest,
                    data.sent_at,
                    data.flags,
                    vid_to_wire(start),
                    vid_to_wire(upto),
                    hops,
                    root,
                    data.payload,
                ),
            )
