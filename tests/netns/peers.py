"""Peers on the hosts of a lab: one `overlay peer` each, and waiting for what their views show."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from nodes.control import ControlError, ask, sockets_of
from nodes.peer_options import PeerOptions
from nodes.spawning import peer_command, peer_environment
from tests.netns.host import Host
from tests.netns.waiting import WITHIN, until

PORT = 7400  # every lab has its own ports, and a restarted peer is where its earlier life was
LOOK_EVERY = 0.2  # s between two rounds of questions: asking must not be what keeps peers busy

# A failure is found in about three seconds and the dead are tried twice a second, so that a test
# of removal and return is short. Tests that an unkind network removes nobody take the defaults.
HASTY = (
    "membership.probe_period=0.5",
    "membership.suspicion_min=1.5",
    "membership.suspicion_max=5.0",
    "membership.knock_period=0.5",
    "net.heartbeat=0.5",
    "net.retry_longest=1.0",
    "net.connect_within=2.0",
)


class LabPeer:
    """One peer, named after its host; `start` runs it, and again after it was killed."""

    def __init__(
        self,
        host: Host,
        seeds: Iterable[Host],
        keys: Path | None,
        sets: Sequence[str],
        zone: str = "",
        *,
        bind: str = f"0.0.0.0:{PORT}",
        state: Path | None = None,
    ) -> None:
        self.host = host
        self.name = host.name
        self._options = PeerOptions(
            name=host.name,
            zone=zone,
            seed=tuple(address_of(seed) for seed in seeds if seed is not host),
            bind=(bind,),
            state=str(state or ""),
            keys=str(keys or ""),
            insecure=keys is None,
            set=tuple(sets),
            events=True,
            json=True,
        )
        self.start()

    def __repr__(self) -> str:
        return f"<{self.name}: {self.process}>"

    def start(self) -> None:
        """Run the process; its events so far are those of this life alone."""
        self.process = self.host.start(
            self._command(), environment=peer_environment(PYTHONUNBUFFERED="1")
        )

    def _command(self) -> list[str]:
        return peer_command(self._options)

    def kill(self) -> None:
        """SIGKILL: the kernel closes its connections, and it says goodbye to nobody."""
        self.process.kill()

    def ask(self, do: str, **arguments: object) -> dict[str, Any]:
        """Ask its control socket, as the `overlay` command does; ControlError while it starts."""
        found = sockets_of(self.host.folder / "zmq-overlay", self.name)
        if not found:
            raise ControlError(f"{self.name} does not listen yet")
        answer: dict[str, Any] = ask(found[0], do, timeout=WITHIN, **arguments)
        return answer

    def view(self) -> dict[str, dict[str, Any]]:
        """Who is in its zone, by name, and what it knows of them; nobody while it starts."""
        try:
            return {member["name"]: member for member in self.ask("members")["members"]}
        except ControlError:
            assert self.process.is_running, self
            return {}

    def counts(self) -> dict[str, int]:
        """What its membership counted since its start."""
        zones = self.ask("status")["protocols"]
        counts: dict[str, int] = next(zones[key] for key in zones if key.startswith("membership"))
        return counts

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """What it has reported in this life, of these kinds."""
        assert self.process.lines_dropped == 0
        told = [json.loads(line) for line in self.process.lines if line.startswith('{"event"')]
        return [event for event in told if event["event"] in kinds]

    def removals(self) -> list[str]:
        """Who failed in its eyes, in order."""
        return [event["member"] for event in self.events("member-failed")]


def address_of(host: Host, network: str | None = None) -> str:
    """Where the peer of a host listens."""
    return f"{host.port(network).ipv4 if network else host.address}:{PORT}"


def start_peers(
    hosts: Sequence[Host],
    *,
    seeds: Iterable[Host],
    keys: Path | None,
    sets: Sequence[str] = (),
    zone: str = "",
) -> list[LabPeer]:
    """Start a peer on each host, all at once; without `keys` they run insecure."""
    known = list(seeds)
    return [LabPeer(host, known, keys, sets, zone) for host in hosts]


def names(peers: Iterable[LabPeer | Host]) -> set[str]:
    """What they are called."""
    return {peer.name for peer in peers}


def await_views(peers: Collection[LabPeer], members: Iterable[LabPeer]) -> None:
    """Wait until each of the peers has exactly these members in its view."""
    wanted = names(members)
    seen: dict[str, list[str]] = {}

    def all_agree() -> bool:
        seen.update({peer.name: sorted(peer.view()) for peer in peers})
        return all(set(view) == wanted for view in seen.values())

    try:
        until(all_agree, every=LOOK_EVERY, what="all views")
    except AssertionError as error:
        error.add_note(f"wanted {sorted(wanted)} in all views, and saw {seen} of {list(peers)}")
        raise


def await_probes(peers: Collection[LabPeer], count: int) -> None:
    """Let so many more probes of each peer pass: that much had time to go wrong."""
    before = {peer.name: peer.counts()["probes"] for peer in peers}

    def probed() -> bool:
        return all(peer.counts()["probes"] >= before[peer.name] + count for peer in peers)

    until(probed, every=LOOK_EVERY, what=f"{count} probes of each peer")


def lives(peers: Iterable[LabPeer]) -> dict[str, int]:
    """The pid of each process: unchanged, nobody restarted."""
    return {peer.name: peer.process.pid for peer in peers if peer.process.is_running}


def removals(peers: Iterable[LabPeer]) -> Counter[tuple[str, str]]:
    """How often which peer held which other one to be dead."""
    return Counter((peer.name, gone) for peer in peers for gone in peer.removals())
