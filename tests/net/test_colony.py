"""A colony over real sockets: Figure 1, trust, and the link that needs no broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from nodes.colony import ColonyError, parsed
from nodes.peer import Peer
from overlay.errors import LocalProtocolError
from protocols.colony import Colony
from protocols.echo import Echo, EchoAnswered
from tests.net.test_discovery import Field, place
from tests.net.zone import DEADLINE, FEDERATE, Zone, until

TREE = ("colony.placement=tree", "zones.settle=600")
QUICK = ("colony.beat=0.2", "colony.lease=1.5", "colony.probe=0.5", "colony.home_every=1")
S1 = 'type = "CPU", time < 10'
S2 = 'type = "disk", size < 100'
S3 = 'type = "printer"'
S4 = 'type = "CPU", time > 5'
S5 = 'type = "disk", size > 10'


@asynccontextmanager
async def figure_1(zone: Zone) -> AsyncIterator[dict[str, Peer]]:
    """Three brokers and four computers; each in a zone of its own, so that only the tree links."""
    peers: dict[str, Peer] = {}
    async with AsyncExitStack() as stack:
        for name, leader in (
            *(("P1", ""), ("P2", "P1"), ("P3", "P1")),
            *(("C1", "P2"), ("C2", "P2"), ("C3", "P3"), ("C4", "P3")),
        ):
            sets = [*TREE, *QUICK, f"colony.leads={'true' if name[0] == 'P' else 'false'}"]
            if leader:
                sets.append(f"colony.leader={peers[leader].node.endpoints[0].split('//')[1]}")
            one = zone.peer(name, zone=name.lower(), sets=sets)
            peers[name] = await stack.enter_async_context(one)
        peers["C2"].colony.offer(S1)
        peers["C3"].colony.offer(S2)
        peers["C4"].colony.offer(S3)
        await until(lambda: len(peers["P1"].colony.services) == 3)
        await until(lambda: peers["C1"].colony.leader == "P2")
        yield peers


async def echo_between(client: Peer, servant: str) -> None:
    """Talk to it directly."""
    with client.node.events(EchoAnswered) as answers:
        client.node.call(client.node.protocol(Echo).ask, servant, b"hello")
        with trio.fail_after(DEADLINE):
            await anext(answers)


@pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])
def test_figure_1_over_sockets(tmp_path: Path, secure: bool) -> None:
    async def main() -> None:
        async with figure_1(Zone(tmp_path, secure=secure)) as peers:
            client = peers["C1"]
            with trio.fail_after(DEADLINE):
                found = await client.colony.ask([S4, S5], mode="exhaustive")
                servants = {one.index: one async for one in found}
            assert {index: one.name for index, one in servants.items()} == {0: "C2", 1: "C3"}
            assert (found.rejected, found.complete) == ({}, True)
            assert servants[1].endpoints == tuple(peers["C3"].node.endpoints)
            requests = {
                name: one.node.protocol(Colony).counts.requests for name, one in peers.items()
            }
            assert [requests[name] for name in ("P1", "P2", "P3")] == [1, 1, 1]
            for servant in servants.values():
                await client.colony.connect(servant)
            for name in ("P1", "P2", "P3"):
                peers[name].stop()
            await until(lambda: not any(peers[name].node.is_running for name in ("P1", "P2", "P3")))
            for servant in servants.values():  # with no broker between
                await echo_between(client, servant.name)

    trio.run(main)


def test_a_false_certificate_is_not_believed(tmp_path: Path) -> None:
    async def main() -> None:
        async with figure_1(Zone(tmp_path, secure=True)) as peers:
            impostor = peers["C2"].node.protocol(Colony)
            honest = impostor._core.card()
            other = peers["C4"].node.driver.host.surroundings.certificate
            impostor._core.card = lambda: type(honest)("C2", honest.endpoints, other)
            with trio.fail_after(DEADLINE):
                found = await peers["C1"].colony.ask([S4])
                assert await found.all() == []
            assert "certificate" in found.rejected[0]
            assert peers["C1"].node.protocol(Colony).counts.distrusted == 1

    trio.run(main)


def test_policies_instances_conjunctions_and_errors(tmp_path: Path) -> None:
    asked_by: list[str] = []

    def only_once(proposal: Any) -> bool:
        asked_by.append(proposal.client)
        return len(asked_by) == 1

    async def main() -> None:
        async with figure_1(Zone(tmp_path, secure=False)) as peers:
            client = peers["C1"].colony
            offer = peers["C4"].colony.offer(S2, accept=only_once)
            await until(lambda: offers_both(peers))
            with trio.fail_after(DEADLINE):
                two = await (await client.ask([S5], instances=2)).all()
                assert sorted(one.name for one in two) == ["C3", "C4"]
                assert asked_by == ["C1"]
                both = await client.ask([[S3, S5]])
                assert await both.all() == []
                assert both.rejected == {0: "rejected"}
                everybody = await (await client.ask([S5], replies=0, mode="exhaustive")).all()
                assert [one.name for one in everybody] == ["C3"]
                without = await client.ask([S5], without=["C3"], reliable=True)
                assert await without.all() == []
            offer.withdraw()
            with pytest.raises(LocalProtocolError, match="is no service"):
                client.offer("type =")
            with pytest.raises(LocalProtocolError, match="no mode"):
                await client.ask([S4], mode="quickly")
            with pytest.raises(ColonyError, match="cannot be reached"):
                monkey = peers["C1"].colony
                with trio.move_on_after(DEADLINE):
                    await monkey.connect("nobody")

    trio.run(main)


def offers_both(peers: dict[str, Peer]) -> bool:
    individuals = peers["P3"].node.protocol(Colony).individuals()
    return any(one.name == "C4" and one.services == 2 for one in individuals)


def test_a_cycle_is_refused_and_a_dead_leader_is_replaced(tmp_path: Path) -> None:
    async def main() -> None:
        async with figure_1(Zone(tmp_path, secure=False)) as peers:
            with pytest.raises(ColonyError, match="cycle of leaders: P2 → P1"):
                await peers["P1"].colony.join("P2")
            peers["P1"].colony.leave()
            peers["P2"].stop()
            await until(lambda: peers["C1"].colony.leader == "P1")
            await until(lambda: peers["C2"].colony.leader == "P1")
            with trio.fail_after(DEADLINE):
                found = await (await peers["C1"].colony.ask([S4])).all()
            assert [one.name for one in found] == ["C2"]

    trio.run(main)


def test_an_orphan_finds_a_leader_by_broker_discovery(tmp_path: Path) -> None:
    """Its leader is gone, and nobody told it of another one."""

    async def main() -> None:
        field = Field(tmp_path, secure=False)
        leads = (*TREE, *QUICK, "colony.leads=true")
        async with (
            field.bdn() as bdn,
            field.broker("b1", *leads, bdns=(bdn,)) as other,
            Peer.join(**field.options("P", (), leads)) as leader,
            Peer.join(
                **field.options(
                    "C",
                    (),
                    (
                        *(*TREE, *QUICK, f'discovery.bdns=["{place(bdn)}"]'),
                        f"colony.leader={place(leader)}",
                    ),
                )
            ) as orphan,
        ):
            await until(lambda: orphan.colony.leader == "P")
            orphan.colony.offer(S1)
            leader.stop()
            await until(lambda: orphan.colony.leader == "b1")
            await until(lambda: other.colony.services == (str(parsed(S1)),))

    trio.run(main)


def test_a_zone_is_a_colony(tmp_path: Path) -> None:
    """Its delegate leads; nobody told anybody about a tree."""

    async def main() -> None:
        zone = Zone(tmp_path, secure=False)
        sets = [FEDERATE, *QUICK]
        async with (
            zone.peer("a", sets=sets) as first,
            zone.peer("b", first, sets=sets) as second,
            zone.peer("c", first, sets=sets) as third,
        ):
            with trio.fail_after(DEADLINE):
                await first.joined(count=3)
                second.colony.offer(S1)
                await second.colony.joined(within=DEADLINE)
                found = await (await third.colony.ask([S4], within=DEADLINE)).all()
            assert [one.name for one in found] == ["b"]
            leaders = [one for one in (first, second, third) if one.colony.leads]
            assert len(leaders) == 1
            with pytest.raises(ColonyError, match="placement=tree"):
                await third.colony.join("a")

    trio.run(main)
