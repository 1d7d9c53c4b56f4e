"""Moving between brokers, as applications do it.

with peer.mobile.subscribe("celsius > 30") as hot:  # kept while this peer is away
    await peer.move_to("b2")  # a broker: its name, HOST:PORT, or nothing for the nearest one
    async for found in hot:
        print("lost" if isinstance(found, Gap) else found.item)
"""

from __future__ import annotations

import logging
from itertools import count
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import msgspec
import trio

from nodes.closing import Closing
from nodes.content import ATTACHED_WITHIN, NotAttached, as_constraint
from overlay.errors import LocalProtocolError
from overlay.logs import about
from protocols.discovery import BrokerMoved, Requester
from protocols.mobility import (
    Follower,
    Gap,
    Keeper,
    Mobility,
    MobilitySettings,
    NotKept,
    Received,
    Settled,
    TreeStands,
)

if TYPE_CHECKING:
    from nodes.content import PeerContent
    from nodes.event_stream import EventStream
    from nodes.node import Node
    from overlay.predicates import Constraint
    from protocols.discovery import Candidate
    from protocols.mobility.box import Box

log = logging.getLogger("overlay.mobility")

CAPACITY = (
    65_536  # events that a reader may lag behind: all that a broker keeps by default, and more
)
Found: TypeAlias = Received | Gap


