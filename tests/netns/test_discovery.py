"""Brokers on hosts of their own, with delays on the wires: the commands find the nearest one."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nodes.spawning import peer_environment
from overlay.security.authority import Authority
from overlay.security.rights import Rights
from tests.netns.commands import block
from tests.netns.host import Host
from tests.netns.lab import Lab
from tests.netns.peers import PORT, LabPeer, address_of
from tests.netns.process import HostProcess
from tests.netns.waiting import until

OVERLAY = [sys.executable, "-m", "nodes.cli"]
DELAYS = {"b0": 30.0, "b1": 6.0, "b2": 45.0, "b3": 10.0, "b4": 60.0}  # ms, of what they send
NEAREST = "b1"
BUSY = 0.05  # s that a starved process may hold a datagram before it reads it
SLACK = 0.05 + BUSY  # s; the bar is 50 ms


class Brokers:
    """Five brokers, a BDN and a client, each on a host; with keys unless told otherwise."""

    def __init__(self, lab: Lab, keys: Path | None) -> None:
        self.lab = lab
        self.bdn, self.client = lab.hosts("bdn", "client")
        self.hosts = dict(zip(DELAYS, lab.hosts(*DELAYS), strict=True))
        self.processes: dict[str, HostProcess] = {}
        self._security = ["--insecure"] if keys is None else ["--keys", str(keys)]

    def start(self, links: str) -> None:
        """Run them all: linked in a "line", in a "star", or to nobody."""
        self._run(self.bdn, "bdn")
        names = list(self.hosts)
        for index, host in enumerate(self.hosts.values()):
            words = ["broker", "--bdn", address_of(self.bdn)]
            if links and index:
                hub = names[0] if links == "star" else names[index - 1]
                words += ["--link", address_of(self.hosts[hub])]
            self._run(host, *words)
        for name, milliseconds in DELAYS.items():
            self.lab.delay(milliseconds, hosts=[self.hosts[name]])
        until(self._all_listed, what="five brokers, their links and their distances")

    def _run(self, host: Host, *words: str) -> None:
        common = ["--name", host.name, "--bind", f"0.0.0.0:{PORT}", *self._security]
        self.processes[host.name] = host.start(
            [*OVERLAY, *words, *common], environment=peer_environment(PYTHONUNBUFFERED="1")
        )

    def _all_listed(self) -> bool:
        done = self._ask(self.bdn, "brokers", "--node", "bdn", "--json", check=False)
        if not done:
            return False
        listed = done["bdns"][0]["brokers"]
        return len(listed) == len(DELAYS) and all(one["round_trip"] for one in listed)

    def discover(self, *words: str, check: bool = True) -> dict[str, Any]:
        """What the command told."""
        name = ["--name", "client", "--bind", f"0.0.0.0:{PORT}", *self._security]
        return self._ask(self.client, "discover", *words, *name, "--json", check=check)

    def by_bdn(self, *words: str) -> dict[str, Any]:
        """The same by way of the BDN."""
        return self.discover("--bdn", address_of(self.bdn), *words)

    def limited(self, protocol: str, host: Host) -> int:
        """Datagrams that a node refused to serve, for there were too many of one host."""
        told = self._ask(host, "status", host.name, "--json", check=False)
        return int(told["nodes"][0]["protocols"][protocol]["rate_limited"]) if told else 0

    def _ask(self, host: Host, *words: str, check: bool) -> dict[str, Any]:
        done = host.run([*OVERLAY, *words], check=check, environment=peer_environment())
        answer: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
        return answer


@pytest.fixture(scope="module")
def broker_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates with the roles that each needs."""
    folder = tmp_path_factory.mktemp("broker-keys")
    authority = Authority.create(folder, "overlay")
    roles: dict[str, Sequence[str]] = {"bdn": ("bdn",), "client": ()}
    for name in (*roles, *DELAYS):
        rights = Rights(
            zones=("default",),
            roles=tuple(roles.get(name, ("broker",))),
            publish=("**",),
            subscribe=("**",),
        )
        authority.issue(name, rights).save(folder)
    return folder


def check(found: dict[str, Any], nearest: str = NEAREST) -> None:
    """The right choice, told with what was measured, in the time that it may take."""
    assert found["broker"] == nearest, found
    assert {one["broker"] for one in found["candidates"]} == {*DELAYS}
    trips = {one["broker"]: one["ping_least"] for one in found["candidates"]}
    for name, trip in trips.items():
        assert trip is None or trip >= DELAYS[name] / 1000, (name, trip)
    assert found["seconds"]["total"] < 4.0


