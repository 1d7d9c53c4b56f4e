"""A member of a zone, as applications hold it.

async with Peer.join(name="ada", zone="lab", seeds=["10.0.0.7:7400"]) as peer:
    peer.attributes["gpu"] = 4
    async for event in peer.watch_members():
        print(event, len(peer.members))
"""

from __future__ import annotations

import time
from math import inf
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from nodes.bdn_fallback import BdnFallback
from nodes.clock import PeerTime
from nodes.colony import PeerColony
from nodes.colony_service import ColonyService
from nodes.content import PeerContent
from nodes.dht import PeerTable
from nodes.dht_service import TableService
from nodes.discovery import Broker
from nodes.discovery import find as find_broker
from nodes.distances import Distances
from nodes.facts import event_facts, link_facts, member_facts
from nodes.federation import Federation
from nodes.machine_share import MachineShare
from nodes.members import Attributes, Members
from nodes.mobile import PeerMobile
from nodes.moving import Moving
from nodes.node import Node
from nodes.publishing import TopicPublisher, topic_config
from nodes.recipes import peer
from nodes.resources import Findings, Model, PeerResources, Query, ResourceWatch
from nodes.resources_service import ResourcesService
from nodes.settings import node_config
from nodes.subscribing import CAPACITY, Message, TopicListener, TopicSubscription
from nodes.topic_directory import find_topic
from nodes.topic_events import TOPIC_EVENTS
from nodes.topic_service import TopicService
from nodes.watching import WatchService
from overlay.errors import LocalProtocolError, OverlayError
from overlay.net.config import NetSettings
from overlay.protocol import TurnedAway
from overlay.traces.config import TraceSettings
from protocols.membership import (
    AttributesChanged,
    MemberFailed,
    MemberJoined,
    MemberLeft,
    MemberRefuted,
    Membership,
    MemberSuspected,
    NameTaken,
    ZoneEntered,
)
from protocols.topics.config import TopicConfig
from protocols.topics.subscription import Admit, Replay, anybody
from protocols.topology import Topology
from protocols.zones import ZoneEntry, Zones

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping
    from types import TracebackType

    from nodes.event_stream import EventStream
    from nodes.settings import NodeConfig
    from nodes.topic_events import PublisherEvent, SubscriptionEvent, TopicEvent
    from overlay.host import Host
    from overlay.protocol import Event, Scope
    from protocols.gateways.events import TopicKnown, TopicUnknown
    from protocols.membership.attributes import Value

MemberEvent: TypeAlias = (
    MemberJoined | MemberSuspected | MemberRefuted | MemberFailed | MemberLeft | AttributesChanged
)
MEMBER_EVENTS: tuple[type[Event], ...] = (
    MemberJoined,
    MemberSuspected,
    MemberRefuted,
    MemberFailed,
    MemberLeft,
    AttributesChanged,
)


STALE = 2  # × net.unacked_within, in which a peer learns that an earlier life is over


class NotAdmitted(OverlayError):
    """The zone does not take this node: its name is taken, or it may not be there."""


