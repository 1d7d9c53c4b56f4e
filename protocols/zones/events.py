"""Facts about zones, for siblings and applications."""

from __future__ import annotations

from collections.abc import Iterable

from overlay.ids import NodeId
from overlay.protocol import Event, Scope
from overlay.tracing import Trace
from overlay.tracing.kinds import DELEGATE_APPOINTED, DELEGATE_DISMISSED
from protocols.zones.interface import MemberEntry, ZoneEntry


class ZoneAppeared(Event, frozen=True):
    """The directory has a zone that it did not have."""

    zone: ZoneEntry


class ZoneChanged(Event, frozen=True):
    """Size, delegates, supervisors or summary of a zone are others now."""

    zone: ZoneEntry


class ZoneVanished(Event, frozen=True):
    """Nobody stood for a zone for so long that it is taken for empty."""

    name: Scope


class DelegateAppointed(Event, frozen=True):
    """A member of this node's zone, perhaps this node, stands for it from now on."""

    zone: Scope
    delegate: NodeId

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(DELEGATE_APPOINTED, self.delegate),)


class DelegateDismissed(Event, frozen=True):
    """It does so no more: it is gone, or others do."""

    zone: Scope
    delegate: NodeId

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(DELEGATE_DISMISSED, self.delegate),)


class ZoneMembersKnown(Event, frozen=True):
    """The answer to question `id`."""

    id: int
    zone: Scope
    members: tuple[MemberEntry, ...]  # clockwise on the ring
    fresh: bool  # False: a supervisor told what it heard last
    tries: int


class ZoneMembersUnknown(Event, frozen=True):
    """Question `id` has no answer; `reason` says why."""

    id: int
    zone: Scope
    reason: str