def check_time(found: dict[str, Any]) -> None:
    """No longer than the last response and two round trips; and what was estimated, honestly."""
    seconds = found["seconds"]
    slowest = max(one["ping_least"] or 0.0 for one in found["candidates"])
    assert seconds["total"] <= seconds["last_response"] + 2 * slowest + SLACK, seconds
    for one in found["candidates"]:
        if one["plausible"] and one["ping_least"]:
            # Only what brokers send is held up: what they answer takes the whole of the delay.
            off = abs(one["estimated_delay"] - DELAYS[one["broker"]] / 1000)
            assert off <= one["delay_error"] + BUSY, one


@pytest.mark.parametrize("links", ["", "star", "line"])
def test_the_nearest_of_five_is_chosen(lab: Lab, broker_keys: Path, links: str) -> None:
    brokers = Brokers(lab, broker_keys)
    brokers.start(links)
    brokers.by_bdn()  # the first answers wait for ARP, which is held up as they are
    found = brokers.by_bdn()
    check(found)
    check_time(found)
    who = ("--name", "client", "--keys", str(broker_keys), "--bind", f"0.0.0.0:{PORT}")
    told = brokers.client.run(
        [*OVERLAY, "discover", "--explain", "--bdn", address_of(brokers.bdn), *who],
        environment=peer_environment(COLUMNS="200"),
    )
    assert f"{NEAREST} is the nearest of 5" in told.stdout


def test_dead_bdns_loss_and_a_dead_broker(lab: Lab) -> None:
    brokers = Brokers(lab, None)
    brokers.start("star")
    state = ("--state", str(brokers.client.folder / "state"))
    check(brokers.by_bdn(*state))
    lab.loss(50, hosts=[brokers.client, brokers.bdn])  # requests, acknowledgements and pings
    found = brokers.by_bdn()
    measured = [one for one in found["candidates"] if one["answered"]]
    assert found["broker"] == min(measured, key=lambda one: DELAYS[one["broker"]])["broker"]
    lab.heal()
    brokers.processes["bdn"].kill()
    check(brokers.by_bdn())  # by multicast
    never = ("--set", "discovery.multicast=never")
    check(brokers.by_bdn(*never, *state))  # by those found last
    brokers.processes[NEAREST].kill()
    found = brokers.by_bdn()
    assert found["broker"] == "b3", found
    for process in brokers.processes.values():
        process.kill()
    assert brokers.discover("--timeout", "1", check=False) == {}


def test_a_false_timestamp_and_a_false_load_gain_nothing(lab: Lab) -> None:
    """One far broker claims to be near and idle, and one to have answered an hour ago."""
    brokers = Brokers(lab, None)
    brokers.start("")
    program = [sys.executable, "-m", "tests.netns.false_broker"]
    for name, lie in (("near", "0.05"), ("old", "-3600")):
        (host,) = lab.hosts(name)
        process = host.start(
            [*program, name, address_of(brokers.bdn), lie], environment=peer_environment()
        )
        process.line("ready")
        lab.delay(60.0, hosts=[host])

    def candidates() -> dict[str, dict[str, Any]]:
        return {one["broker"]: one for one in brokers.by_bdn()["candidates"]}

    until(lambda: len(candidates()) == len(DELAYS) + 2, what="answers of all, the false ones too")
    found = brokers.by_bdn()
    assert found["broker"] == NEAREST, found
    old = next(one for one in found["candidates"] if one["broker"] == "old")
    assert not old["plausible"]


def test_a_flood_from_one_host_stops_nobody_else(lab: Lab) -> None:
    brokers = Brokers(lab, None)
    brokers.start("star")
    (host,) = lab.hosts("flooder")
    targets = [address_of(brokers.bdn), address_of(brokers.hosts[NEAREST])]
    flooding = host.start(
        [sys.executable, "-m", "tests.netns.flooder", *targets], environment=peer_environment()
    )
    flooding.line("ready")
    until(lambda: brokers.limited("bdn", brokers.bdn) > 500, what="a flood at the BDN")
    found = brokers.by_bdn()
    assert found["broker"] == NEAREST, found
    limited = brokers.limited("broker", brokers.hosts[NEAREST])
    flooding.kill()
    assert limited > 500


def test_a_peer_finds_others_by_a_bdn_where_multicast_is_blocked(
    lab: Lab, broker_keys: Path
) -> None:
    brokers = Brokers(lab, broker_keys)
    brokers.start("star")
    block(brokers.client.namespace, "224.0.0.0/4")
    named = f'discovery.bdns=["{address_of(brokers.bdn)}"]'
    sets = ("beacon.enabled=true", "beacon.mdns=never", named)
    peer = LabPeer(brokers.client, (), broker_keys, sets)
    until(lambda: {*peer.view()} >= {"client", *DELAYS}, what="all brokers")
