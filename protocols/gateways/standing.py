"""The gateway's part: what the zone does with the topics that this node stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from overlay.protocol import ContactLearned
from protocols.gateways.core import Core
from protocols.gateways.covering import Covering
from protocols.gateways.events import GatewayAppointed, GatewayDismissed, GatewaysChanged
from protocols.gateways.interface import RemoteGateway
from protocols.gateways.ledger import (
    OWN_STAKES,
    PUBLISHES,
    SUBSCRIBES,
    Book,
    Stake,
    key_for,
)
from protocols.gateways.messages import Party
from protocols.gateways.reading import Reader, owner_of
from protocols.gateways.writing import Writer

SILENT = 3  # digests without an answer after which another delegate is told
NOBODY: Mapping[NodeId, RemoteGateway] = {}


class Gatekeeper:
    """Sums up what members declare, and registers it with a delegate while there are other zones.

    Whoever the members declare to is the gateway: a predecessor that they left holds what they
    declared for `linger` more, so that its successor is known before it goes.
    """

    def __init__(self, core: Core, reader: Reader, writer: Writer, covering: Covering) -> None:
        self._core = core
        self._reader = reader
        self._writer = writer
        self._covering = covering
        self._held: dict[str, int] = {}  # what the zone does with each topic
        self._remote: dict[str, dict[NodeId, RemoteGateway]] = {}
        self._known: dict[NodeId, Party] = {}  # whose address was told to the driver
        self._delegate: NodeId | None = None  # who registers for this node; None: not needed
        self._silent: dict[NodeId, None] = {}

    # -- what siblings see ------------------------------------------------------------------------

    @property
    def held(self) -> Mapping[str, int]:
        """The topics that this node is the gateway of."""
        return self._held

    @property
    def delegate(self) -> NodeId | None:
        """With whom topics are registered; None: there is no other zone, or nobody to ask."""
        return self._delegate

    def remote(self, topic: str) -> Mapping[NodeId, RemoteGateway]:
        """The gateways of other zones."""
        return self._remote.get(topic, NOBODY)

    def knows_remote(self, topic: str) -> bool:
        """Whether a home that heard of all told this node who else is interested.

        It says so by this node's own line; without another zone there is nobody to be told of.
        """
        if not self._others():
            return True
        told = self._reader.holders(Book.ROSTERS, topic).values()
        return any(one.party is not None and one.party.gateway == self._core.me for one in told)

    def declared(self, topic: str, flag: int) -> dict[NodeId, None]:
        """Members that declared that, and may."""
        holders = self._reader.holders(Book.DECLARATIONS, topic)
        return {
            name: None
            for name, stake in holders.items()
            if stake.flags & flag and self._allowed(name, topic, flag)
        }

    def subscribers(self, topic: str) -> dict[NodeId, None]:
        """Members that subscribe, by the topic's name or by a pattern."""
        found = self.declared(topic, SUBSCRIBES)
        if topic in self._held:
            found.update(self._by_pattern(topic))
        return found

    def _by_pattern(self, topic: str) -> dict[NodeId, None]:
        """Members whose patterns cover it; these may be wider than meant, so each topic counts."""
        members = self._covering.subscribers(topic)
        return {name: None for name in members if self._allowed(name, topic, SUBSCRIBES)}

    # -- what changed ---------------------------------------------------------------------------

    def settle(self, topics: Iterable[str], now: float) -> None:
        """What members declare, or which topics exist for their patterns, changed."""
        core = self._core
        for topic in topics:
            before, flags = self._held.get(topic, 0), self._flags(topic)
            if not flags and not before:
                continue
            if not flags:
                del self._held[topic]
                self._remote.pop(topic, None)
                core.counts.dismissed += 1
                core.effects.emit(GatewayDismissed(topic))
            else:
                self._held[topic] = flags
                if not before:
                    core.counts.appointed += 1
                    core.effects.emit(GatewayAppointed(topic))
                    self._look_abroad(topic)
                    if self._delegate is None and not self._others():
                        core.zones.refresh(now)  # there may be others: a member hears of them late
                core.effects.emit(GatewaysChanged(topic))
            if flags != before:
                self._register(topic, flags, now)

    def settle_rosters(self, topics: Iterable[str]) -> None:
        """What homes tell of other zones changed."""
        for topic in topics:
            if topic in self._held and self._look_abroad(topic):
                self._core.effects.emit(GatewaysChanged(topic))

    def _flags(self, topic: str) -> int:
        flags = 0
        for name, stake in self._reader.holders(Book.DECLARATIONS, topic).items():
            for flag in (PUBLISHES, SUBSCRIBES):
                if stake.flags & flag & ~flags and self._allowed(name, topic, flag):
                    flags |= flag
            if flags == PUBLISHES | SUBSCRIBES:
                return flags
        if self._reader.holders(Book.PROSPECTS, topic) and self._by_pattern(topic):
            flags |= SUBSCRIBES
        return flags

    def _allowed(self, name: NodeId, topic: str, flag: int) -> bool:
        may = self._core.may
        if may is None or may(name, "publish" if flag == PUBLISHES else "subscribe", topic):
            return True
        self._core.counts.not_allowed += 1
        return False

    def _look_abroad(self, topic: str) -> bool:
        """Read the gateways of other zones anew; the latest word about each counts."""
        core = self._core
        best: dict[NodeId, tuple[bool, Stake]] = {}
        for holder, stake in self._reader.holders(Book.ROSTERS, topic).items():
            party = stake.party
            if party is None or party.gateway == core.me:
                continue
            if party.zone == core.zone and self._is_fellow(party.gateway):
                continue  # a gateway that takes over from this one, or the other way round
            key = key_for(topic, party.gateway)
            certain = not self._reader.is_doubted(Book.ROSTERS, owner_of(holder), key)
            if certain or not best.get(party.gateway, (False, stake))[0]:
                best[party.gateway] = (certain, stake)
        remote = {}
        for name, (_, stake) in best.items():
            assert stake.party is not None
            self._meet(stake.party)
            publishes, subscribes = bool(stake.flags & PUBLISHES), bool(stake.flags & SUBSCRIBES)
            remote[name] = RemoteGateway(stake.party.zone, publishes, subscribes)
        changed = remote != self._remote.get(topic, NOBODY)
        if remote:
            self._remote[topic] = remote
        else:
            self._remote.pop(topic, None)
        return changed

    def _is_fellow(self, name: NodeId) -> bool:
        """Whether it is in this zone, or said that it leaves it: else it is in another part."""
        base = self._core.base
        if base is None or name in base:
            return base is not None
        record = base.record(name)
        return record is not None and record.left

    def _meet(self, party: Party) -> None:
        core = self._core
        if party.endpoints and self._known.get(party.gateway) != party:
            if len(self._known) >= core.settings.max_ledgers:
                del self._known[next(iter(self._known))]
            self._known[party.gateway] = party
            if core.base is None or party.gateway not in core.base:
                core.effects.emit(ContactLearned(party.gateway, party.endpoints))

    # -- registering ----------------------------------------------------------------------------

    def _register(self, topic: str, flags: int, now: float) -> None:
        if self._delegate is None:
            return
        if flags:
            self._writer.put(Book.REGISTRATIONS, self._delegate, topic, OWN_STAKES[flags], now)
        else:
            self._writer.withdraw(Book.REGISTRATIONS, self._delegate, topic, now)

    def review(self, now: float) -> None:
        """Delegates or zones changed: register with who answers, or with nobody."""
        chosen, before = self._choose(), self._delegate
        if chosen == before:
            return
        core = self._core
        self._delegate = chosen
        if before is not None:
            if core.base is None or before not in core.base:
                self._writer.drop(Book.REGISTRATIONS, before)
            elif chosen is None and not self._others():
                for topic in list(self._writer.lines(Book.REGISTRATIONS, before)):
                    self._writer.withdraw(Book.REGISTRATIONS, before, topic, now)
            else:
                self._writer.forget_all(Book.REGISTRATIONS, before, now)
        for topic, flags in self._held.items():
            self._register(topic, flags, now)

    def _others(self) -> bool:
        """Whether there is another zone: a single one costs nothing."""
        zone = self._core.zone
        return any(entry.name != zone for entry in self._core.zones.zones())

    def _choose(self) -> NodeId | None:
        zones = self._core.zones
        if self._core.base is None or not self._others():
            return None
        if zones.is_delegate:
            return self._core.me
        delegates = [name for name in zones.delegates if name in self._core.base]
        before = self._delegate
        if before and self._writer.unanswered(Book.REGISTRATIONS, before) >= SILENT:
            self._silent[before] = None
        if all(name in self._silent for name in delegates):
            self._silent.clear()
        for name in delegates:
            if name not in self._silent:
                return name
        return None

    # -- invariants -----------------------------------------------------------------------------

    def check(self) -> None:
        """Whoever registers does so with one delegate only, and only what it stands for."""
        core = self._core
        if self._delegate is None:
            return
        registered = self._writer.lines(Book.REGISTRATIONS, self._delegate)
        if len(registered) != len(self._held):
            raise InvariantViolation(
                f"{core.me}: stands for {len(self._held)} topics and registered {len(registered)}"
            )
