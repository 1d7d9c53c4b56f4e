"""Pages are made of the facts that commands print, and only what changed is sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
import trio.testing

from bench.lab_world import OVERLAY, World, WorldSource
from nodes.dashboard.channels import KEPT, MOST_PAGES, Channel, Channels, TooManyPages
from nodes.dashboard.hub import Hub, Watched
from nodes.dashboard.patches import patched, without_nulls
from nodes.dashboard.views import VIEWS, overview, topics, view_of


def hub_of(world: World) -> Hub:
    """A hub that has asked everybody."""
    hub = Hub(None)
    for name in world.members:
        node = Watched(WorldSource(world, name), world.heading(name))
        for question in ("members", "topology", "zones", "glance"):
            facts = world.facts(name, question)
            assert facts is not None
            node.facts[question] = facts
        hub.nodes[node.key] = node
    return hub


def test_the_overview_tells_zones_members_delegates_and_links() -> None:
    world = World({"lab": 5, "edge": 3})
    model = overview(hub_of(world))
    zones = model["overlays"][OVERLAY]["zones"]
    assert list(zones["lab"]["members"]) == world.zone("lab")
    assert list(zones["edge"]["delegates"]) == world.delegates("edge")
    nodes = model["overlays"][OVERLAY]["nodes"]
    for name, told in world.links.items():
        assert nodes[name]["links"] == {one["peer"]: " ".join(one["kinds"]) for one in told}
    places = [one["p"] for one in zones["lab"]["members"].values()]
    assert places == sorted(places)
    assert all(0 <= place < 1 for place in places)


def test_every_view_can_be_made_of_nothing() -> None:
    hub = Hub(None)
    for name in (*VIEWS, "node/lab/ada"):
        build, wants = view_of(name)
        assert json.loads(json.dumps(without_nulls(build(hub)))) is not None
        assert wants


@pytest.mark.parametrize("name", ["", "nothing", "node", "node/", "node/lab", "node//ada"])
def test_other_views_there_are_none(name: str) -> None:
    with pytest.raises(KeyError):
        view_of(name)


def test_rates_are_between_the_looks_at_each_node() -> None:
    world = World({"lab": 1})
    hub = hub_of(world)
    (node,) = hub.nodes.values()

    def told(messages: int) -> dict[str, Any]:
        stream = {
            "topic": "t",
            "publisher": "a",
            "stream": 1,
            "mode": "ack",
            "messages": messages,
            "bytes": 100 * messages,
            "subscribers": [{"name": "b", "zone": "", "state": "operational", "behind": 3}],
        }
        heading = world.heading(node.name)
        return heading | {"published": [stream], "arriving": [], "gateways": {}}

    node.take({"topics": told(10)}, ["topics"], 100.0)
    assert topics(hub)["overlays"][OVERLAY]["t"]["per_second"] is None
    node.take({"topics": told(30)}, ["topics"], 102.0)
    row = topics(hub)["overlays"][OVERLAY]["t"]
    assert (row["per_second"], row["bytes_per_second"]) == (10.0, 1000.0)
    assert (row["messages"], row["behind"], row["modes"]) == (30, 3, {"ack": 1})
    for second in range(103, 120):  # nothing new is told: the stream stands still
        node.take({}, ["topics"], float(second))
    assert topics(hub)["overlays"][OVERLAY]["t"]["per_second"] == 0.0


def events(parts: list[bytes], model: dict[str, Any]) -> dict[str, Any]:
    """What a page has after these server-sent events."""
    for part in parts:
        kind, _, data = part.decode().rstrip("\n").split("\n")
        facts = json.loads(data.removeprefix("data: "))
        model = facts if kind == "event: state" else patched(model, facts)
    return model


def test_a_page_gets_the_whole_once_and_then_what_changed() -> None:
    world = World({"lab": 20})
    hub = hub_of(world)
    channel = Channel(hub, "overview")
    channel._look()
    first = channel.since(0)
    model = events(first, {})
    assert len(model["overlays"][OVERLAY]["zones"]["lab"]["members"]) == 20
    seen = channel.number
    gone = hub.nodes.pop((OVERLAY, "lab-007"))
    channel._look()
    (patch,) = channel.since(seen)
    assert patch.startswith(b"event: patch")
    assert len(patch) < 200 < len(first[0])
    assert events([patch], model) == without_nulls(overview(hub))
    channel._look()
    assert channel.number == seen + 1, "nothing changed, nothing is told"
    for _ in range(KEPT + 1):  # a page that sleeps gets the whole again
        gone.silent = not gone.silent
        hub.nodes[gone.key] = gone
        channel._look()
    (whole,) = channel.since(seen)
    assert whole.startswith(b"event: state")
    assert events([whole], {}) == without_nulls(overview(hub))


def test_more_pages_than_there_is_room_for_are_turned_away() -> None:
    channels = Channels(Hub(None))
    channels.pages = MOST_PAGES
    with pytest.raises(TooManyPages):
        channels.check_room("overview")
    assert channels.turned_away == 1
    with pytest.raises(KeyError):
        channels.check_room("nothing")


def test_nobody_looks_nobody_is_asked() -> None:
    world = World({"lab": 3})
    asked: list[str] = []
    look_at = world.facts

    def facts(name: str, question: str) -> dict[str, Any] | None:
        asked.append(question)
        return look_at(name, question)

    world.facts = facts  # type: ignore[method-assign]

    async def main() -> None:
        hub = Hub(None, [WorldSource(world, name) for name in world.members])
        channels = Channels(hub)
        async with trio.open_nursery() as nursery:
            await nursery.start(hub.run)
            await trio.testing.wait_all_tasks_blocked()
            assert len(hub.nodes) == 3
            assert not asked
            stream = channels.stream("overview")
            model: dict[str, Any] = {}
            with trio.fail_after(30):
                while len(model.get("overlays", {}).get(OVERLAY, {}).get("zones", ())) != 1:
                    model = events([await anext(stream)], model)
            await stream.aclose()
            assert set(asked) == {"members", "topology", "zones", "glance"}
            assert asked.count("members") < asked.count("glance"), "one tells of the zone"
            await trio.sleep(0.5)
            asked.clear()
            await trio.sleep(2.5)
            assert not asked
            nursery.cancel_scope.cancel()

    trio.run(main)


def test_what_two_tell_of_their_zone_is_logged_once_and_links_are_each_ones_own() -> None:
    world = World({"lab": 3})
    hub = hub_of(world)
    first, second, _ = hub.nodes.values()
    failed = {"event": "member-failed", "member": "x", "restarted": False, "at": 1.0}
    hub._note(first, failed)
    hub._note(second, failed)
    hub._note(first, failed)  # it came back, and failed again
    link = {"event": "link-up", "peer": "y", "at": 2.0}
    hub._note(first, link)
    hub._note(second, link)
    assert [facts["says"] for _, facts in hub.log] == ["x failed"] * 2 + ["link to y up"] * 2


def test_two_of_a_zone_are_heard_and_one_is_the_witness() -> None:
    world = World({"lab": 4, "edge": 1})
    hub = hub_of(world)
    hub._choose_witnesses()
    there = list(hub.nodes.values())
    assert [node.is_witness for node in there] == [True, False, False, False, True]
    assert [node.is_heard for node in there] == [True, True, False, False, True]
    hub._leave(there[0])
    assert [node.is_witness for node in hub.nodes.values()] == [True, False, False, True]
    assert [node.is_heard for node in hub.nodes.values()] == [True, True, False, True]
