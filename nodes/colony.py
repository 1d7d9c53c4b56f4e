"""Colonies as applications use them: `peer.colony`.

peer.colony.offer('kind = "cpu", cores <= 8')
async for servant in await peer.colony.ask(['kind = "cpu", cores > 4'], mode="greedy-ordered"):
    await peer.colony.connect(servant)
    print(servant.name, servant.endpoints)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import msgspec
import trio

from nodes.colony_seeking import LeaderSeeker
from overlay.errors import LocalProtocolError, OverlayError
from overlay.ids import NodeId
from overlay.net.addresses import parse_endpoint
from overlay.predicates import Constraint, PredicateError
from overlay.protocol import LinkUp, PeerMet
from protocols.colony import (
    Colony,
    ColonySettings,
    LeaderFound,
    LeaderRefused,
    Proposal,
    RequestEnded,
    ServantFound,
    ServiceRejected,
    Terms,
    Wish,
)
from protocols.colony.services import overlap

if TYPE_CHECKING:
    from nodes.event_stream import EventStream
    from nodes.node import Node

Service: TypeAlias = str | Constraint
Wanted: TypeAlias = Service | Sequence[Service] | Wish
"""A service, several that one computer must serve together, or a Wish with its instances."""
Accept: TypeAlias = Callable[[Proposal], bool]

LINKED_WITHIN = 5.0  # s to open a link to a servant


class ColonyError(OverlayError):
    """There is no colony, no such leader, or a servant that cannot be reached."""


class Servant(msgspec.Struct, frozen=True):
    """A computer that serves want `index` of a request."""

    index: int
    name: NodeId
    endpoints: tuple[str, ...]
    hops: int  # the request took
    after: float  # s


class Found:
    """The servants of one request, as they are found; `rejected` and `complete` when it is over."""

    def __init__(self, request: int, events: EventStream[Any]) -> None:
        self.request = request
        self.rejected: dict[int, str] = {}  # wants that not enough computers serve, and why
        self.complete = False  # True: it ended before its time was over
        self.ended = False
        self._events = events

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Servant:
        if self.ended:
            raise StopAsyncIteration
        async for event in self._events:
            match event:
                case ServantFound(index=index, servant=card, hops=hops, after=after):
                    return Servant(index, card.name, card.endpoints, hops, after)
                case ServiceRejected(index=index, reason=reason):
                    self.rejected[index] = reason
                case RequestEnded(complete=complete):
                    self.complete = complete
                    self.close()
                    raise StopAsyncIteration
        self.close()
        raise StopAsyncIteration

    async def all(self) -> list[Servant]:
        """Every servant, when the request is over."""
        return [one async for one in self]

    def close(self) -> None:
        """Hear no more of it."""
        if not self.ended:
            self.ended = True
            self._events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class Offer:
    """A service that this computer offers, until `withdraw`."""

    def __init__(self, colony: PeerColony, service: Constraint, accept: Accept | None) -> None:
        self.service = service
        self.accept = accept
        self._colony = colony

    def withdraw(self) -> None:
        """Offer it no more."""
        self._colony.withdraw(self.service)


class PeerColony:
    """This peer's place in a colony: what it offers, asks for, and whom it follows."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._offers: dict[Constraint, Offer] = {}
        self._accept: Accept | None = None
        self._settings = node.config.section(ColonySettings)
        node.in_background(self._follow_settings)
        LeaderSeeker(node)

    # -- offering -----------------------------------------------------------------------------

    def offer(self, service: Service, *, accept: Accept | None = None) -> Offer:
        """Offer a service; `accept(proposal)` says for each request whether to serve it."""
        constraint = parsed(service)
        offer = self._offers[constraint] = Offer(self, constraint, accept)
        self._node.call(self._machine.set_policy, self._decide)
        self._node.call(self._machine.offer, constraint)
        self._take_place()
        return offer

    def withdraw(self, service: Service) -> None:
        """Offer it no more."""
        constraint = parsed(service)
        self._node.call(self._machine.withdraw, constraint)
        self._offers.pop(constraint, None)

    def accept_if(self, accept: Accept | None) -> None:
        """Ask this, too, before anything is served; None: only what offers themselves say."""
        self._accept = accept

    @property
    def offers(self) -> tuple[Constraint, ...]:
        """What this peer offers."""
        return tuple(self._offers)

    def _decide(self, proposal: Proposal) -> bool:
        if self._accept is not None and not self._accept(proposal):
            return False
        return all(
            any(
                overlap(wanted, offer.service) and (offer.accept is None or offer.accept(proposal))
                for offer in self._offers.values()
            )
            for wanted in proposal.services
        )

    # -- asking -------------------------------------------------------------------------------

    async def ask(
        self,
        services: Iterable[Wanted],
        *,
        mode: str = "",
        fanout: int = 0,
        within: float = 0.0,
        instances: int = 1,
        replies: int | None = None,
        reliable: bool = False,
        without: Iterable[NodeId] = (),
    ) -> Found:
        """Have servants found, as soon as this peer is in a colony; iterate over the result."""
        wishes = [wish_of(wanted, instances) for wanted in services]
        terms = Terms(mode, fanout, within, replies, reliable, tuple(without))
        await self.joined(within or self._settings.within)
        return self._begin(wishes, terms)

    def _begin(self, wishes: list[Wish], terms: Terms) -> Found:
        request = 0
        events: EventStream[Any] = self._node.events(
            *(ServantFound, ServiceRejected, RequestEnded),
            where=lambda event: not request or event.request == request,
        )
        try:
            request = self._node.call(self._machine.ask, wishes, terms)
        except BaseException:
            events.close()
            raise
        return Found(request, events)

    async def connect(self, servant: Servant | NodeId) -> None:
        """Open a link to a servant, or wait for it: from now on nobody is between the two.

        The certificate that came with its answer proved who it is; ColonyError when it is gone.
        """
        name = servant if isinstance(servant, str) else servant.name
        with self._node.events(LinkUp) as ups, trio.move_on_after(LINKED_WITHIN):
            if self._node.link(name):
                return
            async for up in ups:
                if up.peer == name:
                    return
        raise ColonyError(f"{name} cannot be reached: ask again with without=[{name!r}]")

    # -- the tree -----------------------------------------------------------------------------

    @property
    def leader(self) -> NodeId:
        """Whose individual this peer is; empty: nobody's."""
        return self._machine.leader

    @property
    def path(self) -> tuple[NodeId, ...]:
        """From the leader to the root."""
        return self._machine.path

    @property
    def leads(self) -> bool:
        """Whether this peer is a broker."""
        return self._machine.leads

    @property
    def services(self) -> tuple[str, ...]:
        """All that this peer's colony offers."""
        return self._machine.table.union

    def lead(self) -> None:
        """Be a broker, where the tree is told."""
        self._check_told()
        self._node.call(self._machine.lead)

    async def join(self, leader: str, *, within: float = 10.0) -> None:
        """Follow a leader, by its name or HOST:PORT; ColonyError says why it takes nobody."""
        self._check_told()
        with (
            self._node.events(LeaderFound, LeaderRefused) as ends,
            trio.move_on_after(within) as patience,
        ):
            name = await self._name_of(leader)
            self._node.call(self._machine.follow, name)
            if self._machine.leader == name:
                return
            async for end in ends:
                if end.leader != name:
                    continue
                if isinstance(end, LeaderRefused):
                    raise ColonyError(f"{name} does not take {self._node.name}: {end.reason}")
                return
        if patience.cancelled_caught:
            raise ColonyError(f"{leader} did not answer within {within:g} s")

    def leave(self) -> None:
        """Follow nobody; a broker splits its colony off."""
        self._check_told()
        self._node.call(self._machine.delog)

    async def joined(self, within: float = 10.0) -> None:
        """Wait until this peer is in a colony; ColonyError when it is not in time."""
        self._take_place()
        with self._node.events(LeaderFound) as found, trio.move_on_after(within):
            while not (self._machine.leads or self._machine.leader):
                self._take_place()
                with trio.move_on_after(0.1):  # to be a delegate makes a leader without a word
                    await anext(found)
            return
        raise ColonyError(f"{self._node.name} is in no colony: no leader was found in {within:g} s")

    async def announced(self, within: float = 10.0) -> None:
        """Wait until the leader knows what this peer offers; ColonyError when it does not."""
        with trio.move_on_after(within):
            await self.joined(within)
            while not self._machine.is_announced:  # noqa: ASYNC110 (a state, told by no event)
                await trio.sleep(0.01)
            return
        raise ColonyError(f"no leader took the offers of {self._node.name} in {within:g} s")

    async def _name_of(self, leader: str) -> NodeId:
        if ":" not in leader:
            return leader
        endpoint = str(parse_endpoint(leader))
        with self._node.events(PeerMet) as met:
            self._node.meet(endpoint)
            async for one in met:
                if endpoint in one.endpoints:
                    return str(one.peer)
        raise ColonyError(f"{leader} was not met")

    def _check_told(self) -> None:
        if self._settings.placement == "zone":
            raise ColonyError(
                "the zone makes this peer's colony: say colony.placement=tree to make it yourself"
            )

    def _take_place(self) -> None:
        """A unit that is of use now may have to follow somebody."""
        if self._settings.placement == "zone":
            self._node.call(self._machine.use)

    async def _follow_settings(self) -> None:
        """Where the tree is told: meet the leader, and those to turn to when it is gone."""
        settings = self._settings
        if settings.placement != "tree":
            return
        wanted = [str(parse_endpoint(text)) for text in settings.leaders]
        first = str(parse_endpoint(settings.leader)) if settings.leader else ""
        if not first and not wanted:
            return
        with self._node.events(PeerMet) as met:
            for endpoint in filter(None, (first, *wanted)):
                self._node.meet(endpoint)
            async for one in met:
                if first in one.endpoints:
                    self._node.call(self._machine.follow, one.peer)
                elif any(endpoint in one.endpoints for endpoint in wanted):
                    self._node.call(self._machine.learn_leaders, (one.peer,))

    @property
    def _machine(self) -> Colony:
        return self._node.protocol(Colony)


def parsed(service: Service) -> Constraint:
    """A constraint, from text or as it is; LocalProtocolError says what is wrong with it."""
    if isinstance(service, Constraint):
        return service
    try:
        return Constraint.parse(service)
    except PredicateError as error:
        raise LocalProtocolError(f"{service!r} is no service: {error}") from None


def wish_of(wanted: Wanted, instances: int = 1) -> Wish:
    """As the protocol has it."""
    if isinstance(wanted, Wish):
        return wanted
    services = (wanted,) if isinstance(wanted, str | Constraint) else tuple(wanted)
    return Wish(tuple(map(parsed, services)), instances)
