"""The home's part: which gateways a topic has, told to all of them, and kept by a successor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from overlay.errors import InvariantViolation
from overlay.ids import NodeId, Vid
from overlay.patterns import covers
from overlay.protocol import ContactLearned, Scope
from protocols.gateways.checking import ZONE
from protocols.gateways.core import Core
from protocols.gateways.covering import read_patterns
from protocols.gateways.interface import PATTERNS
from protocols.gateways.ledger import OWN_STAKES, PUBLISHES, Book, Stake, key_for
from protocols.gateways.messages import MAX_ZONES, Party
from protocols.gateways.names import topic_id
from protocols.gateways.reading import Reader, owner_of
from protocols.gateways.writing import Writer

VERSED = "versed"
HEARSAY = 3  # × confirm in which delegates tell a new home what they know, in spite of loss


class Home:
    """Of every topic whose id this node is responsible for on the management zone's ring.

    It never says that a gateway is gone because it does not know it: what is no longer its own to
    tell it forgets without a word, and gateways hold on to it until the next home has told it.
    """

    def __init__(self, core: Core, reader: Reader, writer: Writer) -> None:
        self._core = core
        self._reader = reader
        self._writer = writer
        self._told: dict[str, dict[NodeId, Stake]] = {}  # topic, gateway: of my own topics
        self._existing: dict[str, dict[NodeId, None]] = {}  # topic, delegates told of it
        self._names: dict[Vid, str] = {}
        self._known: dict[NodeId, Party] = {}  # whose address was told to the driver
        self._successor: NodeId | None = None
        self._versed = False  # whether delegates had time to tell everything
        self._patterns: dict[Scope, tuple[NodeId, tuple[str, ...]]] = {}  # zone: whom to tell

    @property
    def topics(self) -> Mapping[str, Mapping[NodeId, Stake]]:
        """The topics that this node is the home of, and their gateways."""
        return self._told

    def find(self, topic: Vid) -> tuple[str, tuple[Scope, ...]] | None:
        """The name of a topic of mine, and the zones that are interested in it."""
        name = self._names.get(topic)
        if name is None:
            return None
        zones = {stake.party.zone for stake in self._told[name].values() if stake.party}
        return name, tuple(sorted(zones)[:MAX_ZONES])

    # -- gateways of topics ---------------------------------------------------------------------

    def settle(self, topics: Iterable[str], now: float) -> None:
        """What delegates or a predecessor tell of topics changed."""
        core = self._core
        for topic in topics:
            before = self._told.get(topic, {})
            if core.managers.responsible_for(topic_id(topic)) != core.me:
                if before:
                    self._hand_over(topic, before, now)
                continue
            after = self._merged(topic)
            if after != before:
                self._tell(topic, before, after, now)
            if after:
                self._told[topic] = after
                self._names[topic_id(topic)] = topic
            elif before:
                del self._told[topic], self._names[topic_id(topic)]
            self._tell_existing(topic, now)

    def _merged(self, topic: str) -> dict[NodeId, Stake]:
        """The best and latest word about each gateway."""
        management = self._core.zones.management
        assert management is not None
        best: dict[NodeId, tuple[int, Stake]] = {}
        for book in (Book.REPLICAS, Book.INTERESTS):
            for holder, stake in self._reader.holders(book, topic).items():
                owner, party = owner_of(holder), stake.party
                assert party is not None
                present = owner in management.view
                if book is Book.REPLICAS:
                    if present:
                        continue  # the home itself tells its gateways
                    rank = 0
                else:
                    key = key_for(topic, party.gateway)
                    rank = 2 if present and not self._reader.is_doubted(book, owner, key) else 1
                if rank >= best.get(party.gateway, (0, stake))[0]:
                    best[party.gateway] = (rank, stake)
        return {name: stake for name, (_, stake) in best.items()}

    def _tell(
        self, topic: str, before: dict[NodeId, Stake], after: dict[NodeId, Stake], now: float
    ) -> None:
        writer = self._writer
        for stake in after.values():
            self._meet(stake.party)
        for gone in before:
            key = key_for(topic, gone)
            if gone in after:
                continue
            for other in after:
                writer.withdraw(Book.ROSTERS, other, key, now)
            for other in before:
                writer.forget(Book.ROSTERS, gone, key_for(topic, other), now)
            if self._successor is not None:
                writer.withdraw(Book.REPLICAS, self._successor, key, now)
        for name, stake in after.items():
            key = key_for(topic, name)
            for other in after:
                if other != name or self._versed:
                    writer.put(Book.ROSTERS, other, key, stake, now)
            if self._successor is not None:
                writer.put(Book.REPLICAS, self._successor, key, stake, now)

    def _hand_over(self, topic: str, before: dict[NodeId, Stake], now: float) -> None:
        """Another home tells now: forget it all without a word."""
        writer = self._writer
        for name in before:
            for other in before:
                writer.forget(Book.ROSTERS, name, key_for(topic, other), now)
            if self._successor is not None:
                writer.forget(Book.REPLICAS, self._successor, key_for(topic, name), now)
        for delegate in self._existing.pop(topic, {}):
            writer.forget(Book.EXISTING, delegate, topic, now)
        del self._told[topic], self._names[topic_id(topic)]

    def _meet(self, party: Party | None) -> None:
        core = self._core
        if party is None or not party.endpoints or self._known.get(party.gateway) == party:
            return
        if len(self._known) >= core.settings.max_ledgers:
            del self._known[next(iter(self._known))]
        self._known[party.gateway] = party
        if party.gateway != core.me and (core.base is None or party.gateway not in core.base):
            core.effects.emit(ContactLearned(party.gateway, party.endpoints))

    # -- the management zone --------------------------------------------------------------------

    def entered(self, now: float) -> None:
        """This node is in the management zone."""
        self.follow(now, grew=True)
        self.review_zones(now)

    def left(self) -> None:
        """It is no more; its ledgers are dropped, and others tell."""
        self._told.clear()
        self._existing.clear()
        self._names.clear()
        self._patterns.clear()
        self._successor = None
        self._core.timers.cancel(VERSED)

    def follow(self, now: float, *, grew: bool) -> None:
        """The ring changed: some topics are mine now (`grew`), others are not any more."""
        core = self._core
        if grew:
            self._versed = False
            core.timers.set(VERSED, now + HEARSAY * core.settings.confirm)
        successors = core.managers.ring.successors(core.me, 1)
        successor = successors[0] if successors else None
        if successor != self._successor:
            if self._successor is not None:
                self._writer.forget_all(Book.REPLICAS, self._successor, now)
            self._successor = successor
            if successor is not None:
                for topic, gateways in self._told.items():
                    for name, stake in gateways.items():
                        self._writer.put(Book.REPLICAS, successor, key_for(topic, name), stake, now)
        topics = dict.fromkeys(self._told)
        for book in (Book.INTERESTS, Book.REPLICAS):
            topics.update(dict.fromkeys(self._reader.topics(book)))
        self.settle(topics, now)

    def on_versed_alarm(self, now: float) -> None:
        """All delegates had time to tell what they know: what a gateway was told is complete.

        Each gateway's own line says so, once it has it from this home.
        """
        self._versed = True
        for topic, gateways in self._told.items():
            for name, stake in gateways.items():
                self._writer.put(Book.ROSTERS, name, key_for(topic, name), stake, now)

    # -- zones that subscribe by patterns -------------------------------------------------------

    def review_zones(self, now: float) -> None:
        """Delegates changed, or the patterns that they tell: see which topics concern them."""
        core = self._core
        management = core.zones.management
        if management is None or not core.manages:
            return
        view = management.view
        told: dict[Scope, dict[str, None]] = {}
        for name in view.members():
            said = view.attributes(name)
            zone = said.get(ZONE)
            if isinstance(zone, str) and PATTERNS in said:
                patterns, good = read_patterns(said[PATTERNS])
                core.counts.bad_patterns += not good
                told.setdefault(zone, {}).update(dict.fromkeys(patterns))
        fresh: dict[Scope, tuple[NodeId, tuple[str, ...]]] = {}
        for entry in core.zones.zones():
            patterns = tuple(told.get(entry.name, ()))
            delegates = [name for name in entry.delegates if name in view]
            if patterns and delegates:
                fresh[entry.name] = (delegates[0], patterns)
        if fresh != self._patterns:
            self._patterns = fresh
            for topic in self._told:
                self._tell_existing(topic, now)

    def _tell_existing(self, topic: str, now: float) -> None:
        """Tell delegates of a topic with publishers that their zone's patterns cover."""
        before = self._existing.get(topic, {})
        after: dict[NodeId, None] = {}
        gateways = self._told.get(topic, {})
        if self._patterns and any(stake.flags & PUBLISHES for stake in gateways.values()):
            for delegate, patterns in self._patterns.values():
                if any(covers(pattern, topic) for pattern in patterns):
                    after[delegate] = None
        if before == after:
            return
        stands = {delegate for delegate, _ in self._patterns.values()}
        for delegate in before:
            if delegate in after:
                continue
            if delegate in stands:
                self._writer.withdraw(Book.EXISTING, delegate, topic, now)
            else:  # another one stands for its zone now, and is told
                self._writer.forget(Book.EXISTING, delegate, topic, now)
        for delegate in after:
            self._writer.put(Book.EXISTING, delegate, topic, OWN_STAKES[PUBLISHES], now)
        if after:
            self._existing[topic] = after
        else:
            self._existing.pop(topic, None)

    # -- invariants -----------------------------------------------------------------------------

    def check(self) -> None:
        """What it tells it can name, and nobody outside of the management zone is a home."""
        core = self._core
        if len(self._names) != len(self._told):
            raise InvariantViolation(f"{core.me}: a topic of {len(self._told)} has no id")
        if self._told and not core.manages:
            raise InvariantViolation(f"{core.me}: a home outside of the management zone")
