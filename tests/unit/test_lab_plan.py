"""Plans, agreement and checks of a lab: pure, so every answer is exact."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.lab.agent_archive import agent
from nodes.lab.agreement import disagreements
from nodes.lab.checks import clock_offset, deaf_hosts, problems
from nodes.lab.failures import ssh_failure
from nodes.lab.inventory_sections import CheckSettings
from nodes.lab.plan import fingerprint, peers_of, plan, requirement, seeds, toml_value, words
from nodes.lab.wheels import Target
from nodes.peer_options import parse
from nodes.settings import node_config
from tests.unit.test_lab_inventory import HOST, OTHER, read

ADDRESSES = {"h1": "10.0.0.1", "h2": "10.0.0.2"}


def test_names_zones_and_ports_follow_each_other() -> None:
    told = read(HOST + 'zone = ["a", "b"]\npeers = 3\nroles = ["supervisor"]\n')
    found = [(p.name, p.zone, p.port, p.role, p.is_member) for p in peers_of(told.hosts[0])]
    assert found == [
        ("h1-1", "a", 7400, "peer", True),
        ("h1-2", "b", 7401, "peer", True),
        ("h1-3", "a", 7402, "peer", True),
        ("h1-supervisor", "b", 7403, "supervisor", False),
    ]


def test_seeds_are_others_of_each_zone() -> None:
    peers = plan(read(HOST + 'zone = ["a", "b"]\n' + OTHER + 'zone = ["a", "b"]\n'))
    assert seeds(peers["h1-1"], peers, ADDRESSES) == [
        "10.0.0.2:7400",
        "10.0.0.1:7401",
        "10.0.0.2:7401",
    ]
    assert seeds(peers["h1-1"], peers, {}) == []


def test_words_are_what_a_peer_reads() -> None:
    told = read("[settings.net]\nheartbeat = 4\n" + HOST)
    peer = plan(told)["h1-1"]
    line = words(told, peer, ["10.0.0.2:7400"])
    options = parse(line[1:])
    assert options is not None
    assert (options.name, options.zone, options.bind) == ("h1-1", "default", ("0.0.0.0:7400",))
    assert (options.keys, options.seed) == ("{folder}/keys", ("10.0.0.2:7400",))
    assert node_config("x", insecure=True, sets=options.set).settings["net"].heartbeat == 4  # type: ignore[attr-defined]
    plain = fingerprint(words(told, peer), "c")
    assert plain == fingerprint(line, "c")  # seeds are for the next start only
    assert plain != fingerprint(line, "another certificate")
    assert plain != fingerprint(words(read(HOST), peer), "c")


def test_extras_follow_from_what_is_wanted() -> None:
    assert requirement(read(HOST)) == "zmq-overlay"
    assert requirement(read('[lab]\ntraces = "all"\n' + HOST)) == "zmq-overlay[traces]"
    assert requirement(read('[lab]\nextras = ["web"]\n' + HOST)) == "zmq-overlay[web]"
    assert requirement(read(HOST + 'roles = ["collector"]\n')) == "zmq-overlay[traces]"


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1"), (0.5, "0.5"), (True, "true"), ("a b", '"a b"'), (["x", 2], '["x", 2]')],
)
def test_values_are_written_as_toml(value: Any, text: str) -> None:
    assert toml_value(value) == text


# -- agreement ------------------------------------------------------------------------------------


def lab_of_two() -> dict[str, Any]:
    return plan(read(HOST + 'zone = "a"\n' + OTHER + 'zone = "b"\n'))


def view(zone: str, members: list[str], **more: Any) -> dict[str, Any]:
    told = {"pid": 7, "ended": "", "zone": zone, "members": members, "zones": {"a": 2, "b": 2}}
    return told | more


def good_views() -> dict[str, dict[str, Any]]:
    return {
        name: view(zone, [f"{host}-1", f"{host}-2"])
        for host, zone in (("h1", "a"), ("h2", "b"))
        for name in (f"{host}-1", f"{host}-2")
    }


def test_all_agree() -> None:
    assert disagreements(lab_of_two(), good_views()) == {}


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("h1-1", {"pid": 0, "ended": "ended with 1"}, "does not run (ended with 1)"),
        ("h1-1", {"silent": "no socket"}, "tells nothing yet (no socket)"),
        ("h1-1", {"members": ["h1-1"]}, "sees 1 of 2 members of a, not h1-2"),
        ("h1-1", {"zones": {"a": 2}}, "does not know zone b"),
        ("h1-1", {"zones": {"a": 2, "b": 3}}, "counts 3 members in zone b, not 2"),
    ],
)
def test_who_does_not_agree_is_named(name: str, change: dict[str, Any], problem: str) -> None:
    views = good_views()
    views[name] |= change
    assert disagreements(lab_of_two(), views)[name] == problem


def test_guests_are_welcome_where_all_see_them() -> None:
    views = good_views()
    for name in ("h1-1", "h1-2"):
        views[name]["members"] = ["guest", "h1-1", "h1-2"]
    for told in views.values():
        told["zones"] = {"a": 3, "b": 2}
    assert disagreements(lab_of_two(), views) == {}
    assert disagreements(lab_of_two(), views, gone=["guest"]).keys() == {"h1-1", "h1-2"}
    views["h1-2"]["members"] = ["h1-1", "h1-2"]
    assert disagreements(lab_of_two(), views, zones=["a"])
    assert disagreements(lab_of_two(), views, zones=["b"]) == {}


def test_a_host_that_does_not_answer() -> None:
    views = good_views()
    del views["h2-1"]
    assert disagreements(lab_of_two(), views)["h2-1"] == "its host does not answer"


# -- checks ---------------------------------------------------------------------------------------

FACTS: dict[str, Any] = {"venv": True, "time": 1000.0, "free": 10**9, "taken": {}}


def test_a_good_host_has_no_problems() -> None:
    assert list(problems(FACTS, (999.9, 1000.1), CheckSettings())) == []


def test_the_clock_is_judged_within_half_a_round_trip() -> None:
    offset, error = clock_offset(1000.0, 990.0, 1000.0)
    assert (offset, error) == (5.0, 5.0)
    assert list(problems(FACTS, (990.0, 1000.0), CheckSettings())) == []
    (problem,) = problems(FACTS, (989.9, 990.1), CheckSettings())
    assert problem.reason == "its clock is 10 s ahead of this machine's"
    (problem,) = problems(FACTS, (9999.9, 10000.1), CheckSettings())
    assert problem.reason == "its clock is 2.5 h behind this machine's"


def test_disk_ports_and_venv() -> None:
    bad = FACTS | {"venv": False, "free": 10**6, "taken": {"h1-1": "nginx (pid 7)"}}
    reasons = [problem.reason for problem in problems(bad, (1000.0, 1000.0), CheckSettings())]
    assert reasons == [
        "its Python has no venv",
        "its disk has 1 MB free, 300 are wanted",
        "the port of h1-1 is taken by nginx (pid 7)",
    ]


@pytest.mark.parametrize(
    ("heard", "reasons"),
    [
        ({"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]}, {}),
        ({"a": ["b"], "b": ["a"], "c": []}, {"c": "no multicast between it and 2 others"}),
        ({"a": ["b"], "b": ["a"], "c": ["a"]}, {"c": "its multicast does not reach 2 others"}),
        (
            {"a": ["b", "c"], "b": ["a"], "c": []},
            {"c": "multicast of 2 others does not reach it"},
        ),
        ({"a": [], "b": []}, {"b": "no multicast between it and a"}),
        ({}, {}),
    ],
)
def test_who_is_deaf(heard: dict[str, list[str]], reasons: dict[str, str]) -> None:
    found = deaf_hosts(heard, "239.0.0.1:1")
    assert {name: failure.reason for name, failure in found.items()} == reasons


@pytest.mark.parametrize(
    ("said", "reason", "fix"),
    [
        (
            "me@h: Permission denied (publickey).",
            "ssh refuses our keys",
            "ssh-copy-id -p 2200 me@h",
        ),
        ("connect to host h port 2200: Connection refused", "nobody listens at ssh port", "sshd"),
        ("ssh: Could not resolve hostname h: …", "h is no known name", "address ="),
        ("connect to host h port 22: Connection timed out", "no answer from h", "is it on"),
        ("Host key verification failed.", "its ssh key is not known", "accept the key"),
        ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @", "not the one", "ssh-keygen -R"),
        ("something new", "ssh fails: something new", "try `ssh -p 2200 me@h`"),
    ],
)
def test_what_ssh_says_becomes_a_reason_and_a_fix(said: str, reason: str, fix: str) -> None:
    failure = ssh_failure(said, at="me@h", address="h", port=2200)
    assert reason in failure.reason
    assert fix in failure.fix
    assert "\n" not in str(failure)


def test_other_pythons_and_platforms_get_their_own_wheels() -> None:
    told = {
        "python": "3.12.3",
        "implementation": "cpython",
        "platform": "linux-aarch64",
        "libc": ["glibc", "2.31"],
    }
    target = Target.of(told)
    assert (target.version, target.implementation) == ("3.12", "cp")
    assert target.platforms[0] == "manylinux_2_31_aarch64"
    assert "manylinux2014_aarch64" in target.platforms
    alpine = Target.of(told | {"libc": ["", ""]})
    assert alpine.platforms[0] == "musllinux_1_2_aarch64"


def test_the_agent_is_the_same_bytes_for_the_same_sources() -> None:
    name, data = agent()
    agent.cache_clear()
    assert agent() == (name, data)
    assert len(data) < 64 * 1024  # sent to every host before anything is known of it
