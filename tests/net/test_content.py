"""Content-based routing on real sockets: brokers in a ring, and clients that come and move."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from nodes.broker import BrokerNode
from nodes.content import NotAttached
from nodes.peer import Peer
from nodes.scenarios.registry import find
from nodes.stage import play
from overlay.errors import LocalProtocolError, SecurityError
from protocols.content import Delivered
from tests.net.processes import RunningPeer, peer
from tests.net.test_discovery import Field, both_worlds, place
from tests.net.zone import DEADLINE, NO_DELEGATES, crashing, until

QUICK = ("content.beat=0.1", "content.lease=1", "content.client_lease=1.5", "content.patience=0.5")


@asynccontextmanager
async def ring(field: Field) -> AsyncIterator[list[BrokerNode]]:
    """Three brokers, each linked to the two others."""
    async with AsyncExitStack() as stack:
        brokers: list[BrokerNode] = []
        for index in range(3):
            one = field.broker(f"b{index}", *QUICK, links=tuple(brokers))
            brokers.append(await stack.enter_async_context(one))
        await until(lambda: all(len(one.content.machine.neighbours()) == 2 for one in brokers))
        yield brokers


def client(field: Field, name: str) -> Peer:
    """A peer that knows no broker yet."""
    return Peer.join(**field.options(name, (), QUICK))


@both_worlds
def test_publications_find_who_wants_them(tmp_path: Path, secure: bool) -> None:
    field = Field(tmp_path, secure=secure)

    async def main() -> None:
        async with ring(field) as brokers, client(field, "ann") as ann, client(field, "bob") as bob:
            assert await ann.content.attach(place(brokers[0])) == "b0"
            assert await bob.content.attach(place(brokers[2])) == "b2"
            with (
                ann.content.advertise('room = "attic", celsius > -50') as thermometer,
                bob.content.subscribe("celsius > 30") as hot,
            ):
                # It came from bob through b2; the tree leads straight from b0 to b2.
                await until(lambda: len(brokers[0].content.machine.router.prt) == 1)
                for celsius in (20, 31, 35.5):
                    thermometer.publish({"room": "attic", "celsius": celsius})
                with trio.fail_after(DEADLINE):
                    first, second = await anext(hot), await anext(hot)
                assert (first.item["celsius"], second.item["celsius"]) == (31, 35.5)
                assert (first.publisher, first.sequence, first.hops) == ("ann", 2, 3)
                with pytest.raises(LocalProtocolError, match="does not determine"):
                    thermometer.publish({"room": "cellar", "celsius": 40})
                assert brokers[1].content.machine.counts.forwarded == 0
            await until(lambda: not any(len(one.content.machine.router.srt) for one in brokers))
            await until(lambda: not any(len(one.content.machine.router.prt) for one in brokers))
            for node in (*brokers, ann, bob):
                assert node.node.status().driver.refusals == {}

    trio.run(main)


def test_a_broker_that_dies_is_passed_by_and_a_dead_client_forgotten(tmp_path: Path) -> None:
    field = Field(tmp_path, secure=False)

    async def main() -> None:
        async with ring(field) as brokers, client(field, "bob") as bob:
            ann = client(field, "ann")
            async with crashing(ann) as death:
                await ann.content.attach(place(brokers[0]))
                await bob.content.attach(place(brokers[1]))
                ann.content.advertise("x >= 0", name="p")
                wanted = bob.content.subscribe("x > 5")
                await until(lambda: len(brokers[0].content.machine.router.prt) == 1)
                brokers[2].stop()
                await until(lambda: brokers[0].content.machine.neighbours() == ("b1",))
                ann.content.publish("p", {"x": 6})
                with trio.fail_after(DEADLINE):
                    assert (await anext(wanted)).item == {"x": 6}
                death.cancel()
            await until(lambda: not len(brokers[1].content.machine.router.srt))

    trio.run(main)


def test_a_client_turns_to_another_broker(tmp_path: Path) -> None:
    field = Field(tmp_path, secure=False)

    async def main() -> None:
        async with ring(field) as brokers, client(field, "ann") as ann:
            await ann.content.attach(place(brokers[0]))
            ann.content.advertise("x >= 0", name="p")
            with brokers[2].content.subscribe("x > 5") as wanted:
                await until(lambda: len(brokers[0].content.machine.router.prt) == 1)
                await ann.content.attach(place(brokers[1]))
                machine = brokers[2].content.machine
                await until(lambda: [one.hop for one in machine.advertisements()] == ["b1"])
                await until(lambda: len(brokers[1].content.machine.router.prt) == 1)
                ann.content.publish("p", {"x": 7})
                with trio.fail_after(DEADLINE):
                    assert (await anext(wanted)).sequence == 1
            assert brokers[0].content.machine.clients() == ()

    trio.run(main)


def test_only_brokers_may_be_neighbours_and_who_is_none_is_not_attached(tmp_path: Path) -> None:
    field = Field(tmp_path, secure=True)

    async def main() -> None:
        async with client(field, "ann") as ann, client(field, "bob") as bob:
            with pytest.raises(NotAttached, match="is it a broker"):
                with trio.fail_after(DEADLINE):
                    await ann.content.attach(place(bob))
        options = field.options("eve", (), ("content.role=broker",))
        with pytest.raises(SecurityError, match="may not be a broker"):
            async with Peer.join(**options):
                pass

    trio.run(main)


def test_broker_processes_route_and_one_is_killed(tmp_path: Path) -> None:
    """Three processes in a ring: the one on the shortest way dies, and the long way takes over."""
    field = Field(tmp_path, secure=False)
    sets = [word for one in (*QUICK, NO_DELEGATES) for word in ("--set", one)]

    def broker(name: str, *links: RunningPeer) -> AbstractContextManager[RunningPeer]:
        linked = [word for link in links for word in ("--link", link.address)]
        told = ("--insecure", "--overlay", "testing", "--name", name, *sets, *linked)
        return peer(tmp_path, *told, kind="broker")

    async def main() -> None:
        with ExitStack() as stack:
            b0 = stack.enter_context(broker("b0"))
            b1 = stack.enter_context(broker("b1", b0))
            b2 = stack.enter_context(broker("b2", b1))
            b3 = stack.enter_context(broker("b3", b2, b0))
            async with client(field, "ann") as ann, client(field, "bob") as bob:
                await ann.content.attach(b0.address)
                await bob.content.attach(b2.address)
                ann.content.advertise("x >= 0", name="p")
                with bob.content.subscribe("x >= 0") as wanted:
                    seen: list[Delivered] = []

                    async def read() -> None:
                        async for found in wanted:
                            seen.append(found)  # noqa: PERF401 (others look at it as it grows)

                    async def publish_until(count: int) -> None:
                        """Trees take a moment to stand: publish until so many came."""
                        with trio.fail_after(DEADLINE):
                            while len(seen) < count:
                                ann.content.publish("p", {"x": len(seen)})
                                await trio.sleep(0.05)

                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(read)
                        await publish_until(3)
                        b1.signal(signal.SIGKILL)
                        before = len(seen)
                        await publish_until(before + 5)
                        b3.signal(signal.SIGKILL)  # no way is left
                        wanted.close()
                    numbers = [one.sequence for one in seen]
                    assert numbers == sorted(set(numbers))
                    assert {one.publisher for one in seen} == {"ann"}

    trio.run(main)


@pytest.mark.parametrize(
    "name", ["content-tree", pytest.param("content-cycles", marks=pytest.mark.slow)]
)
def test_a_scenario_holds_over_zeromq(name: str) -> None:
    entry = find(name)
    trio.run(partial(play, entry.script, size=entry.nodes, seed=1))
