"""The hash table in a lab: servers are killed and frozen under load, and history is judged."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import msgspec
import pytest

from nodes.spawning import peer_environment
from overlay.sim.linearizable import Operation, violations
from tests.netns.host import Host
from tests.netns.lab import Lab
from tests.netns.peers import HASTY, PORT, LabPeer, address_of, await_views, start_peers
from tests.netns.process import HostProcess
from tests.netns.waiting import until

SETS = (*HASTY, "dht.shard_bits=5", "dht.found_after=0.5", "dht.settle=0.5", "dht.founders=5")
SERVE = (*SETS, "dht.serve=true")
SECONDS = 14
FROZEN = 3.0  # s
KEYS, TASKS = 12, 4


def start_client(host: Host, seed: Host) -> HostProcess:
    words = ["--name", host.name, "--insecure", "--bind", f"0.0.0.0:{PORT}"]
    words += ["--seed", address_of(seed)]
    words += [word for one in SETS for word in ("--set", one)]
    program = [sys.executable, "-m", "tests.net.table_client", str(SECONDS), str(KEYS), str(TASKS)]
    return host.start([*program, "--", *words], environment=peer_environment(PYTHONUNBUFFERED="1"))


def history(clients: Sequence[HostProcess]) -> list[Operation]:
    """Everything that they did."""
    told: list[Operation] = []
    for client in clients:
        client.line('"finished"', within=60)
        assert client.lines_dropped == 0
        lines = [line for line in client.lines if line.startswith('{"kind"')]
        told += [_operation(line) for line in lines]
    return told


def _operation(line: str) -> Operation:
    """JSON has no infinity: an outcome that is unknown was null."""
    facts = msgspec.json.decode(line)
    facts["key"] = msgspec.convert(facts["key"], bytes)
    facts["returned"] = float("inf") if facts["returned"] is None else facts["returned"]
    return Operation(**facts)


@pytest.mark.slow
def test_servers_that_are_killed_and_frozen_under_load_break_no_key(lab: Lab) -> None:
    *hosts, first, second = lab.hosts("a", "b", "c", "d", "e", "f", "g")
    servers: list[LabPeer] = start_peers(hosts, seeds=hosts[:1], keys=None, sets=SERVE)
    await_views(servers, servers)
    clients = [start_client(host, hosts[0]) for host in (first, second)]
    for client in clients:
        client.line('"ready"')
    began = time.monotonic()
    servers[1].kill()
    until(lambda: servers[1].name not in servers[0].view(), what="its removal")
    servers[1].start()
    servers[2].process.pause()
    until(lambda: time.monotonic() - began > FROZEN + 1, what="a freeze")
    servers[2].process.resume()
    ended = time.monotonic()
    done = history(clients)
    assert [str(one) for one in violations(done)] == []
    during = [one for one in done if one.known and one.called < ended]
    after = [one for one in done if one.known and one.called > ended]
    assert len(during) > 50
    assert len(after) > 50
