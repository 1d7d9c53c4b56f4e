"""A broker discovery node: it lists brokers, and injects requests into the broker network."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import inf
from random import Random
from typing import ClassVar, Literal, TypeAlias

import msgspec

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import (
    ContactLearned,
    DatagramHandler,
    Effects,
    Event,
    Message,
    Origin,
    OverlayProtocol,
    UdpAddress,
)
from overlay.rates import RateLimit
from protocols.discovery.config import BdnSettings, parse_group
from protocols.discovery.credentials import Cookies, digests_of, in_realms, proves_any
from protocols.discovery.events import BrokerDelisted, BrokerListed
from protocols.discovery.interface import Clock, MayBe, anybody, own_clock
from protocols.discovery.messages import (
    Advertisement,
    AdvertisementAck,
    BdnAnnouncement,
    Hold,
    Inject,
    Probe,
    ProbeReply,
    Request,
    RequestAck,
    Where,
)
from protocols.discovery.recent import RecentRequests
from protocols.discovery.registry import Registry

ANNOUNCE = "announce"
PROBE = "probe"
EXPIRE = "expire"
HOLD = "hold"
HOLD_SOON = 1.0  # s after a change: by then new brokers are measured, and others came, too
EXPIRE_EVERY = 1.0  # s between looks for ended leases
PROBE_TICK = 0.05  # s, at least, between two batches of probes
MOST_PAUSE = 20.0  # s; one probe at the lowest rate


Verdict: TypeAlias = tuple[Literal["stored", "ignored", "credentials"], str]


class BdnCounts(msgspec.Struct):
    """How often what happened, since the start."""

    advertisements: int = 0
    stored: int = 0
    ignored: int = 0  # by policy, or for want of room
    outdated: int = 0
    expired: int = 0
    requests: int = 0
    challenged: int = 0
    refused: int = 0
    accepted: int = 0  # acknowledged, retransmissions too
    propagated: int = 0
    injections: int = 0
    rate_limited: int = 0
    probes: int = 0
    held: int = 0  # words that keep links open


class Bdn(OverlayProtocol):
    """Needs nothing but brokers that advertise here."""

    name: ClassVar[str] = "bdn"
    messages: ClassVar[tuple[type[Message], ...]] = (
        *(Advertisement, AdvertisementAck, BdnAnnouncement, Request, RequestAck),
        *(Inject, Probe, ProbeReply, Hold),
    )
    emits: ClassVar[tuple[type[Event], ...]] = (BrokerListed, BrokerDelisted, ContactLearned)

    config: BdnSettings

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: BdnSettings,
        *,
        clock: Clock = own_clock,
        may_be: MayBe = anybody,
    ) -> None:
        super().__init__(me, effects, rng, config)
        self.counts = BdnCounts()
        self._clock = clock
        self._may_be = may_be
        self._registry = Registry(config.capacity)
        self._cookies = Cookies(rng)
        self._rates = RateLimit(config.source_rate, config.source_rate, config.total_rate)
        self._requests = RecentRequests(config.remembered)
        self._plan: list[NodeId] = []
        self._plan_digests = b""
        self._plan_until: float | None = None  # None: make another one
        self._next_batch = 0.0  # of probes, at the earliest
        self._hold_at = inf

    def datagram_handlers(self) -> Mapping[type[Message], DatagramHandler]:
        """Everything but the injections, which leave over links."""
        return {
            Advertisement: self._on_advertisement,
            Request: self._on_request,
            ProbeReply: self._on_probe_reply,
        }

    # -- commands -------------------------------------------------------------------------------

    def brokers(self) -> list[tuple[Advertisement, UdpAddress, float | None]]:
        """All brokers listed, with the round trip of the last probes."""
        return [(one.advertisement, one.address, one.rtt) for one in self._registry]

    def learn(self, told: Advertisement, publisher: NodeId, now: float) -> str:
        """Take an advertisement of the public topic; what became of it."""
        if told.name != publisher or not told.address.host:
            return "ignored"
        address = UdpAddress(told.address.host, told.address.port)
        return self._judge(told, address, now)[0]

    def announce_to(self, address: UdpAddress, now: float) -> None:
        """Tell one broker of this BDN."""
        self.effects.cast(address, self._announcement())

    # -- advertisements -------------------------------------------------------------------------

    def _on_advertisement(self, origin: Origin, msg: Advertisement, now: float) -> None:
        if not self._admits(origin, now):
            return
        if msg.name != origin.name:
            raise RemoteProtocolError("advertisement-forged", f"in the name of {msg.name!a}")
        status, reason = self._judge(msg, msg.address.or_from(origin.address), now)
        self.effects.cast(
            origin.address, AdvertisementAck(msg.sequence, status, reason), origin.name
        )

    def _judge(self, told: Advertisement, address: UdpAddress, now: float) -> Verdict:
        """Store it, or say why not (§2.3)."""
        self.counts.advertisements += 1
        known = self._registry.get(told.name)
        if known is not None and told.sequence < known.advertisement.sequence:
            self.counts.outdated += 1
            return "stored", "a later one"
        if told.lease == 0:
            self._delist(told.name)
            return "stored", "withdrawn"
        status, reason = self._policy(told, address)
        if status == "stored" and known is None and self._registry.is_full:
            status, reason = "ignored", "full"
        if status != "stored":
            self.counts.ignored += 1
            return status, reason
        self.counts.stored += 1
        lease = min(told.lease, self.config.max_lease)
        changed = known is None or known.advertisement.links != told.links
        if self._registry.put(told, address, now + lease, now):
            self.effects.emit(BrokerListed(told))
            self._arm_probes(now)
        if changed:
            self._plan_until = None
            self._hold_within(HOLD_SOON, now)
            self.effects.emit(ContactLearned(told.name, told.endpoints))
        return "stored", ""

    def _policy(self, told: Advertisement, address: UdpAddress) -> Verdict:
        config = self.config
        if not self._may_be(told.name, "broker"):
            return "ignored", "no right to be a broker"
        if config.regions and told.region not in config.regions:
            return "ignored", "region"
        if config.realms and not in_realms(config.realms, told.realm, address):
            return "ignored", "realm"
        what = told.sequence.to_bytes(8)
        wanted = config.credentials
        if wanted and not proves_any(told.proof, wanted, what, told.name):
            return "credentials", "this BDN is private"
        return "stored", ""

    def _delist(self, name: NodeId) -> None:
        if self._registry.forget(name):
            self._plan_until = None
            self.effects.emit(BrokerDelisted(name))

    # -- requests -------------------------------------------------------------------------------

    def _on_request(self, origin: Origin, msg: Request, now: float) -> None:
        """Acknowledge, and propagate each attempt once (§3, §4)."""
        if not self._admits(origin, now):
            return
        self.counts.requests += 1
        config = self.config
        if config.credentials and not proves_any(
            msg.proof, config.credentials, msg.id, origin.name
        ):
            self.counts.refused += 1
            self._ack(origin, RequestAck(msg.id, msg.attempt, "credentials"), now)
        elif config.realms and not in_realms(config.realms, msg.realm, origin.address):
            self.counts.refused += 1
            self._ack(origin, RequestAck(msg.id, msg.attempt, "refused"), now)
        elif not self._cookies.holds(msg.cookie, origin.name, origin.address, now):
            # One datagram with a false address must not make a network of brokers answer there.
            self.counts.challenged += 1
            cookie = self._cookies.make(origin.name, origin.address, now)
            self._ack(origin, RequestAck(msg.id, msg.attempt, "prove", cookie), now)
        else:
            self._propagate(origin, msg, now)

    def _propagate(self, origin: Origin, msg: Request, now: float) -> None:
        self._make_plan(now)
        targets = self._plan
        if origin.name in targets:
            targets = [name for name in targets if name != origin.name]
        self.counts.accepted += 1
        if targets and self._requests.is_new(origin.name, msg.id, msg.attempt):
            self.counts.propagated += 1
            self.counts.injections += len(targets)
            request = msgspec.structs.replace(
                msg, address=Where(*origin.address), cookie=b"", padding=b""
            )
            self.effects.send(targets, Inject(origin.name, request))
        digests = self._plan_digests if targets is self._plan else digests_of(targets)
        accepted = RequestAck(msg.id, msg.attempt, "accepted", total=len(targets), injected=digests)
        self._ack(origin, accepted, now)

    def _make_plan(self, now: float) -> None:
        until = self._plan_until
        if until is None or not now < until <= now + self.config.replan:
            self._expire(now)
            self._plan = self._registry.plan(self.config.max_injections)
            self._plan_digests = digests_of(self._plan)
            self._plan_until = now + self.config.replan

    def _ack(self, origin: Origin, ack: RequestAck, now: float) -> None:
        time, error = self._clock(now)
        told = msgspec.structs.replace(ack, sent_at=time, error=error)
        self.effects.cast(origin.address, told, origin.name)

    # -- links ----------------------------------------------------------------------------------

    def _hold(self, now: float) -> None:
        """Keep links open to those that requests are handed to (§2): they would close when idle."""
        self._make_plan(now)
        held = self._plan[: self.config.held_links]
        if held:
            self.counts.held += len(held)
            self.effects.send(held, Hold())
        self._hold_within(self.config.hold_every, now, anew=True)

    def _hold_within(self, seconds: float, now: float, *, anew: bool = False) -> None:
        if self.config.held_links and (anew or now + seconds < self._hold_at):
            self._hold_at = now + seconds
            self.effects.set_timer(HOLD, self._hold_at)

    def _admits(self, origin: Origin, now: float) -> bool:
        admitted = self._rates.admits(origin.address.host, now)
        self.counts.rate_limited += not admitted
        return admitted

    # -- probing --------------------------------------------------------------------------------

    def _probe(self, now: float) -> None:
        """Probe whoever is due, no faster than the settings allow."""
        batch = max(1, int(self.config.probe_rate * PROBE_TICK))
        for _ in range(batch):
            listed = self._registry.due_probe(now)
            if listed is None:
                break
            listed.nonce = self.rng.randbytes(8)
            listed.probed_at = now
            self.counts.probes += 1
            self.effects.cast(listed.address, Probe(listed.nonce))
        self._next_batch = now + max(PROBE_TICK, batch / self.config.probe_rate)
        self._arm_probes(now)

    def _arm_probes(self, now: float) -> None:
        due = self._registry.next_probe()
        if due is not None:
            if self._next_batch > now + MOST_PAUSE:  # the clock was set back
                self._next_batch = now
            self.effects.set_timer(PROBE, max(due, self._next_batch))

    def _on_probe_reply(self, origin: Origin, msg: ProbeReply, now: float) -> None:
        listed = self._registry.get(origin.name)
        first = listed is not None and listed.rtt is None
        if self._registry.answered(origin.name, msg.nonce, origin.arrived_at) and first:
            self._plan_until = None
            self._hold_within(HOLD_SOON, now)

    # -- life -----------------------------------------------------------------------------------

    def _announcement(self) -> BdnAnnouncement:
        lease = max(60.0, 3 * self.config.announce)
        return BdnAnnouncement(lease, private=bool(self.config.credentials))

    def _announce(self, now: float) -> None:
        if self.config.announce:
            self.effects.cast(parse_group(self.config.group), self._announcement())
            self.effects.set_timer(ANNOUNCE, now + self.config.announce)

    def _expire(self, now: float) -> None:
        for name in self._registry.expired(now):
            self.counts.expired += 1
            self._delist(name)

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Announce this BDN to the brokers that hear multicast."""
        self._announce(now)
        self.effects.set_timer(EXPIRE, now + EXPIRE_EVERY)
        self._hold_within(self.config.hold_every, now)

    def on_timer(self, key: Hashable, now: float) -> None:
        """Announce, probe, keep links open, or forget."""
        if key == ANNOUNCE:
            self._announce(now)
        elif key == PROBE:
            self._probe(now)
        elif key == HOLD:
            self._hold(now)
        else:
            self._expire(now)
            self.effects.set_timer(EXPIRE, now + EXPIRE_EVERY)

    def check_invariants(self) -> None:
        """Everything is bounded."""
        self._registry.check_invariants()
