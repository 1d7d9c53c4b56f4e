"""The pages as plain values, made of the facts that the commands print.

A view is a function of what the hub knows; `WANTS` says what nodes have to be asked for it. All
that changes by parts is a dict, so that a patch is small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from nodes.dashboard.hub import Want
from nodes.topic_rows import rows_of
from nodes.whose_word import best_of_each_overlay, first_of_each_zone

if TYPE_CHECKING:
    from nodes.dashboard.hub import Hub, Key, Watched

Build: TypeAlias = Callable[["Hub"], dict[str, Any]]

RING = 1 << 128
EVENTS_SHOWN = 500
GLANCED = ("delegate", "gateway_of", "waiting", "sent", "received", "dropped", "refused")
NODE_NAMES = (
    *("status", "glance", "topology", "topics", "time", "dht-stats", "colony", "resources"),
    *("trace", "discovery", "broker", "bdn"),
)


def told(hub: Hub, name: str) -> list[dict[str, Any]]:
    """The last answers to one question, in the order in which commands get them."""
    return [node.facts[name] for node in hub.nodes.values() if name in node.facts]


def overview(hub: Hub) -> dict[str, Any]:
    """Zones as rings: members and their places, delegates, links, and what watched nodes do."""
    overlays: dict[str, dict[str, Any]] = {}
    for table in best_of_each_overlay(told(hub, "zones")):
        zones = overlays.setdefault(table["overlay"], {"zones": {}})["zones"]
        for zone in table["zones"]:
            zones[zone["name"]] = {
                "size": zone["size"],
                "delegates": dict.fromkeys(zone["delegates"], 1),
                "supervisors": dict.fromkeys(zone["supervisors"], 1),
                "summary": zone["summary"],
                "members": {},
            }
    for view in first_of_each_zone(told(hub, "members")):
        zone = _zone(overlays, view["overlay"], view["zone"])
        zone["seen_by"] = view["node"]
        zone["members"] = {
            one["name"]: {"s": one["state"], "p": int(one["vid"], 16) / RING}
            for one in view["members"]
        }
    for (overlay, name), answer in hub.afar.items():
        zone = _zone(overlays, overlay, name)
        zone["members"] = {one["name"]: {"s": "told"} for one in answer["members"]}
    for node in hub.nodes.values():
        facts = overlays.setdefault(node.overlay, {"zones": {}})
        facts.setdefault("nodes", {})[node.name] = _glance(node)
    return {"overlays": overlays, "watched": len(hub.nodes), "period": hub.period}


def _zone(overlays: dict[str, dict[str, Any]], overlay: str, zone: str) -> dict[str, Any]:
    zones: dict[str, Any] = overlays.setdefault(overlay, {"zones": {}})["zones"]
    found: dict[str, Any] = zones.setdefault(
        zone, {"size": 0, "delegates": {}, "supervisors": {}, "summary": "", "members": {}}
    )
    return found


def _glance(node: Watched) -> dict[str, Any]:
    """What is not zero or false: a page of a thousand members counts each byte."""
    glance = node.facts.get("glance", {})
    topology = node.facts.get("topology", {})
    facts = {
        "zone": node.zone,
        "silent": node.silent,
        **{name: glance.get(name) for name in GLANCED},
        "far": dict.fromkeys(glance.get("far", ()), 1),
        "links": {one["peer"]: " ".join(one["kinds"]) for one in topology.get("links", ())},
    }
    return {name: value for name, value in facts.items() if value}


def topics(hub: Hub) -> dict[str, Any]:
    """What `overlay topics` shows, with rates over the last seconds."""
    before, after, seconds = [], [], {}
    for node in hub.nodes.values():
        if node.looks:
            (then, earlier), (now, later) = node.looks[0], node.looks[-1]
            after.append(later)
            if now > then:
                before.append(earlier)
                seconds[node.key] = now - then
    overlays: dict[str, dict[str, Any]] = {}
    for row in rows_of(before, after, seconds):
        facts = msgspec.to_builtins(row)
        facts["modes"] = dict.fromkeys(facts["modes"], 1)
        overlays.setdefault(facts.pop("overlay"), {})[facts.pop("topic")] = facts
    return {"overlays": overlays, "nodes": {view["node"]: 1 for view in after}}


def table(hub: Hub) -> dict[str, Any]:
    """What `overlay dht stats` shows: who keeps how much, and what is still to be moved."""
    return {"nodes": {f"{one['node']}": one for one in told(hub, "dht-stats")}}


def clocks(hub: Hub) -> dict[str, Any]:
    """What `overlay time` shows."""
    nodes = {}
    for one in told(hub, "time"):
        facts = {key: value for key, value in one.items() if key != "now"}
        facts["sources"] = {source["source"]: source for source in one["sources"]}
        nodes[one["node"]] = facts
    return {"nodes": nodes}


def discovery(hub: Hub) -> dict[str, Any]:
    """Brokers, who lists them, and the candidates of the last search of each node."""
    return {
        "searches": {one["node"]: one for one in told(hub, "discovery")},
        "brokers": {one["node"]: one for one in told(hub, "broker")},
        "bdns": {one["node"]: one for one in told(hub, "bdn")},
    }


def colonies(hub: Hub) -> dict[str, Any]:
    """What `overlay colony tree` shows."""
    return {"nodes": {one["node"]: one for one in told(hub, "colony")}}


def events(hub: Hub) -> dict[str, Any]:
    """The log, the newest last; each event under its number."""
    shown = list(hub.log)[-EVENTS_SHOWN:]
    return {"events": {str(number): facts for number, facts in shown}, "count": hub.logged}


def node_page(key: Key) -> Build:
    """All of one node."""

    def build(hub: Hub) -> dict[str, Any]:
        node = hub.nodes.get(key)
        if node is None:
            return {"gone": True}
        facts = {name: node.facts[name] for name in NODE_NAMES if name in node.facts}
        if "status" in facts:
            facts["status"] = _status(facts["status"])
        if "time" in facts:
            facts["time"] = {name: value for name, value in facts["time"].items() if name != "now"}
        facts["silent"] = node.silent
        facts["round_trips"] = node.round_trips
        facts["member"] = _member(hub, node)
        return facts

    return build


def _status(status: dict[str, Any]) -> dict[str, Any]:
    """With links and sessions by peer, and without ages that always change."""
    driver = dict(status["driver"])
    driver["uptime"] = int(driver["uptime"])
    driver["links"] = {
        link["peer"] or link["endpoint"]: {k: v for k, v in link.items() if k != "idle"}
        for link in driver["links"]
    }
    driver["sessions"] = {one["peer"]: one["frames"] for one in driver["sessions"]}
    return {**status, "driver": driver}


def _member(hub: Hub, node: Watched) -> dict[str, Any]:
    """How its zone sees it."""
    for view in first_of_each_zone(told(hub, "members")):
        if (view["overlay"], view["zone"]) == (node.overlay, node.zone):
            for one in view["members"]:
                if one["name"] == node.name:
                    return dict(one)
    return {}


VIEWS: dict[str, tuple[Build, tuple[str, ...]]] = {
    "overview": (overview, ("glance", "topology", "members", "zones")),
    "topics": (topics, ("topics",)),
    "dht": (table, ("dht-stats",)),
    "time": (clocks, ("time",)),
    "discovery": (discovery, ("discovery", "broker", "bdn")),
    "colonies": (colonies, ("colony",)),
    "events": (events, ("glance",)),
}


def view_of(name: str) -> tuple[Build, list[Want]]:
    """The view of that name (`topics`, `node/OVERLAY/NAME`), and its wants; KeyError: none."""
    if name.startswith("node/"):
        overlay, _, node = name.removeprefix("node/").partition("/")
        if not overlay or not node:
            raise KeyError(name)
        key = (overlay, node)
        return node_page(key), [Want(NODE_NAMES, of=key), Want(("members",))]
    build, names = VIEWS[name]
    return build, [Want(names)]
