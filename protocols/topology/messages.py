"""What travels between two ends of a link. All of it may be lost, repeated or overtaken."""

from __future__ import annotations

from overlay.protocol import Message
from protocols.topology.kinds import WireKinds, WireReasons


class LinkRequest(Message, frozen=True, tag=48):
    """I want a link with you, for these reasons."""

    kinds: WireReasons


class LinkAccept(Message, frozen=True, tag=49):
    """So be it; and these are my own reasons, perhaps none."""

    kinds: WireKinds


class LinkRefused(Message, frozen=True, tag=50):
    """My degree bound leaves no room for a link with you."""


class LinkDropped(Message, frozen=True, tag=51):
    """I hold no link with you."""


class LinkCheck(Message, frozen=True, tag=52):
    """Our link is up here, and these are my reasons for it now."""

    kinds: WireKinds


MESSAGES: tuple[type[Message], ...] = (
    LinkRequest,
    LinkAccept,
    LinkRefused,
    LinkDropped,
    LinkCheck,
)
