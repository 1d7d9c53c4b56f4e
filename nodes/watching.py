"""What a node tells to those who go on watching it: a dashboard, or whoever speaks JSON.

`facts` is a conversation. The watcher sends a line with the names of what it wants to know, the
same that the commands ask for (`["topology", "topics"]`), and gets what is not as it was told
last. So a node does nothing for a watcher that does not ask, and little for one that does: what
a look costs is in the watcher's hands. `log` goes on telling events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from nodes.facts import event_facts
from nodes.federation import ZONE_EVENTS
from nodes.topic_events import TOPIC_EVENTS
from overlay.errors import LocalProtocolError
from overlay.protocol import Event, LinkLost, LinkUp
from protocols.discovery import BrokerFound, BrokerMoved, NoBrokerFound, Requester
from protocols.gateways import Gateways
from protocols.membership import Membership
from protocols.zones import MANAGEMENT, Zones

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from nodes.distances import Distances
    from nodes.node import Node
    from nodes.service import Conversation
    from overlay.host import Host

NAMES = (  # what may be watched: none of them changes anything
    *("status", "glance", "members", "topology", "zones", "topics", "time", "dht-stats"),
    *("colony", "resources", "trace", "discovery", "broker", "bdn"),
)
FAR = 64  # links out of the zone that a glance names


class WatchService:
    """Registers `facts`, `glance`, `log`, `discovery` and `latency` with a node's socket."""

    def __init__(
        self,
        node: Node,
        distances: Distances | None = None,
        member_events: tuple[type[Event], ...] = (),
    ) -> None:
        self._node = node
        self._distances = distances
        self._member_events = member_events
        self._last: BrokerFound | NoBrokerFound | None = None
        control = node.control
        control.register("glance", self.glance)
        control.register("discovery", self.discovery)
        control.register("log", self._log)
        control.register("latency", self._latency)
        control.register_talk("facts", self._facts)

    def hear(self, host: Host) -> None:
        """The node is assembled: remember how its discoveries end."""
        for kind in (BrokerFound, NoBrokerFound):
            host.listen(kind, self._on_discovery)

    def _on_discovery(self, end: BrokerFound | NoBrokerFound) -> None:
        self._last = end

    # -- handlers -----------------------------------------------------------------------------

    def glance(self) -> dict[str, Any]:
        """A node in one line: its part in the overlay, what it moved, and what it dropped."""
        node = self._node
        host, driver = node.driver.host, node.driver.status()
        base = host.protocol(Membership, node.zone).view if self._is_member else None
        peers = [link.peer for link in driver.links if link.peer and link.state == "open"]
        counters = driver.counters
        return self.heading() | {
            "delegate": host.has(Zones) and host.protocol(Zones).is_delegate,
            "gateway_of": len(host.protocol(Gateways).topics_held()) if host.has(Gateways) else 0,
            "members": 0 if base is None else len(base),
            "links": len(peers),
            "far": [one for one in peers if base is not None and one not in base][:FAR],
            "waiting": sum(link.waiting + link.bulk_waiting for link in driver.links),
            "sent": counters.get("bytes sent", 0),
            "received": counters.get("bytes received", 0),
            "dropped": sum(count for name, count in counters.items() if _is_loss(name)),
            "refused": sum(driver.refusals.values()),
        }

    def discovery(self) -> dict[str, Any]:
        """How the last search for a broker ended, and all candidates of it."""
        host, last = self._node.driver.host, self._last
        told: dict[str, Any] = {"counts": {}, "ended": last is not None}
        if host.has(Requester):
            told["counts"] = msgspec.to_builtins(host.protocol(Requester).counts)
        if last is not None:
            told["candidates"] = [msgspec.to_builtins(one) for one in last.candidates]
            found = isinstance(last, BrokerFound)
            told["chosen"] = last.winner.name if isinstance(last, BrokerFound) else ""
            told["reason"] = "" if found else getattr(last, "reason", "")
        return self.heading() | told

    async def _latency(self) -> AsyncIterator[dict[str, Any]]:
        """Measure the round trip to each linked peer, unless that was done lately; told once."""
        if self._distances is None:
            raise LocalProtocolError("this node measures no round trips")
        peers = [link.name for link in self._node.driver.links if link.name]
        yield self.heading() | {"round_trips": await self._distances.measure(peers)}

    async def _log(self, members: bool = False) -> AsyncIterator[dict[str, Any]]:
        """First who tells, then each event; of the zone only if `members`: all there see those."""
        node = self._node
        kinds: tuple[type[Event], ...] = (LinkUp, LinkLost, *TOPIC_EVENTS, BrokerMoved)
        if members:
            kinds += (*self._member_events, *ZONE_EVENTS)
        view = node.protocol(Membership, node.zone).view if self._is_member else None
        with node.events(*kinds, where=_concerns_people) as events:
            yield self.heading() | {"event": "watching"}
            async for event in events:
                yield event_facts(event, view)

    async def _facts(self, talk: Conversation) -> None:
        """Answer each line of names by what changed since the answer before."""
        told: dict[str, bytes] = {}
        await talk.say(self.heading())
        async for line in talk.lines():
            await talk.say(self.look(_names(line), told))

    def look(self, names: list[str], told: dict[str, bytes]) -> dict[str, msgspec.Raw]:
        """What of it is not as it was `told`, which is brought up to date."""
        changed: dict[str, msgspec.Raw] = {}
        for name in names:
            handler = self._node.control.handler(name)
            if handler is None:
                continue  # a supervisor is in no zone, and only a BDN keeps a list of brokers
            facts = msgspec.json.encode(handler())
            if told.get(name) != facts:
                told[name] = facts
                changed[name] = msgspec.Raw(facts)
        return changed

    @property
    def _is_member(self) -> bool:
        zone = self._node.zone
        return bool(self._member_events) and self._node.driver.host.has(Membership, zone)

    def heading(self) -> dict[str, Any]:
        """Who tells this."""
        node = self._node
        return {"node": node.name, "overlay": node.overlay, "zone": node.zone}


def _names(line: bytes) -> list[str]:
    try:
        names = msgspec.json.decode(line, type=list[str])
    except msgspec.DecodeError as error:
        raise LocalProtocolError(f"a line is no list of names: {error}") from None
    for name in names:
        if name not in NAMES:
            raise LocalProtocolError(f"{name!r} cannot be watched: one of {', '.join(NAMES)}")
    return names


def _is_loss(counter: str) -> bool:
    """Whether a driver's counter is of something that did not arrive."""
    return counter.endswith(("dropped", "undelivered", "lost", "not sent"))


def _concerns_people(event: Any) -> bool:
    """Who is in the management zone concerns nobody: what people see of it are zones."""
    return getattr(event, "zone", None) != MANAGEMENT
