"""All zones of the overlay, as attributes in the management zone tell them; or as a table told."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

import msgspec

from overlay.errors import InvariantViolation
from overlay.ids import NodeId, key_of
from overlay.protocol import Scope
from protocols.membership.interface import ROLES
from protocols.zones.contacts import ZONE
from protocols.zones.core import Core
from protocols.zones.events import ZoneAppeared, ZoneChanged, ZoneVanished
from protocols.zones.interface import (
    DELEGATE,
    MAX_NAMED,
    MAX_SIZE,
    SUMMARY_CHARACTERS,
    SUPERVISOR,
    ZoneEntry,
)
from protocols.zones.naming import is_zone_name

SIZE = "size"
SUMMARY = "summary"
CLAIM_KEYS = (ROLES, ZONE, SIZE, SUMMARY)

VANISH = "vanish"  # and the zone's name: nobody stood for it for too long
DIRECTORY = "directory"  # changes of the management view are taken into the table


class Claim(msgspec.Struct, frozen=True):
    """What one delegate says of its zone."""

    zone: Scope
    size: int
    summary: str
    born: int


@lru_cache(maxsize=65_536)
def weight(zone: Scope, supervisor: NodeId) -> int:
    """How much a zone prefers a supervisor: the same for everybody, and even over all zones."""
    return key_of(f"{zone}/{supervisor}")


def assign(zone: Scope, supervisors: Iterable[NodeId], count: int) -> tuple[NodeId, ...]:
    """Who look after a zone: the heaviest. Without one of them, the next takes its place.

    Consistent hashing by rendezvous: a supervisor that comes or goes moves only its own zones.
    """
    ranked = sorted(supervisors, key=lambda name: weight(zone, name), reverse=True)
    return tuple(ranked[:count])


class Directory:
    """The table of zones: kept from the management view while this node is in it."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._table: dict[Scope, ZoneEntry] = {}
        self._sorted: tuple[ZoneEntry, ...] | None = ()
        self._digest: bytes | None = None
        self._claims: dict[Scope, dict[NodeId, Claim]] = {}
        self._zone_of: dict[NodeId, Scope] = {}
        self._supervisors: dict[NodeId, None] = {}
        self._dirty: dict[Scope, None] = {}

    def zones(self) -> tuple[ZoneEntry, ...]:
        """All of them, by name."""
        if self._sorted is None:
            self._sorted = tuple(self._table[name] for name in sorted(self._table))
        return self._sorted

    def entry(self, zone: Scope) -> ZoneEntry | None:
        """One of them."""
        return self._table.get(zone)

    @property
    def digest(self) -> bytes:
        """Of the whole table, the same wherever the table is the same."""
        if self._digest is None:
            self._digest = digest_of(self.zones())
        return self._digest

    def delegates(self, zone: Scope) -> tuple[NodeId, ...]:
        """Who stand for a zone, the most senior first, however many."""
        claims = self._claims.get(zone, {})
        return tuple(sorted(claims, key=lambda name: (claims[name].born, name)))

    # -- a table that somebody told ---------------------------------------------------------------

    def replace(self, entries: Iterable[ZoneEntry]) -> None:
        """Take a whole table, on a node that is not in the management zone."""
        table = {entry.name: entry for entry in entries}
        for name in [name for name in self._table if name not in table]:
            self._put(name, None)
        for name, entry in table.items():
            self._put(name, entry)

    # -- from the management view ---------------------------------------------------------------

    def entered(self, now: float) -> None:
        """This node is in the management zone: what it was told before must now show itself."""
        core = self._core
        assert core.management is not None
        for name in self._table:
            core.timers.set((VANISH, name), now + core.settings.vanish_after)
        for member in core.management.view.members():
            self.look_at(member, now)

    def left(self, now: float) -> None:
        """It is no more: the table stays as it was told last."""
        self.refresh(now)
        for name in self._table:
            self._core.timers.cancel((VANISH, name))
        self._core.timers.cancel(DIRECTORY)
        self._claims.clear()
        self._zone_of.clear()
        self._supervisors.clear()
        self._dirty.clear()

    def look_at(self, member: NodeId, now: float) -> None:
        """A member of the management zone came, went, or changed what it says."""
        before = self._zone_of.pop(member, "")
        if before:
            del self._claims[before][member]
            self._touch(before, now)
        claim = self._claim(member)
        if claim is not None:
            self._zone_of[member] = claim.zone
            self._claims.setdefault(claim.zone, {})[member] = claim
            self._touch(claim.zone, now)
        if self._is_supervisor(member) != (member in self._supervisors):
            if member in self._supervisors:
                del self._supervisors[member]
            else:
                self._supervisors[member] = None
            for zone in self._table:
                self._touch(zone, now)

    def _touch(self, zone: Scope, now: float) -> None:
        self._dirty[zone] = None
        timers = self._core.timers
        if DIRECTORY not in timers:
            timers.set(DIRECTORY, now + self._core.settings.review_delay)

    def _claim(self, member: NodeId) -> Claim | None:
        """What a member says of its zone, if it may say so."""
        core = self._core
        assert core.management is not None
        view = core.management.view
        record = view.record(member)
        if record is None or not record.present or DELEGATE not in view.roles(member):
            return None
        said = view.attributes(member)
        zone, size, summary = said.get(ZONE), said.get(SIZE), said.get(SUMMARY, "")
        if zone is None or size is None:
            return None  # the rest of its attributes is still under way
        if (
            not isinstance(zone, str)
            or not is_zone_name(zone)
            or not isinstance(size, int)
            or not 1 <= size <= MAX_SIZE
            or not isinstance(summary, str)
            or len(summary) > SUMMARY_CHARACTERS
            or not core.may_join(member, zone)
        ):
            core.counts.claims_refused += 1
            return None
        return Claim(zone, size, summary, record.born)

    def _is_supervisor(self, member: NodeId) -> bool:
        core = self._core
        assert core.management is not None
        view = core.management.view
        if member not in view or SUPERVISOR not in view.roles(member):
            return False
        if not core.may_be(member, SUPERVISOR):
            core.counts.claims_refused += 1
            return False
        return True

    def refresh(self, now: float) -> list[Scope]:
        """Take what changed into the table, and return the names of those zones."""
        core = self._core
        core.timers.cancel(DIRECTORY)
        dirty = list(self._dirty)
        self._dirty.clear()
        for zone in dirty:
            known = self._table.get(zone)
            claims = self._claims.get(zone)
            if claims:
                core.timers.cancel((VANISH, zone))
                self._put(zone, self._composed(zone, claims))
                continue
            self._claims.pop(zone, None)
            if known is None:
                continue
            watch = assign(zone, self._supervisors, core.settings.supervisors)
            self._put(zone, msgspec.structs.replace(known, delegates=(), supervisors=watch))
            if (VANISH, zone) not in core.timers:
                core.timers.set((VANISH, zone), now + core.settings.vanish_after)
        return dirty

    def _composed(self, zone: Scope, claims: dict[NodeId, Claim]) -> ZoneEntry:
        delegates = self.delegates(zone)
        # Delegates of a zone that is split see parts of it: the largest part speaks for it.
        largest = max(delegates, key=lambda name: (claims[name].size, claims[name].summary))
        return ZoneEntry(
            zone,
            claims[largest].size,
            delegates[:MAX_NAMED],
            assign(zone, self._supervisors, self._core.settings.supervisors),
            claims[largest].summary,
        )

    def vanish(self, zone: Scope) -> None:
        """Nobody stood for it in all that time."""
        if not self._claims.get(zone):
            self._claims.pop(zone, None)
            self._put(zone, None)

    def _put(self, name: Scope, entry: ZoneEntry | None) -> None:
        core = self._core
        known = self._table.get(name)
        if entry == known:
            return
        if known is None and len(self._table) >= core.settings.max_zones:
            core.counts.zones_ignored += 1
            return
        self._sorted = self._digest = None
        if entry is None:
            del self._table[name]
            core.effects.emit(ZoneVanished(name))
        else:
            self._table[name] = entry
            core.effects.emit(ZoneAppeared(entry) if known is None else ZoneChanged(entry))

    # -- invariants -----------------------------------------------------------------------------

    def check(self) -> None:
        """A zone without delegates is about to vanish; what changed is about to be looked at."""
        core = self._core
        if self._dirty and DIRECTORY not in core.timers:
            raise InvariantViolation(f"{core.me}: never looks at {next(iter(self._dirty))!r}")
        if len(self._table) > core.settings.max_zones:
            raise InvariantViolation(f"{core.me}: {len(self._table)} zones")
        if core.management is None:
            return
        for name in self._table:
            if (
                not self._claims.get(name)
                and name not in self._dirty
                and (VANISH, name) not in core.timers
            ):
                raise InvariantViolation(f"{core.me}: zone {name!r} never vanishes")

    def audit(self) -> None:
        """The claims are those of the management view, all of them."""
        core = self._core
        self.check()
        if core.management is None:
            return
        for member in core.management.view.members():
            claim = self._claim(member)
            held = self._claims.get(self._zone_of.get(member, ""), {}).get(member)
            if claim != held:
                raise InvariantViolation(f"{core.me}: {member} claims {claim}, held is {held}")
            if self._is_supervisor(member) != (member in self._supervisors):
                raise InvariantViolation(f"{core.me}: {member} is a supervisor and is none")
        for member in self._zone_of:
            if member not in core.management.view:
                raise InvariantViolation(f"{core.me}: {member} is gone and claims a zone")


@lru_cache(maxsize=4096)
def _entry_bytes(entry: ZoneEntry) -> bytes:
    return msgspec.msgpack.encode(entry)


def digest_of(entries: Iterable[ZoneEntry]) -> bytes:
    """Eight bytes that every process computes alike."""
    sums = blake2b(digest_size=8)
    for entry in entries:
        sums.update(_entry_bytes(entry))
    return sums.digest()
