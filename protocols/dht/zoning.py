"""Storage zones: delegates count slices and compute the upper tier ring, members read it.

A delegate shows its zone's slices (and the table) by the attribute `dht` in the management zone,
and tells its own zone all storage zones by the attribute `dht-tier`.
"""

from __future__ import annotations

from math import inf

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from overlay.protocol import Scope
from protocols.dht.core import REVIEW, Core
from protocols.dht.events import StorageZoneAdded, StorageZoneRemoved
from protocols.dht.interface import DHT
from protocols.dht.placement import Tier
from protocols.dht.slices import SliceCounter

TIER = "dht-tier"
MOST_SLICES = 1 << 16


class Zoning:
    """Keeps `Core.tier` as the delegates of this node's zone tell it."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._slices = 0
        settings = core.settings
        self._counter = SliceCounter(
            settings.slice_size, settings.slice_slack, settings.slice_patience
        )

    def review(self, now: float) -> bool:
        """Tell and read; true when the tier changed."""
        self._tell(now)
        core = self._core
        tier, core.oldest = self._read()
        if tier == core.tier:
            return False
        before, after = dict(core.tier), dict(tier)
        core.tier = tier
        for zone, slices in after.items():
            if zone not in before:
                core.effects.emit(StorageZoneAdded(zone, slices))
        for zone in before:
            if zone not in after:
                core.effects.emit(StorageZoneRemoved(zone))
        return True

    # -- a delegate -------------------------------------------------------------------------------

    def _tell(self, now: float) -> None:
        core = self._core
        zones = core.zones
        management = None if zones is None else zones.management
        if zones is None or management is None or management.stopped or not zones.is_delegate:
            self._slices = 0
            return
        if not self._slices:
            self._slices = self._shown_by(zones.delegates)
        self._slices, due = self._counter.count(self._slices, len(core.lives), now)
        if due < inf:
            core.timers.hasten(REVIEW, due)
        shown = f"{self._slices}:{core.number:x}"
        oldest = min(self.tables().values(), default=0)
        zones_told = ",".join(f"{zone}={slices}" for zone, slices in self._computed())
        told = f"{oldest:x};{zones_told}"
        try:
            if management.view.attributes(core.me).get(DHT) != shown:
                management.set_attribute(DHT, shown, now)
            if core.base.view.attributes(core.me).get(TIER) != told:
                core.base.set_attribute(TIER, told, now)
        except LocalProtocolError:
            core.counts.busy += 1  # the application's own attributes leave no room

    def _shown_by(self, delegates: tuple[NodeId, ...]) -> int:
        """Slices as another delegate of the zone counts them: its successor goes on from there."""
        return max((self._shown(name)[0] for name in delegates), default=0)

    def _shown(self, delegate: NodeId) -> tuple[int, int]:
        """(slices, table) that a delegate shows; zeros where it shows none."""
        zones = self._core.zones
        management = None if zones is None else zones.management
        said = None if management is None else management.view.attributes(delegate).get(DHT)
        if not isinstance(said, str):
            return (0, 0)
        slices, _, table = said.partition(":")
        try:
            return (min(max(int(slices), 0), MOST_SLICES), int(table, 16))
        except ValueError:
            return (0, 0)

    def _computed(self) -> Tier:
        """The storage zones in the management zone's view."""
        zones = self._core.zones
        assert zones is not None
        found: dict[Scope, int] = {}
        for entry in zones.zones():
            slices = max((self._shown(name)[0] for name in entry.delegates), default=0)
            if slices:
                found[entry.name] = slices
        return tuple(sorted(found.items()))

    def tables(self) -> dict[NodeId, int]:
        """Delegates, of any zone, that show a table."""
        zones = self._core.zones
        if zones is None or zones.management is None:
            return {}
        shown = {name: self._shown(name)[1] for one in zones.zones() for name in one.delegates}
        return {name: table for name, table in shown.items() if table}

    # -- a member ---------------------------------------------------------------------------------

    def _read(self) -> tuple[Tier, int]:
        core = self._core
        delegates = () if core.zones is None else core.zones.delegates
        for name in delegates:
            said = core.base.view.attributes(name).get(TIER)
            if isinstance(said, str):
                return read_tier(said)
        return (core.tier, core.oldest) if delegates else ((), 0)


def read_tier(said: str) -> tuple[Tier, int]:
    """What a delegate told, and the oldest table it knows of; what cannot be read is left out."""
    found: dict[Scope, int] = {}
    number, _, words = said.partition(";")
    try:
        oldest = max(int(number, 16), 0)
    except ValueError:
        oldest = 0
    for word in words.split(","):
        zone, _, slices = word.rpartition("=")
        if zone and slices.isascii() and slices.isdigit() and 0 < int(slices) <= MOST_SLICES:
            found[zone] = int(slices)
    return tuple(sorted(found.items())), oldest
