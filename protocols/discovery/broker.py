"""A broker: it advertises itself, hands requests on to its neighbours, and answers them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from random import Random
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from overlay.errors import InvariantViolation, RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import (
    DatagramHandler,
    Effects,
    Event,
    EventHandler,
    Handler,
    LinkLost,
    Message,
    Origin,
    OverlayProtocol,
    UdpAddress,
)
from overlay.rates import RateLimit
from overlay.tracing import Level, Trace, flow_number
from overlay.tracing.kinds import DISCOVERY_HANDLED
from protocols.discovery.advertising import Advertiser
from protocols.discovery.config import BrokerSettings
from protocols.discovery.credentials import (
    Cookies,
    digest_of,
    digests_of,
    in_realms,
    proves_any,
    split_digests,
)
from protocols.discovery.events import Advertised, AdvertisementChanged
from protocols.discovery.interface import Clock, MayBe, anybody, own_clock
from protocols.discovery.messages import (
    Advertisement,
    AdvertisementAck,
    BdnAnnouncement,
    BrokerLink,
    Hold,
    Inject,
    Ping,
    Pong,
    Probe,
    ProbeReply,
    Request,
    RequestAck,
    Response,
    Usage,
    Where,
)
from protocols.discovery.recent import RecentRequests

GREET = "greet"  # the next word to all neighbours
AMPLIFICATION = 2  # times the request, for an address that has proven nothing
MOST_HOPS = 10_000
encoded = msgspec.msgpack.Encoder().encode


class BrokerCounts(msgspec.Struct):
    """How often what happened, since the start."""

    requests: int = 0  # that came to us directly
    injected: int = 0  # that came through the broker network
    forwarded: int = 0  # copies handed on
    answered: int = 0
    duplicates: int = 0
    declined: int = 0  # by policy
    challenged: int = 0
    too_small: int = 0  # requests whose answer would have been more than twice as long
    rate_limited: int = 0
    pings: int = 0


class Neighbour(msgspec.Struct):
    """A broker that we are linked to."""

    expires: float
    firm: bool  # False: nothing was heard since its link was lost


def no_usage() -> Usage:
    """For brokers that nobody measures."""
    return Usage()


class Broker(OverlayProtocol):
    """One broker's part in discovery."""

    name: ClassVar[str] = "broker"
    messages: ClassVar[tuple[type[Message], ...]] = (
        *(Advertisement, AdvertisementAck, BdnAnnouncement, Request, RequestAck, Inject),
        *(Response, Ping, Pong, Probe, ProbeReply, BrokerLink, Hold),
    )
    emits: ClassVar[tuple[type[Event], ...]] = (Advertised, AdvertisementChanged)

    config: BrokerSettings

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: BrokerSettings,
        *,
        here: Callable[[], tuple[str, ...]] = tuple,
        usage: Callable[[], Usage] = no_usage,
        clock: Clock = own_clock,
        neighbours: Callable[[], Iterable[NodeId]] = tuple,
        may_be: MayBe = anybody,
    ) -> None:
        super().__init__(me, effects, rng, config)
        self.counts = BrokerCounts()
        self._here = here
        self._usage = usage
        self._clock = clock
        self._view = neighbours  # of links that somebody else keeps
        self._may_be = may_be
        self._cookies = Cookies(rng)
        self._rates = RateLimit(config.source_rate, config.source_rate, config.total_rate)
        self._answered = RecentRequests(config.remembered)
        self._forwarded = RecentRequests(config.remembered)
        self._greeted: dict[NodeId, None] = dict.fromkeys(config.links)  # wished for by us
        self._neighbours: dict[NodeId, Neighbour] = {}
        self._advertiser = Advertiser(me, effects, rng, config, here, clock, self.neighbours)

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """What comes over links."""
        return {
            Inject: self._on_inject,
            BrokerLink: self._on_broker_link,
            Hold: self._on_hold,
        }

    def datagram_handlers(self) -> Mapping[type[Message], DatagramHandler]:
        """What comes as datagrams."""
        return {
            Request: self._on_request,
            Ping: self._on_ping,
            Probe: self._on_probe,
            AdvertisementAck: self._on_advertisement_ack,
            BdnAnnouncement: self._on_announcement,
        }

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """A hint about a neighbour."""
        return {LinkLost: self._on_link_lost}

    # -- commands -------------------------------------------------------------------------------

    def link(self, peer: NodeId, now: float) -> None:
        """Be a neighbour of that broker from now on."""
        self._greeted[peer] = None
        self.effects.send(peer, BrokerLink(self.config.link_lease, greeting=True))

    def neighbours(self) -> list[NodeId]:
        """The brokers that requests are handed on to."""
        return list(dict.fromkeys((*self._neighbours, *self._view())))

    def advertisement(self, now: float) -> Advertisement:
        """What BDNs are told."""
        return self._advertiser.advertisement(now)

    # -- requests -------------------------------------------------------------------------------

    def _on_request(self, origin: Origin, msg: Request, now: float) -> None:
        """A requester without a BDN: answered at once, handed on once its address is proven."""
        if not self._admits(origin, now):
            return
        self.counts.requests += 1
        request = replace(msg, address=Where(*origin.address), cookie=b"", padding=b"")
        others = [name for name in self.neighbours() if name != origin.name]
        time, error = self._clock(now)
        ack = RequestAck(msg.id, msg.attempt, "accepted", sent_at=time, error=error)
        if self._cookies.holds(msg.cookie, origin.name, origin.address, now):
            if self._forwarded.is_new(origin.name, msg.id, msg.attempt):
                self._forward(others, Inject(origin.name, request))
            firm = self._firm(others)
            accepted = replace(ack, total=len(firm), injected=digests_of(firm))
            self.effects.cast(origin.address, accepted, origin.name)
            self._answer(origin.name, request, firm, now)
            return
        if others:
            self.counts.challenged += 1
            cookie = self._cookies.make(origin.name, origin.address, now)
            self.effects.cast(
                origin.address, replace(ack, status="prove", cookie=cookie), origin.name
            )
        self._answer(origin.name, request, [], now, most=AMPLIFICATION * len(encoded(msg)))

    def _on_inject(self, src: NodeId, msg: Inject, now: float) -> None:
        """A request that a BDN or a neighbour hands on: its address was proven there."""
        if not (self._may_be(src, "broker") or self._may_be(src, "bdn")):
            raise RemoteProtocolError("discovery-no-right", "only brokers and BDNs hand on")
        request = msg.request
        if msg.hops > MOST_HOPS or not request.address.host:
            raise RemoteProtocolError("discovery-bad-inject", f"{msg.hops} hops")
        if not self._forwarded.is_new(msg.requester, request.id, request.attempt):
            self.counts.duplicates += 1
            return
        self.counts.injected += 1
        if self.effects.tracing >= Level.MESSAGES:
            number = flow_number(request.id)
            self.effects.trace(
                Trace(
                    DISCOVERY_HANDLED,
                    src,
                    origin=msg.requester,
                    stream=number,
                    hops=msg.hops,
                    detail="handed on",
                )
            )
        others = [name for name in self.neighbours() if name not in (src, msg.requester)]
        self._forward(others, replace(msg, hops=msg.hops + 1))
        if msg.requester != self.me:
            self._answer(msg.requester, request, self._firm(others), now)

    def _on_hold(self, src: NodeId, msg: Hold, now: float) -> None:
        """A BDN keeps its link open: there is nothing to do."""

    def _forward(self, others: list[NodeId], inject: Inject) -> None:
        if others:
            self.counts.forwarded += len(others)
            self.effects.send(others, inject)

    def _firm(self, names: Iterable[NodeId]) -> list[NodeId]:
        """Those that the requester may wait for: a lost link is a hint that nobody will answer."""
        doubtful = {name for name, one in self._neighbours.items() if not one.firm}
        return [name for name in names if name not in doubtful]

    def _answer(
        self,
        requester: NodeId,
        request: Request,
        forwarded: list[NodeId],
        now: float,
        most: int | None = None,
    ) -> None:
        address = UdpAddress(request.address.host, request.address.port)
        if digest_of(self.me) in split_digests(request.heard):
            return
        if not self._wants_to_answer(requester, request, address):
            self.counts.declined += 1
            return
        if not self._answered.is_new(requester, request.id, request.attempt):
            self.counts.duplicates += 1
            return
        config = self.config
        time, error = self._clock(now)
        response = Response(
            request.id,
            request.attempt,
            time,
            self._usage(),
            self._here()[:4],
            config.logical,
            config.region,
            config.institution,
            digests_of(forwarded),
            alone=not self.neighbours(),
            error=error,
        )
        if most is not None and len(encoded(response)) > most:
            self.counts.too_small += 1
            return
        self.counts.answered += 1
        if self.effects.tracing >= Level.MESSAGES:
            number = flow_number(request.id)
            self.effects.trace(
                Trace(DISCOVERY_HANDLED, origin=requester, stream=number, detail="answered")
            )
        self.effects.cast(address, response, requester)

    def _wants_to_answer(self, requester: NodeId, request: Request, address: UdpAddress) -> bool:
        """The response policy (§5): by realm, and by credential."""
        config = self.config
        if config.answer_realms and not in_realms(config.answer_realms, request.realm, address):
            return False
        wanted = config.answer_credentials
        return not wanted or proves_any(request.proof, wanted, request.id, requester)

    # -- pings ----------------------------------------------------------------------------------

    def _on_ping(self, origin: Origin, msg: Ping, now: float) -> None:
        if self._admits(origin, now):
            self.counts.pings += 1
            self.effects.cast(origin.address, Pong(msg.nonce, msg.sent_at))

    def _on_probe(self, origin: Origin, msg: Probe, now: float) -> None:
        if self._admits(origin, now):
            self.effects.cast(origin.address, ProbeReply(msg.nonce))

    def _admits(self, origin: Origin, now: float) -> bool:
        admitted = self._rates.admits(origin.address.host, now)
        self.counts.rate_limited += not admitted
        return admitted

    # -- neighbours -----------------------------------------------------------------------------

    def _on_broker_link(self, src: NodeId, msg: BrokerLink, now: float) -> None:
        if not self._may_be(src, "broker"):
            raise RemoteProtocolError("discovery-no-right", "only brokers link to brokers")
        known = src in self._neighbours
        if not known and len(self._neighbours) >= self.config.max_links:
            raise RemoteProtocolError("discovery-full", f"{len(self._neighbours)} neighbours")
        if msg.lease == 0:
            self._forget(src, now)
            return
        self._neighbours[src] = Neighbour(now + msg.lease, firm=True)
        if msg.greeting:
            self.effects.send(src, BrokerLink(self.config.link_lease))
        if not known:
            self._advertiser.changed(now)

    def _on_link_lost(self, event: LinkLost, now: float) -> None:
        neighbour = self._neighbours.get(event.peer)
        if neighbour is not None:
            neighbour.firm = False
            self.effects.send(event.peer, BrokerLink(self.config.link_lease, greeting=True))

    def _greet_all(self, now: float) -> None:
        for name in [name for name, one in self._neighbours.items() if one.expires <= now]:
            self._forget(name, now)
        for name in dict.fromkeys((*self._greeted, *self._neighbours)):
            self.effects.send(name, BrokerLink(self.config.link_lease, greeting=True))
        self.effects.set_timer(GREET, now + self.config.link_lease / 3)

    def _forget(self, name: NodeId, now: float) -> None:
        if self._neighbours.pop(name, None) is not None:
            self._advertiser.changed(now)

    # -- advertising ----------------------------------------------------------------------------

    def _on_advertisement_ack(self, origin: Origin, msg: AdvertisementAck, now: float) -> None:
        if not self._may_be(origin.name, "bdn"):
            raise RemoteProtocolError("discovery-no-right", "only BDNs acknowledge")
        if self._advertiser.acknowledged(origin.address, msg, now):
            self.effects.emit(Advertised(origin.name, msg.status, msg.reason))

    def _on_announcement(self, origin: Origin, msg: BdnAnnouncement, now: float) -> None:
        if not self._may_be(origin.name, "bdn"):
            raise RemoteProtocolError("discovery-no-right", "only BDNs announce themselves")
        if not msg.private or self.config.credential:
            self._advertiser.learn_bdn(msg.address.or_from(origin.address), msg.lease, now)

    # -- life -----------------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Greet the neighbours and advertise."""
        self._greet_all(now)
        self._advertiser.start(now)

    def on_timer(self, key: Hashable, now: float) -> None:
        """Greet again, or advertise again."""
        if key == GREET:
            self._greet_all(now)
        else:
            self._advertiser.advertise_due(now)

    def on_stop(self, now: float) -> None:
        """Withdraw from BDNs and neighbours."""
        self._advertiser.withdraw(now)
        for name in self._neighbours:
            self.effects.send(name, BrokerLink(0))

    def check_invariants(self) -> None:
        """Everything is bounded."""
        if len(self._neighbours) > self.config.max_links:
            raise InvariantViolation(f"{self.me}: {len(self._neighbours)} neighbours")
        if max(len(self._answered), len(self._forwarded)) > self.config.remembered:
            raise InvariantViolation(f"{self.me}: remembers too many requests")
        self._advertiser.check_invariants()
