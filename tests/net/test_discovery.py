"""Discovery on real sockets: brokers, BDNs and who looks for them, with and without keys."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from nodes.bdn import BdnNode
from nodes.broker import BrokerNode
from nodes.discovery import Broker, Finder, NoBroker, discover
from nodes.peer import Peer
from overlay.errors import SecurityError
from overlay.security.authority import Authority
from overlay.security.rights import Rights
from protocols.discovery import Requester
from tests.net.processes import OVERLAY, environment, overlay
from tests.net.zone import NO_DELEGATES, until

both_worlds = pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])


class Field:
    """Makes nodes of one overlay, with a multicast group of their own."""

    def __init__(self, folder: Path, *, secure: bool) -> None:
        self.folder = folder
        self._authority = Authority.create(folder, "testing") if secure else None
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            group = f"239.255.74.61:{probe.getsockname()[1]}"
        self._sets = [NO_DELEGATES, *(f"{who}.group={group}" for who in ("broker", "bdn"))]
        self._asks = [f"discovery.group={group}"]

    def options(self, name: str, roles: tuple[str, ...], sets: tuple[str, ...]) -> dict[str, Any]:
        if self._authority is not None and not (self.folder / name).exists():
            rights = Rights(zones=("*",), roles=roles, publish=("**",), subscribe=("**",))
            self._authority.issue(name, rights, 1).save(self.folder)
        return {
            "name": name,
            "overlay": "testing",
            "insecure": self._authority is None,
            "keys": self.folder if self._authority is not None else None,
            "profile": "local",
            "bind": ["127.0.0.1:0"],
            "control": False,
            "sets": [*self._sets, *self._asks, *sets],
        }

    def bdn(self, name: str = "bdn", *sets: str, seeds: tuple[Peer, ...] = ()) -> BdnNode:
        told = [seed.node.endpoints[0] for seed in seeds]
        return BdnNode.join(seeds=told, **self.options(name, ("bdn",), sets))

    def broker(
        self,
        name: str,
        *sets: str,
        bdns: tuple[Peer, ...] = (),
        links: tuple[Peer, ...] = (),
        roles: tuple[str, ...] = ("broker",),
    ) -> BrokerNode:
        return BrokerNode.join(
            bdns=[place(one) for one in bdns],
            links=[place(one) for one in links],
            **self.options(name, roles, sets),
        )

    def finder(self, *bdns: Peer, sets: tuple[str, ...] = (), **more: Any) -> Finder:
        options = self.options("client", (), sets)
        return Finder.open(*(place(one) for one in bdns), **options | more)


def place(peer: Peer) -> str:
    """HOST:PORT."""
    return peer.node.endpoints[0].removeprefix("tcp://")


@asynccontextmanager
async def network(field: Field, count: int = 3) -> AsyncIterator[tuple[BdnNode, list[BrokerNode]]]:
    """A BDN that knows the first of some brokers, which are linked in a line."""
    async with AsyncExitStack() as stack:
        bdn = await stack.enter_async_context(field.bdn())
        brokers: list[BrokerNode] = []
        for index in range(count):
            links = tuple(brokers[-1:])
            one = field.broker(f"b{index}", bdns=() if index else (bdn,), links=links)
            brokers.append(await stack.enter_async_context(one))
        await until(lambda: bdn.brokers and bdn.brokers[0][2] is not None)
        ends = brokers[1:-1]
        await until(lambda: all(len(one.broker.neighbours()) == 2 for one in ends))
        await until(lambda: brokers[-1].broker.neighbours())
        yield bdn, brokers


@both_worlds
def test_a_bdn_leads_to_all_brokers_of_the_network(tmp_path: Path, secure: bool) -> None:
    field = Field(tmp_path, secure=secure)

    async def main() -> None:
        async with network(field) as (bdn, brokers), field.finder(bdn) as finder:
            found = await finder.discover()
            assert {one.name for one in found.candidates} == {one.name for one in brokers}
            assert found.candidates[0].answered > 0, found
            assert found.sources == (f"bdn {place(bdn)}",)
            assert found.endpoints == tuple(
                next(one for one in brokers if one.name == found.name).node.endpoints
            )
            usage = found.candidates[0].usage
            assert usage.memory_total > usage.memory_used > 0
            again = await finder.discover()  # with the cookie of the first time
            assert again.attempts == 1
            assert bdn.bdn.counts.challenged == 1
            for node in (bdn, *brokers):
                assert node.node.status().driver.refusals == {}
            assert finder.node.status().driver.refusals == {}

    trio.run(main)


@both_worlds
def test_multicast_needs_no_bdn(tmp_path: Path, secure: bool) -> None:
    field = Field(tmp_path, secure=secure)

    async def main() -> None:
        async with network(field) as (_, brokers), field.finder() as finder:
            found = await finder.discover()
            assert {one.name for one in found.candidates} == {one.name for one in brokers}
            assert "multicast" in found.sources

    trio.run(main)


def test_the_last_target_set_is_enough_when_all_bdns_are_dead(tmp_path: Path) -> None:
    field = Field(tmp_path, secure=False)
    state = tmp_path / "state"
    alone = ("discovery.multicast=never",)

    async def main() -> Broker:
        async with field.broker("b0") as broker:
            async with field.bdn() as bdn:
                await until(lambda: bdn.brokers)  # it announced itself by multicast
                async with field.finder(bdn, state=state, sets=alone) as finder:
                    first = await finder.discover()
                dead = bdn
            assert first.name == broker.name
            async with field.finder(dead, state=state, sets=alone) as finder:
                assert finder.node.protocol(Requester).known == ("b0",)
                return await finder.discover()

    found = trio.run(main)
    assert found.name == "b0"
    assert "known b0" in found.sources


def test_nobody_there_is_a_clear_error_within_the_timeout(tmp_path: Path) -> None:
    field = Field(tmp_path, secure=False)

    async def main() -> None:
        began = trio.current_time()
        with pytest.raises(NoBroker, match=r"no broker answered within 0.5 s; asked .*multicast"):
            async with field.finder(timeout=0.5) as finder:
                await finder.discover()
        assert trio.current_time() - began < 10.0

    trio.run(main)


def test_a_bdn_learns_of_brokers_by_the_public_topic(tmp_path: Path) -> None:
    field = Field(tmp_path, secure=False)

    async def main() -> None:
        quiet = "bdn.announce=0"
        async with field.broker("b0", "broker.region=north") as broker:
            async with field.bdn("bdn", quiet, seeds=(broker,)) as bdn:
                await bdn.joined(count=2)
                broker.node.call(broker.broker._advertiser.changed)
                await until(lambda: bdn.brokers)
                assert bdn.brokers[0][0].region == "north"
                found = await discover(place(bdn), **field.options("client", (), ()))
                assert found.name == "b0"

    trio.run(main)


def test_a_private_bdn_serves_who_knows_its_credential(tmp_path: Path) -> None:
    field = Field(tmp_path, secure=False)
    secret, alone = "discovery.credential=sesame", "discovery.multicast=never"

    async def main() -> None:
        async with (
            field.bdn("bdn", 'bdn.credentials=["sesame"]') as bdn,
            field.broker("b0", "broker.credential=sesame", bdns=(bdn,)),
            field.broker("b1", bdns=(bdn,)),
        ):
            await until(lambda: bdn.bdn.counts.ignored and bdn.brokers)
            async with field.finder(bdn, sets=(secret, alone)) as finder:
                assert (await finder.discover()).name == "b0"
            async with field.finder(bdn, sets=(alone,), timeout=1.0) as finder:
                with pytest.raises(NoBroker, match="credentials"):
                    await finder.discover()

    trio.run(main)


def test_a_broker_that_takes_no_links_makes_room_for_the_next(tmp_path: Path) -> None:
    """It answers datagrams, but nobody listens at the address that it tells."""
    field = Field(tmp_path, secure=False)

    async def main() -> None:
        async with (
            field.broker("b0", 'net.advertise=["127.0.0.1:1"]') as closed,
            field.finder(sets=("discovery.ping_slack=1.0",)) as finder,  # all pings come back
        ):
            with pytest.raises(NoBroker, match="none of them takes a link") as none:
                await finder.discover()
            assert [one.name for one in none.value.candidates] == [closed.name]
            async with field.broker("b1") as taking:
                found = await finder.discover()
                assert found.name == "b1"
                assert {one.name for one in found.candidates} <= {"b0", "b1"}
                assert len({one.name for one in found.candidates}) == len(found.candidates)
                assert any(one.peer == "client" for one in taking.node.status().driver.sessions)

    trio.run(main)


def test_a_bdn_keeps_its_links_open(tmp_path: Path) -> None:
    """Links close after a second without use here, and it has not been used for three."""
    field = Field(tmp_path, secure=True)
    sets = ("net.idle_close=1", "bdn.hold_every=0.5")

    async def main() -> None:
        async with field.bdn("bdn", *sets) as bdn, field.broker("b0", sets[0], bdns=(bdn,)):
            await until(lambda: bdn.bdn.counts.held >= 2)
            (link,) = (one for one in bdn.node.driver.links if one.name == "b0")
            await until(lambda: link.session is not None)
            opened = link.session
            await until(lambda: bdn.bdn.counts.held >= 8)
            assert link.session is opened

    trio.run(main)


def test_endpoints_that_are_none_stop_nobody(tmp_path: Path) -> None:
    field = Field(tmp_path, secure=False)

    async def main() -> None:
        async with (
            field.bdn() as bdn,
            field.broker("b0", bdns=(bdn,)) as b0,
            field.finder(bdn) as finder,
        ):
            await until(lambda: len(bdn.brokers) == 1)
            nonsense: list[tuple[str, ...]] = [(), ("what?", "ipc:///tmp/theirs", "tcp://[:1")]
            for told in nonsense:
                b0.broker._here = partial(tuple, told)
                with pytest.raises(NoBroker, match="none of them takes a link"):
                    await finder.discover()

    trio.run(main)


def test_a_peer_that_finds_nobody_asks_bdns(tmp_path: Path) -> None:
    field = Field(tmp_path, secure=True)

    async def main() -> None:
        async with network(field) as (bdn, brokers):
            named = f'discovery.bdns=["no-such-host.invalid:7400", "{place(bdn)}"]'
            # Its beacons reach nobody: those of the others are turned off.
            sets = ("beacon.enabled=true", "beacon.port=17499", "beacon.mdns=never", named)
            async with Peer.join(**field.options("ada", (), sets)) as ada:
                await until(lambda: {*ada.members} >= {one.name for one in brokers})
                found = await ada.discover()
                assert found.candidates[0].delay_error < 0.1

    trio.run(main)


def test_roles_are_certified(tmp_path: Path) -> None:
    field = Field(tmp_path, secure=True)
    other = Field(tmp_path / "other", secure=True)

    async def main() -> None:
        with pytest.raises(SecurityError, match=r"may not be a broker: run .*--role broker"):
            async with field.broker("plain", roles=()):
                pass
        async with field.bdn() as bdn, field.broker("b0", bdns=(bdn,)):
            await until(lambda: bdn.brokers)
            forged = other.broker("b1", bdns=(bdn,))
            async with forged:  # of another authority with the same overlay name
                await until(lambda: bdn.node.status().driver.refusals)
            assert [told.name for told, _, _ in bdn.brokers] == ["b0"]
            async with field.finder(bdn) as finder:
                assert len((await finder.discover()).candidates) == 1
            stranger = other.finder(bdn, sets=("discovery.multicast=never",), timeout=0.5)
            async with stranger:
                with pytest.raises(NoBroker, match="no broker answered within"):
                    await stranger.discover()
            assert bdn.node.status().driver.refusals["certificate-untrusted"] >= 2

    trio.run(main)


def test_watching_moves_away_from_a_broker_that_stops(tmp_path: Path) -> None:
    field = Field(tmp_path, secure=False)
    often = ("discovery.every=0.2", "discovery.timeout=1.0")

    async def main() -> None:
        async with AsyncExitStack() as stack:
            bdn = await stack.enter_async_context(field.bdn())
            brokers = {name: field.broker(name, bdns=(bdn,)) for name in ("b0", "b1")}
            for one in brokers.values():
                await stack.enter_async_context(one)
            await until(lambda: len(bdn.brokers) == 2)
            finder = await stack.enter_async_context(field.finder(bdn, sets=often))
            moves = finder.watch()
            first = await anext(moves)
            assert first.old == ""
            brokers[first.new.name].stop()
            second = await anext(moves)
            assert (second.old, second.new.name != first.new.name) == (first.new.name, True)
            await moves.aclose()  # type: ignore[attr-defined]

    trio.run(main)


def test_commands(tmp_path_factory: pytest.TempPathFactory) -> None:
    runtime = tmp_path_factory.mktemp("r")
    common = ("--insecure", "--profile", "local", "--bind", "127.0.0.1:0", "--json")

    def start(*words: str) -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            [*OVERLAY, *words, *common], env=environment(runtime), stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        return process, json.loads(process.stdout.readline())["address"].removeprefix("tcp://")

    running = []
    try:
        process, bdn = start("bdn", "--name", "bdn")
        running.append(process)
        for name in ("b0", "b1"):
            process, _ = start("broker", "--name", name, "--bdn", bdn)
            running.append(process)
        for _ in range(100):
            listed = json.loads(overlay(runtime, "brokers", "--node", "bdn", "--json").stdout)
            if len(listed["bdns"][0]["brokers"]) == 2:
                break
        none = overlay(runtime, "brokers", "--node", "b0")
        assert none.stderr == "overlay: 'b0' is no BDN: start one with `overlay bdn`\n"
        asking = ("discover", "--insecure", "--bdn", bdn)
        told = overlay(runtime, *asking, "--explain")
        assert told.returncode == 0, told.stderr
        assert "is the nearest of 2" in told.stdout
        assert "load weight" in told.stdout
        found = json.loads(overlay(runtime, *asking, "--json").stdout)
        assert found["broker"] in ("b0", "b1")
        assert len(found["candidates"]) == 2
        nobody = overlay(runtime, "discover", "--insecure", "--bdn", "127.0.0.1:1", "--timeout",
                         "0.3", "--set", "discovery.multicast=never")  # fmt: skip
        assert nobody.returncode == 1
        told_why = "overlay: no broker answered within 0.3 s; asked bdn 127.0.0.1:1\n"
        assert nobody.stderr == told_why
        wrong = overlay(runtime, "discover", "--insecure", "--bdn", "nowhere")
        assert (wrong.returncode, wrong.stderr) == (1, "overlay: 'nowhere': give HOST:PORT\n")
    finally:
        for process in running:
            process.terminate()
        codes = [process.wait(30) for process in running]
        for process in running:
            process.communicate()
    assert codes == [0, 0, 0]
