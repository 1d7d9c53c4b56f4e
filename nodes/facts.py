"""Members, links and events of a zone as plain values, for `--json` and the control socket."""

import re
import time
from typing import Any

import msgspec

from nodes.members import Member
from overlay.ids import NodeId
from overlay.protocol import Event
from protocols.membership import AttributesChanged
from protocols.membership.interface import MembershipView
from protocols.topology import Kind, TopologyView
from protocols.zones import ZoneAppeared, ZoneChanged

_WORD = re.compile(r"(?<!^)(?=[A-Z])")


def event_facts(event: Event, view: MembershipView | None = None) -> dict[str, Any]:
    """`MemberJoined(...)` as `{"event": "member-joined", ...}`, with the time in two clocks.

    `at` is Unix time for people; `monotonic` compares events of all processes of a machine.
    """
    facts: dict[str, Any] = {"event": kind_of(event)}
    facts |= msgspec.to_builtins(event)
    if isinstance(event, ZoneAppeared | ZoneChanged):
        facts["zone"] = msgspec.structs.asdict(event.zone)  # on the wire it is an array
    if isinstance(event, AttributesChanged) and view is not None:
        values = view.attributes(event.member)
        facts["values"] = {key: values.get(key) for key in event.keys}  # null: removed
    return facts | {"at": time.time(), "monotonic": time.monotonic()}


def kind_of(event: Event) -> str:
    """`member-joined` for a MemberJoined."""
    return _WORD.sub("-", type(event).__name__).lower()


def protocol_of(event: Event) -> str:
    """`membership` for a MemberJoined; `net` for what the driver tells, as LinkUp."""
    package, _, rest = type(event).__module__.partition(".")
    return rest.partition(".")[0] if package == "protocols" else "net"


def member_facts(member: Member) -> dict[str, Any]:
    """One member; JSON has no 128-bit numbers, so its place is text."""
    return msgspec.structs.asdict(member) | {"vid": f"{member.vid:032x}"}


def link_facts(links: TopologyView) -> list[dict[str, Any]]:
    """The links of this node, the oldest first."""
    return [{"peer": peer, "kinds": kind_words(links.kinds(peer))} for peer in links.neighbours()]


def kind_words(kinds: Kind) -> list[str]:
    """`["ring", "random"]`; empty when neither end tells a reason any more."""
    return [str(kind.name).lower() for kind in Kind if kind and kind in kinds]


def sentence(facts: dict[str, Any]) -> str:
    """An event in one line for people, without its time."""
    who: NodeId = facts.get("member", facts.get("peer", ""))
    match facts["event"]:
        case "member-joined":
            return f"{who} joined"
        case "member-suspected":
            return f"{who} is suspected by {facts['accuser'] or 'somebody'}"
        case "member-refuted":
            return f"{who} is alive after all"
        case "member-failed":
            return f"{who} restarted" if facts["restarted"] else f"{who} failed"
        case "member-left":
            return f"{who} left"
        case "attributes-changed":
            values: dict[str, Any] = facts.get("values") or dict.fromkeys(facts["keys"])
            said = ", ".join(
                f"{key} removed" if value is None else f"{key} = {value}"
                for key, value in values.items()
            )
            return f"{who}: {' '.join(said.split())}"  # one line, whatever it holds
        case "zone-appeared" | "zone-changed":
            zone = facts["zone"]
            delegates = ", ".join(zone["delegates"]) or "nobody at the moment"
            return f"zone {zone['name']}: size {zone['size']}, delegates {delegates}"
        case "zone-vanished":
            return f"zone {facts['name']} is gone"
        case "delegate-appointed":
            return f"{facts['delegate']} stands for zone {facts['zone']} now"
        case "delegate-dismissed":
            return f"{facts['delegate']} does not stand for zone {facts['zone']} any more"
        case "link-up":
            return f"link to {who} up"
        case "link-lost":
            return f"link to {who} lost: {facts['reason']}"
        case kind:
            return f"{kind.replace('-', ' ')} {who}".rstrip()
