"""What requesters, brokers and BDNs tell their node."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from overlay.ids import NodeId
from overlay.protocol import Event, UdpAddress
from overlay.tracing import Trace, flow_number
from overlay.tracing.kinds import (
    BROKER_MOVED,
    DISCOVERY_CHOSEN,
    DISCOVERY_FAILED,
    DISCOVERY_PHASE,
)
from protocols.discovery.messages import Advertisement, Usage


class Candidate(msgspec.Struct, frozen=True):
    """One broker that was considered, and why it was chosen or not; times in seconds."""

    name: NodeId
    address: UdpAddress
    endpoints: tuple[str, ...]
    usage: Usage
    estimated_delay: float  # one way, from the timestamp of its response
    delay_error: float  # ± by the clocks
    plausible: bool  # False: no response can have been under way for so long, or so short
    load_weight: float  # 0 to 1, more is idler
    score: float  # for the target set
    pinged: int = 0
    answered: int = 0
    ping_least: float | None = None
    ping_p50: float | None = None
    jitter: float | None = None  # the mean difference between one round trip and the next
    verdict: str = ""
    region: str = ""
    institution: str = ""


class Phases(msgspec.Struct, frozen=True):
    """Where the time went (figures 2, 9 and 11), in seconds."""

    waiting: float  # for responses
    choosing: float  # of the target set
    pinging: float
    last_response: float  # after the start, of those that were considered

    @property
    def total(self) -> float:
        """From the request to the choice."""
        return self.waiting + self.choosing + self.pinging


class BrokerFound(Event, frozen=True):
    """A discovery ended well; candidates are in the order of their rank, the winner first."""

    id: bytes
    winner: Candidate
    candidates: tuple[Candidate, ...]
    phases: Phases
    sources: tuple[str, ...]  # who was asked: "bdn HOST:PORT", "multicast", "known NAME"
    attempts: int
    responses: int

    def traces(self) -> Iterable[Trace]:
        """Its parts, and its end."""
        number, phases = flow_number(self.id), self.phases
        for name in ("waiting", "choosing", "pinging"):
            took: float = getattr(phases, name)
            yield Trace(DISCOVERY_PHASE, stream=number, detail=name, duration=took)
        yield Trace(
            DISCOVERY_CHOSEN,
            self.winner.name,
            stream=number,
            count=max(1, self.responses),
            duration=phases.total,
            value=self.winner.ping_p50,
        )


class NoBrokerFound(Event, frozen=True):
    """A discovery ended without a broker."""

    id: bytes
    reason: str
    candidates: tuple[Candidate, ...] = ()

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(DISCOVERY_FAILED, stream=flow_number(self.id), detail=self.reason),)


class BrokerMoved(Event, frozen=True):
    """In continuous mode: another broker is the one to use from now on."""

    old: NodeId  # empty: the first one
    new: Candidate
    reason: str

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(BROKER_MOVED, self.new.name, origin=self.old, detail=self.reason),)


class BrokerListed(Event, frozen=True):
    """A BDN stored the advertisement of a broker that it did not know."""

    advertisement: Advertisement


class BrokerDelisted(Event, frozen=True):
    """A BDN forgot a broker whose lease ended."""

    broker: NodeId


class Advertised(Event, frozen=True):
    """A BDN answered this broker's advertisement."""

    bdn: NodeId
    status: str
    reason: str


class AdvertisementChanged(Event, frozen=True):
    """This broker's advertisement is due on the public topic."""

    advertisement: Advertisement
