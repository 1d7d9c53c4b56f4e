"""Facts about a zone's members, for siblings and applications."""

from __future__ import annotations

from collections.abc import Iterable

from overlay.ids import NodeId
from overlay.protocol import Event, Scope
from overlay.tracing import Trace
from overlay.tracing.kinds import (
    MEMBER_FAILED,
    MEMBER_JOINED,
    MEMBER_LEFT,
    MEMBER_REFUTED,
    MEMBER_SUSPECTED,
    ZONE_ENTERED,
)


class MemberJoined(Event, frozen=True):
    """A member appeared, or came back."""

    zone: Scope
    member: NodeId
    incarnation: int

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(MEMBER_JOINED, self.member, value=float(self.incarnation)),)


class MemberSuspected(Event, frozen=True):
    """A member does not answer; it stays in the view until MemberFailed."""

    zone: Scope
    member: NodeId
    accuser: NodeId

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(MEMBER_SUSPECTED, self.member, origin=self.accuser),)


class MemberRefuted(Event, frozen=True):
    """A suspect proved to be alive."""

    zone: Scope
    member: NodeId

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(MEMBER_REFUTED, self.member),)


class MemberFailed(Event, frozen=True):
    """A member is held to be dead, or restarted: its earlier life is over."""

    zone: Scope
    member: NodeId
    restarted: bool = False

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(MEMBER_FAILED, self.member, detail="restarted" if self.restarted else ""),)


class MemberLeft(Event, frozen=True):
    """A member said goodbye."""

    zone: Scope
    member: NodeId

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(MEMBER_LEFT, self.member),)


class AttributesChanged(Event, frozen=True):
    """These attributes of a member were set or removed."""

    zone: Scope
    member: NodeId
    keys: tuple[str, ...]


class ZoneEntered(Event, frozen=True):
    """A contact answered with its whole view: this node is a member."""

    zone: Scope
    contact: NodeId

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(ZONE_ENTERED, self.contact),)


class NameTaken(Event, frozen=True):
    """This node may not be a member: it must stop, or take another name; `reason` says why."""

    zone: Scope
    name: NodeId
    reason: str
