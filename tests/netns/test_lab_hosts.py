"""A host dies, one more comes, the dead one is taken out: the others agree each time."""

from __future__ import annotations

import json

import pytest

from tests.netns.lab_fixture import Hosts


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_hosts_die_come_and_go(ssh_hosts: Hosts) -> None:
    there = ssh_hosts("h1", "h2", "h3")
    there.add("h4")
    there.write(peers=1, hosts=["h1", "h2", "h3"])
    there.lab_json("up")

    there.kill("h3")
    told = there.lab_json("up", code=1)
    assert told["failures"].keys() == {"h3"}
    assert "h3-1" not in told["peers"]
    assert told["started"] == told["restarted"] == []

    done = there.overlay("lab", "add-host", "h4", there.hosts["h4"].address, "--json", code=1)
    told = json.loads(done.stdout)
    assert told["started"] == ["h4-1"]
    assert told["failures"].keys() == {"h3"}
    assert {"h1-1", "h2-1", "h4-1"} <= set(told["peers"]["h4-1"]["members"])

    told = there.lab_json("remove-host", "h3")
    assert told["warnings"].keys() == {"h3"}
    assert "its keys are revoked all the same" in told["warnings"]["h3"]
    assert 'name = "h3"' not in there.inventory.read_text()
    for view in told["peers"].values():
        assert view["members"] == ["h1-1", "h2-1", "h4-1"]
    assert there.lab_json("status")["failures"] == {}

    listed = there.overlay(
        "keys", "list", "--folder", str(there.desk.folder / "config/labs/test/keys"), "--json"
    )
    states = {one["name"]: one["state"] for one in json.loads(listed.stdout)["issued"]}
    assert states == {"h1-1": "valid", "h2-1": "valid", "h3-1": "revoked", "h4-1": "valid"}
