"""What the control socket of a node tells about zones, its own and all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from overlay.errors import LocalProtocolError
from protocols.zones import (
    DelegateAppointed,
    DelegateDismissed,
    ZoneAppeared,
    ZoneChanged,
    ZoneMembersKnown,
    ZoneMembersUnknown,
    Zones,
    ZoneVanished,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from nodes.node import Node


ZONE_EVENTS = (ZoneAppeared, ZoneChanged, ZoneVanished, DelegateAppointed, DelegateDismissed)


class Federation:
    """Registers `zones` and `zone-members` with a node's control socket."""

    def __init__(self, node: Node) -> None:
        self._node = node
        node.control.register("zones", self._tell_zones)
        node.control.register("zone-members", self._tell_members)

    def _tell_zones(self) -> dict[str, Any]:
        zones = self._node.protocol(Zones)
        return self._heading() | {
            "delegate": zones.is_delegate,
            "delegates": zones.delegates,
            "zones": [named(entry) for entry in zones.zones()],
        }

    async def _tell_members(self, zone: str) -> AsyncIterator[dict[str, Any]]:
        """Ask around, and tell once."""
        node = self._node
        with node.events(ZoneMembersKnown, ZoneMembersUnknown) as answers:
            question = node.call(node.protocol(Zones).ask_members, zone)
            async for answer in answers:
                if answer.id != question:
                    continue
                if isinstance(answer, ZoneMembersUnknown):
                    raise LocalProtocolError(f"nobody told who is in {zone!r}: {answer.reason}")
                yield self._heading() | {
                    "zone": zone,
                    "fresh": answer.fresh,
                    "members": [named(member) for member in answer.members],
                }
                return

    def _heading(self) -> dict[str, Any]:
        return {"node": self._node.name, "overlay": self._node.overlay, "zone": self._node.zone}


def named(entry: msgspec.Struct) -> dict[str, Any]:
    """By the names of its fields: on the wire it is an array."""
    return msgspec.structs.asdict(entry)
