"""Zones of real processes: found through one address, told by `overlay zones` and `members`."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.net.processes import RunningPeer, overlay, peer
from tests.netns.waiting import until

ZONES = {"ada": "east", "abe": "east", "bob": "west", "ben": "west"}
QUICK = ("--set", "zones.settle=0.5")


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("r")


def told(runtime: Path, *words: str) -> Any:
    done = overlay(runtime, *words, "--json")
    return json.loads(done.stdout) if done.returncode == 0 else {}


def zones_of(runtime: Path, node: str) -> dict[str, Any]:
    overlays = told(runtime, "zones", "--node", node).get("overlays") or [{"zones": []}]
    return {zone["name"]: zone for zone in overlays[0]["zones"]}


def is_complete(zones: dict[str, Any]) -> bool:
    return set(zones) == {"east", "west"} and all(
        zone["size"] == 2 and len(zone["delegates"]) == 2 and zone["supervisors"] == ["sue"]
        for zone in zones.values()
    )


@pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])
def test_zones_form_around_one_address(runtime: Path, secure: bool) -> None:
    if secure:
        assert overlay(runtime, "keys", "init").returncode == 0
        for name, zone in ZONES.items():
            assert overlay(runtime, "keys", "issue", name, "--zone", zone).returncode == 0
        issued = overlay(runtime, "keys", "issue", "sue", "--zone", "east", "--role", "supervisor")
        assert issued.returncode == 0, issued.stderr
    trust = () if secure else ("--insecure",)
    with ExitStack() as stack:

        def start(name: str, *words: str) -> RunningPeer:
            return stack.enter_context(peer(runtime, "--name", name, *trust, *QUICK, *words))

        first = start("ada", "--zone", "east")
        for name, zone in ZONES.items():
            if name != "ada":
                start(name, "--zone", zone, "--seed", first.address)
        start("sue", "--supervisor", "--seed", first.address)
        until(lambda: is_complete(zones_of(runtime, "sue")), what="all zones, at the supervisor")
        until(lambda: is_complete(zones_of(runtime, "ben")), what="all zones, at a delegate")
        answer = told(runtime, "members", "--zone", "west", "--node", "ada")
        assert sorted(one["name"] for one in answer["members"]) == ["ben", "bob"]
        assert all(one["endpoints"] for one in answer["members"])
        nowhere = overlay(runtime, "members", "--zone", "nowhere", "--node", "ada")
        assert nowhere.returncode == 1
        assert nowhere.stderr.count("\n") == 1
        assert "nowhere" in nowhere.stderr
        people = overlay(runtime, "zones")
        assert "east" in people.stdout
        assert "sue" in people.stdout
        none = overlay(runtime, "members", "--node", "sue")
        assert none.returncode == 1
        assert "Traceback" not in none.stderr
