"""What a driver tells about itself."""

from __future__ import annotations

import msgspec

from overlay.net.link import Link
from overlay.net.session import Session


class LinkStatus(msgspec.Struct, frozen=True):
    """One outgoing link."""

    peer: str
    endpoint: str
    state: str
    idle: float  # s since it was used
    opened: int  # times
    reason: str  # of the last failure
    waiting: int  # bytes
    bulk_waiting: int  # bytes, in the lane of what may wait


class SessionStatus(msgspec.Struct, frozen=True):
    """One peer that is connected to us."""

    peer: str
    idle: float  # s since it was heard
    frames: int


class DriverStatus(msgspec.Struct, frozen=True):
    """A node's sockets at one moment."""

    name: str
    overlay: str
    insecure: bool
    endpoints: list[str]
    uptime: float
    links: list[LinkStatus]
    sessions: list[SessionStatus]
    refusals: dict[str, int]
    counters: dict[str, int]


def link_status(link: Link, now: float) -> LinkStatus:
    """Describe a link."""
    return LinkStatus(
        link.name or "",
        str(link.endpoint or ""),
        link.state.value,
        now - link.used_at,
        link.welcomed,
        link.reason,
        link.writer.queued,
        link.bulk.queued if link.bulk is not None else 0,
    )


def session_status(session: Session, now: float) -> SessionStatus:
    """Describe a session."""
    return SessionStatus(session.name, now - session.heard_at, session.frames)
