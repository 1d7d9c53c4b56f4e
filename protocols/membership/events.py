"""Facts about a zone's members, for siblings and applications."""

from __future__ import annotations

from overlay.ids import NodeId
from overlay.protocol import Event, Scope


class MemberJoined(Event, frozen=True):
    """A member appeared, or came back."""

    zone: Scope
    member: NodeId
    incarnation: int


class MemberSuspected(Event, frozen=True):
    """A member does not answer; it stays in the view until MemberFailed."""

    zone: Scope
    member: NodeId
    accuser: NodeId


class MemberRefuted(Event, frozen=True):
    """A suspect proved to be alive."""

    zone: Scope
    member: NodeId


class MemberFailed(Event, frozen=True):
    """A member is held to be dead, or restarted: its earlier life is over."""

    zone: Scope
    member: NodeId
    restarted: bool = False


class MemberLeft(Event, frozen=True):
    """A member said goodbye."""

    zone: Scope
    member: NodeId


class AttributesChanged(Event, frozen=True):
    """These attributes of a member were set or removed."""

    zone: Scope
    member: NodeId
    keys: tuple[str, ...]


class ZoneEntered(Event, frozen=True):
    """A contact answered with its whole view: this node is a member."""

    zone: Scope
    contact: NodeId


class NameTaken(Event, frozen=True):
    """This node may not be a member: it must stop, or take another name; `reason` says why."""

    zone: Scope
    name: NodeId
    reason: str
