"""Content-based routing, as applications hold it.

await peer.content.attach("b1")  # a broker: its name, HOST:PORT, or nothing for the nearest one
with peer.content.subscribe('room = "attic", celsius > 30') as hot:
    async for found in hot:
        print(found.publisher, found.item)
"""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Self

import msgspec
import trio

from nodes.closing import Closing
from nodes.discovery import find
from overlay.errors import OverlayError
from overlay.net.addresses import parse_endpoint
from overlay.predicates import Constraint
from overlay.protocol import PeerMet
from protocols.content import (
    Advertised,
    BrokerAttached,
    Content,
    Delivered,
    EntryId,
    EntryRefused,
    Subscribed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodes.event_stream import EventStream
    from nodes.node import Node
    from overlay.predicates import Item

ATTACHED_WITHIN = 5.0  # s for a broker to answer


class NotAttached(OverlayError):
    """The broker does not answer, or does not take this node."""


def as_constraint(wanted: Constraint | str) -> Constraint:
    """A constraint, or its readable form."""
    return Constraint.parse(wanted) if isinstance(wanted, str) else wanted


class Advertisement(Closing):
    """What this node advertises: publish here, and `close` it or use it in `with`."""

    def __init__(self, content: PeerContent, name: str, constraint: Constraint) -> None:
        self._content = content
        self.name = name
        self.constraint = constraint
        self.is_open = True

    def publish(self, item: Item) -> int:
        """Send to everybody who wants it; returns its number in this advertisement's order."""
        return self._content.publish(self.name, item)

    def close(self) -> None:
        """Withdraw it."""
        if self.is_open:
            self.is_open = False
            self._content.unadvertise(self.name)


class ContentSubscription(Closing):
    """What matches a constraint: read it with `async for`, and `close` it or use it in `with`.

    A reader that is too slow loses the oldest, counted in `dropped`.
    """

    def __init__(self, content: PeerContent, node: Node, name: str, wanted: Constraint) -> None:
        self._content = content
        self.name = name
        self.constraint = wanted
        self.is_open = True
        entry: list[EntryId] = []
        self._stream: EventStream[Delivered] = node.events(
            Delivered, where=lambda event: event.subscription in entry
        )
        entry.append(node.call(partial(self._subscribe, node.protocol(Content))))

    def _subscribe(self, content: Content, now: float) -> EntryId:
        return content.subscribe(self.name, self.constraint, now)

    @property
    def dropped(self) -> int:
        """What a slow reader lost."""
        return self._stream.dropped

    def close(self) -> None:
        """Want no more; what is here can still be read."""
        if self.is_open:
            self.is_open = False
            self._stream.close()
            self._content.unsubscribe(self.name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivered:
        return await anext(self._stream)


class PeerContent:
    """The content-based routing of one node, which is a broker or has one."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._numbers = count(1)
        node.control.register("content", self._tell)

    @property
    def machine(self) -> Content:
        """The protocol."""
        return self._node.protocol(Content)

    @property
    def broker(self) -> str | None:
        """Who routes for this node: itself, its broker while that answers, or nobody."""
        return self.machine.broker

    @property
    def advertisements(self) -> list[Advertised]:
        """What this node knows to be advertised; a client knows its own alone."""
        return list(self.machine.router.srt)

    @property
    def subscriptions(self) -> list[Subscribed]:
        """Who wants what, as far as this node must know: its own, and those that came here."""
        return list(self.machine.subscriptions())

    async def attach(self, broker: str = "") -> str:
        """Have that broker from now on: its name, HOST:PORT, or the nearest; returns its name.

        It is told everything that this node advertises and subscribes to, then and whenever it
        comes back.
        """
        name = await self.name_of(broker)
        await self.turn_to(name, self.machine.attach)
        return name

    async def turn_to(self, name: str, turn: Callable[[str, float], object]) -> None:
        """Turn to the broker of that name by a command, and wait until it answers."""
        machine = self.machine
        with self._node.events(
            BrokerAttached, EntryRefused, where=lambda event: event.broker == name
        ) as answers:
            self._node.call(turn, name)
            with trio.move_on_after(ATTACHED_WITHIN):
                while machine.broker != name:
                    answer = await anext(answers)
                    if isinstance(answer, EntryRefused) and not answer.id:
                        raise NotAttached(f"{name} does not take this node: {answer.reason}")
        if machine.broker != name:
            raise NotAttached(f"{name} does not answer: is it a broker?")

    async def name_of(self, broker: str) -> str:
        """The name of a broker that is given by its name, by HOST:PORT, or as the nearest one."""
        if not broker:
            found = await find(self._node)
            self._node.learn(found.name, found.endpoints)
            return found.name
        if ":" not in broker:
            return broker
        place = str(parse_endpoint(broker))
        with self._node.events(PeerMet, where=lambda event: place in event.endpoints) as met:
            self._node.meet(place)
            with trio.move_on_after(ATTACHED_WITHIN):
                return str((await anext(met)).peer)
        raise NotAttached(f"nobody answers at {broker}")

    def advertise(
        self, constraint: Constraint | str, *, name: str = "", whole: bool = False
    ) -> Advertisement:
        """Announce what this node is going to publish, `whole`: to every broker."""
        name = name or f"advertisement-{next(self._numbers)}"
        told = as_constraint(constraint)
        self._node.call(partial(self.machine.advertise, whole=whole), name, told)
        return Advertisement(self, name, told)

    def unadvertise(self, name: str) -> None:
        """Withdraw an advertisement."""
        if self._node.is_running:
            self._node.call(self.machine.unadvertise, name)

    def publish(self, name: str, item: Item) -> int:
        """Publish under an advertisement of that name."""
        return self._node.call(self.machine.publish, name, item)

    def subscribe(self, constraint: Constraint | str, *, name: str = "") -> ContentSubscription:
        """Get everything that matches, from whichever publisher."""
        name = name or f"subscription-{next(self._numbers)}"
        return ContentSubscription(self, self._node, name, as_constraint(constraint))

    def unsubscribe(self, name: str) -> None:
        """End a subscription."""
        if self._node.is_running:
            self._node.call(self.machine.unsubscribe, name)

    def _tell(self) -> dict[str, Any]:
        """What the control socket tells."""
        machine = self.machine
        return {
            "node": self._node.name,
            "role": "broker" if machine.is_broker else "client",
            "broker": machine.broker,
            "neighbours": list(machine.neighbours()),
            "clients": len(machine.clients()),
            "advertisements": len(machine.router.srt),
            "subscriptions": len(machine.router.prt),
            "counts": msgspec.to_builtins(machine.counts),
        }
