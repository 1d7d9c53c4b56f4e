"""What may be done from the page, if the user allowed it: a node leaves, or records more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from overlay.errors import LocalProtocolError
from overlay.tracing import LEVEL_NAMES

if TYPE_CHECKING:
    from nodes.dashboard.hub import Hub

BODY_BYTES = 4096


class Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One request: `leave`, or `trace` with a level."""

    do: str
    overlay: str
    node: str
    level: str = ""


def read_action(body: bytes) -> Action:
    """LocalProtocolError when it is none."""
    try:
        action = msgspec.json.decode(body, type=Action)
    except msgspec.MsgspecError as error:
        raise LocalProtocolError(f"no action: {error}") from None
    if action.do not in ("leave", "trace"):
        raise LocalProtocolError(f"no action {action.do!r}: leave or trace")
    if action.do == "trace" and action.level not in LEVEL_NAMES:
        raise LocalProtocolError(f"level {action.level!r}: one of {', '.join(LEVEL_NAMES)}")
    return action


async def act(hub: Hub, action: Action) -> dict[str, Any]:
    """Do it, by the requests that `overlay stop` and `overlay trace` make."""
    node = hub.nodes.get((action.overlay, action.node))
    if node is None:
        raise LocalProtocolError(f"no node {action.node!r} is watched in {action.overlay!r}")
    if action.do == "leave":
        await node.source.order_to("stop")
        return {"done": f"{node.name} leaves"}
    await node.source.order_to("trace", level=action.level)
    return {"done": f"{node.name} records {action.level}"}