class Peer:
    """Joins its zone when its `async with` block begins, and leaves it gracefully at the end.

    If the zone does not take it, it stops: streams end, and `run`, `joined` and the end of the
    block raise NotAdmitted.
    """

    def __init__(
        self, config: NodeConfig, *, attributes: Mapping[str, Value] | None = None
    ) -> None:
        self.node = Node(config, self._assemble)
        self._said: dict[str, Value] = {}  # attributes of the application
        self.refused = ""  # why the zone does not take this node
        distances = Distances(self.node)
        self._recipe = peer(config, distances.round_trip)
        self._unacked_within = config.section(NetSettings).unacked_within
        self._in_use_since = inf
        self._first_attributes = dict(attributes or {})
        for name, handler in (
            ("members", self._tell_members),
            ("topology", self._tell_topology),
            ("set", self._set_attributes),
            ("watch", self._tell_events),
        ):
            self.node.control.register(name, handler)
        self._moving = Moving(self.node, self._said, self.joined)
        Federation(self.node)
        TopicService(self.node)
        self.time = PeerTime(self.node)
        BdnFallback(self.node)
        if config.section(TraceSettings).ship:
            from nodes.trace_shipping import Shipper  # few peers need it

            Shipper(self)
        self.dht = PeerTable(self.node)
        TableService(self.node, self.dht)
        self.resources = PeerResources(self.node, distances)
        ResourcesService(self.node, self.resources)
        MachineShare(self.node, self.resources)
        self.colony = PeerColony(self.node)
        ColonyService(self.node, self.colony)
        self.content = PeerContent(self.node)
        self.mobile = PeerMobile(self.node, self.content)
        self.watching = WatchService(self.node, distances, MEMBER_EVENTS)

    @classmethod
    def join(
        cls,
        *,
        name: str | None = None,
        zone: str = "",
        seeds: Iterable[str] = (),
        attributes: Mapping[str, Value] | None = None,
        **options: Any,
    ) -> Self:
        """A peer of that zone that meets the seeds (HOST:PORT); `options` as of `node_config`."""
        config = node_config(name, zone=zone, seeds=seeds, **options)
        return cls(config, attributes=attributes)

    # -- life ---------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.node.__aenter__()
        try:
            self.attributes.update(self._first_attributes)
        except BaseException as error:
            await self.node.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.node.__aexit__(kind, error, trace)
        if error is None:
            self._check_admitted()

    async def run(self) -> None:
        """Wait until something stops this peer."""
        await self.node.run()
        self._check_admitted()

    def stop(self) -> None:
        """Begin to leave the zone and stop."""
        self.node.stop()

    async def joined(self, *, count: int | None = None) -> None:
        """Wait until this peer is in its zone, or until `count` members are present.

        It is when a member let it in, or is present. A peer without seeds, or with none but itself,
        is where its zone begins: it is in it at once, though alone.
        """
        with self.node.events(ZoneEntered, *MEMBER_EVENTS, where=self._is_mine) as events:
            while not (self._is_in_zone() if count is None else len(self.members) >= count):
                try:
                    await anext(events)
                except StopAsyncIteration:
                    self._check_admitted()
                    raise LocalProtocolError(f"{self.node.name} stopped before it joined") from None

    async def move(
        self, *, zone: str = "", bind: Iterable[str] = (), seeds: Iterable[str] = ()
    ) -> None:
        """Leave this zone, or this address, and go on elsewhere with all publishers and
        subscriptions; returns when the peer is in its zone there, or nobody else is.

        `seeds` (HOST:PORT) are asked besides those that it knows. SecurityError when it may not be
        in that zone; where it cannot listen it comes back, and the error says why.
        """
        await self._moving.move(zone, bind, seeds)

    @property
    def zone(self) -> Scope:
        """Of which it is a member."""
        return self.node.zone

    def _is_in_zone(self) -> bool:
        if self._membership.entered or len(self.members) > 1:
            return True
        return all(seed in self.node.endpoints for seed in self.node.config.seeds)

    def _assemble(self, host: Host) -> None:
        self._recipe(host)
        self._in_use_since = inf  # each place has its own doubts about an earlier life
        host.listen(NameTaken, self._on_name_taken)
        host.listen(TurnedAway, self._on_turned_away)
        self.watching.hear(host)

    def _on_name_taken(self, event: NameTaken) -> None:
        if event.zone == self.zone:
            self._give_up(event.reason)

    def _on_turned_away(self, event: TurnedAway) -> None:
        name = self.node.name
        if event.reason == "name-taken":
            self._give_up(f"a node called {name!r} runs at {event.who}: choose another name")
        elif event.reason == "name-in-use":
            # It may be this node's own earlier life, of which the peer does not know the end yet.
            now = time.monotonic()
            self._in_use_since = min(self._in_use_since, now)
            if now - self._in_use_since > STALE * self._unacked_within:
                self._give_up(
                    f"{event.who} knows another node called {name!r}: choose another name"
                )

    def _give_up(self, reason: str) -> None:
        self.refused = self.refused or reason
        self.node.stop()

    def _check_admitted(self) -> None:
        if self.refused:
            raise NotAdmitted(self.refused)

    # -- use ----------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """What this peer is called."""
        return self.node.name

    @property
    def members(self) -> Members:
        """Everybody in the zone, this peer included."""
        return Members(self._membership.view)

    @property
    def attributes(self) -> Attributes:
        """What this peer tells about itself; set and delete keys here."""
        return Attributes(self._membership, self.node.call, self._said)

    @property
    def zones(self) -> tuple[ZoneEntry, ...]:
        """All zones of the overlay, by name, as the delegates of this zone know them."""
        return self.node.protocol(Zones).zones()

    def publisher(
        self,
        topic: str,
        config: TopicConfig | None = None,
        *,
        on_event: Callable[[PublisherEvent], None] | None = None,
        **options: Any,
    ) -> TopicPublisher:
        """A publisher to one topic, for `async with`; `options` are fields of TopicConfig."""
        settings = topic_config(config, options)
        return TopicPublisher(self.node, topic, settings, on_event=on_event)

    def subscribe(
        self,
        pattern: str,
        *,
        replay: Replay | None = None,
        accept: Admit = anybody,
        capacity: int = CAPACITY,
        on_event: Callable[[SubscriptionEvent], None] | None = None,
    ) -> TopicSubscription:
        """Messages of all topics that the pattern covers, for `async with` and `async for`.

        `replay` asks publishers, of all but unordered mode, for what they still have of the time
        before: it comes first, also where others of this peer get the topic already;
        `accept(publisher, topic)` says whose messages are wanted; `capacity` bytes may wait to be
        read, then publishers have to wait.
        """
        return TopicSubscription(
            self.node, pattern, replay=replay, accept=accept, capacity=capacity, on_event=on_event
        )

    def on_message(
        self,
        pattern: str,
        callback: Callable[[Message], None],
        *,
        replay: Replay | None = None,
        accept: Admit = anybody,
        on_event: Callable[[SubscriptionEvent], None] | None = None,
    ) -> TopicListener:
        """Call back with each message from now on; `close` the result, or use it in `with`."""
        listener = TopicListener(
            self.node, pattern, callback, replay=replay, accept=accept, on_event=on_event
        )
        listener.open()
        return listener

    async def discover(self) -> Broker:
        """The nearest broker, by BDNs (`discovery.bdns`), those found last, or multicast."""
        return await find_broker(self.node)

    async def move_to(self, broker: str = "") -> str:
        """Be a client of that broker from now on: its name, HOST:PORT, or the nearest.

        What this peer advertises and publishes follows as `mobility.algorithm` and
        `mobility.handover` say; what `mobile.subscribe` wants is fetched from where it was.
        """
        return await self.mobile.move_to(broker)

    async def find(
        self,
        query: Query,
        *,
        limit: int = 0,
        model: Model = "any",
        nearest: bool = False,
        fresh: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - brokers must know it, too
    ) -> Findings:
        """Resources of all peers that match; its `complete` tells whether all have answered.

        `limit`: so many are enough; `nearest`: the shortest round trip first, as measured now;
        `fresh`: no values that others were told up to `resources.expiry` ago.
        """
        return await self.resources.find(
            query, limit=limit, model=model, nearest=nearest, fresh=fresh, timeout=timeout
        )

    def find_continuous(self, query: Query, *, model: Model = "any") -> ResourceWatch:
        """What matches now and later, for `async for`; close it, or use it in `with`."""
        return self.resources.watch(query, model=model)

    async def find_topic(self, topic: str | int) -> TopicKnown | TopicUnknown:
        """Ask the directory: the name of an id, and the zones that are interested in it.

        While there is a single zone nobody keeps it, and the answer is TopicUnknown.
        """
        return await find_topic(self.node, topic)

    def watch_topics(self) -> EventStream[TopicEvent]:
        """Hear what happens to this peer's publishers and subscriptions, as `watch_members`."""
        return self.node.events(*TOPIC_EVENTS)

    def watch_members(self) -> EventStream[MemberEvent]:
        """Listen to the zone from now on; close the stream, or use it in `with`, when done."""
        return self.node.events(*MEMBER_EVENTS, where=self._is_mine)

    @property
    def _membership(self) -> Membership:
        return self.node.protocol(Membership, self.zone)

    def _is_mine(self, event: Any) -> bool:
        return bool(event.zone == self.zone)

    # -- what the control socket tells --------------------------------------------------------

    def _tell_members(self) -> dict[str, Any]:
        return self._heading() | {"members": [*map(member_facts, self.members.values())]}

    def _tell_topology(self) -> dict[str, Any]:
        return self._heading() | {
            "links": link_facts(self.node.protocol(Topology, self.zone)),
            "members": list(self.members),
        }

    def _set_attributes(
        self, values: dict[str, Value] | None = None, remove: list[str] | None = None
    ) -> dict[str, Any]:
        """Set and remove some; returns all."""
        self.attributes.update(values or {})
        for key in remove or ():
            self.node.call(self._membership.remove_attribute, key)
            self._said.pop(key, None)
        return dict(self.attributes)

    async def _tell_events(self) -> AsyncIterator[dict[str, Any]]:
        """First who watches what, then each event."""
        with self.watch_members() as events:
            yield {"event": "watching", "members": len(self.members)} | self._heading()
            async for event in events:
                yield event_facts(event, self._membership.view)

    def _heading(self) -> dict[str, Any]:
        return {"node": self.name, "overlay": self.node.overlay, "zone": self.zone}