class MobileSubscription(Closing):
    """What matches, wherever this peer is: `Received`, and `Gap` in the place of what is lost.

    Read it with `async for`, and `close` it or use it in `with`. A reader that is too slow loses
    the oldest, counted in `dropped`.
    """

    def __init__(self, node: Node, name: str, wanted: Constraint) -> None:
        self._node = node
        self.name = name
        self.constraint = wanted
        self.is_open = True
        self._stream: EventStream[Found] = node.events(
            Received,
            Gap,
            where=lambda event: isinstance(event, Gap) or event.subscription == name,
            capacity=CAPACITY,
        )
        node.call(node.protocol(Follower).subscribe, name, wanted)

    @property
    def dropped(self) -> int:
        """What a slow reader lost."""
        return self._stream.dropped

    def close(self) -> None:
        """Want no more; what is here can still be read."""
        if self.is_open:
            self.is_open = False
            self._stream.close()
            if self._node.is_running:
                self._node.call(self._node.protocol(Follower).unsubscribe, self.name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Found:
        return await anext(self._stream)


class PeerMobile:
    """How one node moves; or, at a broker, what is kept for those who do."""

    def __init__(self, node: Node, content: PeerContent) -> None:
        self._node = node
        self._content = content
        self._numbers = count(1)
        self.followed = 0  # moves to a broker that discovery found nearer
        self.not_followed = 0  # such brokers that did not take this node, or came too soon
        node.control.register("mobile", self.facts)
        node.control.register("mobile-move", self._move)
        if node.config.section(MobilitySettings).follow_nearest:
            node.in_background(self._follow)

    def subscribe(self, constraint: Constraint | str, *, name: str = "") -> MobileSubscription:
        """Get everything that matches, once and in order, also what is published while away.

        A peer that comes back after a restart subscribes by the same `name` first, and then turns
        to a broker.
        """
        if not self._node.driver.host.has(Follower):
            raise LocalProtocolError(
                f"{self._node.name} is a broker, which does not move: use content.subscribe"
            )
        name = name or f"mobile-{next(self._numbers)}"
        return MobileSubscription(self._node, name, as_constraint(constraint))

    async def move_to(self, broker: str = "") -> str:
        """See `Peer.move_to`; it returns once the broker answers, and keeps for this node.

        With lossless handover what is published meanwhile is sent when the tree stands: `stands`
        waits for that.
        """
        name = await self._content.name_of(broker)
        await self._turn_to(name)
        return name

    async def _turn_to(self, name: str) -> None:
        node = self._node
        with node.events(Settled, NotKept, where=lambda event: event.broker == name) as answers:
            await self._content.turn_to(name, node.protocol(Mobility).movein)
            follower = node.protocol(Follower)
            with trio.move_on_after(ATTACHED_WITHIN):
                while follower.wants() and follower.broker != name:
                    answer = await anext(answers)
                    if isinstance(answer, NotKept):
                        raise NotAttached(f"{name} keeps nothing for this node: {answer.reason}")
        if follower.wants() and follower.broker != name:
            raise NotAttached(f"{name} does not say that it keeps for this node")

    async def stands(self) -> bool:
        """Wait until the trees stand at the broker, and what was held is published (end of t4).

        False: some broker did not answer in time. At once where nothing is waited for.
        """
        machine = self._node.protocol(Mobility)
        with self._node.events(TreeStands) as ends:
            if not machine.is_moving:
                return True
            return (await anext(ends)).complete

    def leave(self) -> None:
        """Go away from the broker: what matches is kept for `mobility.keep_for`."""
        self._node.call(self._node.protocol(Mobility).moveout)

    # -- automatic hand-over --------------------------------------------------------------------

    async def _follow(self) -> None:
        """Move to whichever broker discovery finds clearly nearer, several looks in a row."""
        node = self._node
        stay = node.config.section(MobilitySettings).stay
        arrived = -stay
        with node.events(BrokerMoved) as moves:
            node.call(node.protocol(Requester).watch)
            async for move in moves:
                if move.new.name == self._content.broker:
                    continue
                await trio.sleep(max(0.0, arrived + stay - trio.current_time()))
                if await self._take(move.new, move.reason):
                    arrived = trio.current_time()

    async def _take(self, broker: Candidate, reason: str) -> bool:
        self._node.learn(broker.name, broker.endpoints)
        try:
            await self._turn_to(broker.name)
        except NotAttached as error:
            self.not_followed += 1
            log.warning("not moved: %s", error, extra=about("not-moved", "mobility"))
            return False
        self.followed += 1
        log.info("moved to %s: %s", broker.name, reason, extra=about("moved", "mobility"))
        return True

    # -- what the control socket tells ----------------------------------------------------------

    async def _move(self, broker: str = "") -> Any:
        """Move, and tell where it is once the trees stand, or have had their time."""
        await self.move_to(broker)
        with trio.move_on_after(ATTACHED_WITHIN):
            await self.stands()
        yield self.facts()

    def facts(self) -> dict[str, Any]:
        """Where this client is and what it wants; or what this broker keeps for whom."""
        node = self._node
        host = node.driver.host
        told: dict[str, Any] = {"node": node.name, "broker": self._content.broker}
        moving = node.protocol(Mobility)
        told["counts"] = msgspec.to_builtins(moving.counts)
        if host.has(Keeper):
            keeper = node.protocol(Keeper)
            now = node.driver.now()
            told |= {
                "role": "broker",
                "boxes": [_facts(box, now) for box in keeper.boxes()],
                "keeping": msgspec.to_builtins(keeper.counts),
            }
        else:
            follower = node.protocol(Follower)
            told |= {
                "role": "client",
                "kept_at": follower.broker,
                "moving": moving.is_moving,
                "subscriptions": {name: str(one) for name, one in follower.wants().items()},
                "followed": self.followed,
                "not_followed": self.not_followed,
                "following": msgspec.to_builtins(follower.counts),
            }
        return told


def _facts(box: Box, now: float) -> dict[str, Any]:
    """What people want to know of a box."""
    state = f"fetched by {box.outlet}" if box.by else "away" if box.is_away else "here"
    return {
        "subscriber": box.client,
        "state": state,
        "subscriptions": len(box.wants),
        "kept": len(box.lines) + len(box.held),
        "bytes": box.bytes,
        "silent_for": round(now - box.heard_at, 3),
        "keep_for": box.keep_for,
    }
