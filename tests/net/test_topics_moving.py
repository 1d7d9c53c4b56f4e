"""Peers that change their zone or address on real sockets, with their streams."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from typer.testing import CliRunner

from nodes.cli.app import app
from nodes.peer import Peer
from nodes.topics import TopicSubscription
from overlay.errors import LocalProtocolError, OverlayError, SecurityError
from tests.net.processes import overlay, peer
from tests.net.zone import FEDERATE, Zone, until

TOPIC = "plant/7"
WITHIN = 60.0  # s for a whole test
PAUSE = 0.002  # s between two messages: the streams go on through all moves
SOONER: dict[str, Any] = {"sets": [FEDERATE]}


class Reader:
    """What one peer got of each publisher."""

    def __init__(self, who: Peer) -> None:
        self.who = who
        self.got: dict[str, list[int]] = {}

    async def read(self, task_status: trio.TaskStatus[None]) -> None:
        async with self.who.subscribe(TOPIC) as messages:
            task_status.started()
            async for message in messages:
                assert message.data == message.sequence
                self.got.setdefault(message.publisher, []).append(message.sequence)


class Author:
    """Publishes until it is told to stop."""

    def __init__(self, who: Peer, reliability: str) -> None:
        self.who = who
        self.number = 0
        self._reliability = reliability
        self._over = False

    async def write(self, readers: list[Reader], task_status: trio.TaskStatus[None]) -> None:
        async with self.who.publisher(TOPIC, reliability=self._reliability) as out:
            while not all(self.who.name in reader.got for reader in readers):
                await self._one(out)
            task_status.started()
            while not self._over:
                await self._one(out)

    async def _one(self, out: Any) -> None:
        self.number += 1
        await out.publish(self.number)
        await trio.sleep(PAUSE)

    def stop(self) -> None:
        self._over = True


def have(readers: list[Reader], publisher: str, number: int) -> bool:
    """Whether all of them have that message."""
    return all(reader.got[publisher][-1] >= number for reader in readers)


def knows(who: Peer, names: set[str]) -> bool:
    """Whether these are the members of its zone."""
    return set(who.members) == names


async def wander(folder: Path, secure: bool) -> None:
    zone = Zone(folder, secure=secure)
    async with (
        zone.peer("e1", zone="east", **SOONER) as east,
        zone.peer("w1", east, zone="west", **SOONER) as west,
        zone.peer("w2", west, zone="west", **SOONER) as other,
        zone.peer("rover", east, zone="east", **SOONER) as rover,
        trio.open_nursery() as nursery,
    ):
        rover.attributes["wheels"] = 6
        readers = [Reader(who) for who in (east, west, other, rover)]
        for reader in readers:
            await nursery.start(reader.read)
        modes = {rover: "ack", east: "ack", other: "nack"}
        authors = [Author(who, mode) for who, mode in modes.items()]
        for author in authors:
            await nursery.start(author.write, readers)
        before = rover.node.endpoints
        for place, there in (("west", ("w1", "w2")), ("east", ("e1",)), ("west", ("w1", "w2"))):
            await rover.move(zone=place)
            assert rover.zone == place
            await until(partial(knows, rover, {"rover", *there}))
            await until(partial(have, readers, "rover", authors[0].number + 1))
        await rover.move(bind=["127.0.0.1:0"])
        assert rover.node.endpoints != before
        assert rover.attributes["wheels"] == 6
        await until(lambda: "rover" in west.members)
        await until(lambda: west.members["rover"].attributes.get("wheels") == 6)
        for author in authors:
            author.stop()
        for author in authors:
            await until(partial(have, readers, author.who.name, author.number))
        for reader in readers:
            for name, numbers in reader.got.items():
                whole = list(range(numbers[0], numbers[-1] + 1))
                lost = sorted(set(whole) - set(numbers))
                assert numbers == whole, f"{reader.who.name} of {name} lacks {lost}"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("secure", [False, True])
def test_streams_of_both_modes_go_along_through_zones_and_addresses(
    tmp_path: Path, secure: bool
) -> None:
    async def main() -> None:
        with trio.fail_after(WITHIN):
            await wander(tmp_path, secure)

    trio.run(main)


def test_what_is_published_and_read_on_the_way_is_not_lost(tmp_path: Path) -> None:
    """An application need not know: it publishes, reads and flushes while its peer moves."""

    async def read(messages: TopicSubscription, got: list[int]) -> None:
        async for batch in messages.batches():
            got += batch.items

    async def main() -> None:
        zone = Zone(tmp_path, secure=False)
        async with zone.peer("ada") as ada, zone.peer("bob", ada) as bob:
            await ada.joined(count=2)
            got: list[int] = []
            async with (
                ada.subscribe("t") as messages,
                bob.publisher("t") as out,
                trio.open_nursery() as nursery,
            ):
                await out.wait_for_subscribers()
                nursery.start_soon(read, messages, got)
                nursery.start_soon(lambda: bob.move(bind=["127.0.0.1:0"]))
                for number in range(300):
                    await out.publish(number)
                    await trio.lowlevel.checkpoint()
                await out.flush()
                await until(lambda: len(got) == 300)
                assert got == list(range(300))
                assert out.published == 300
                nursery.cancel_scope.cancel()

    trio.run(main)


def test_who_cannot_go_there_says_why_and_stays(tmp_path: Path) -> None:
    async def main() -> None:
        zone = Zone(tmp_path, secure=True)
        async with zone.peer("ada") as ada, zone.peer("bob", ada, zones=("west",)) as bob:
            await bob.joined(count=2)
            with pytest.raises(SecurityError, match="'bob' may not join zone 'east'"):
                await bob.move(zone="east")
            assert bob.zone == "west"
            taken = socket.create_server(("127.0.0.1", 0))
            with taken, pytest.raises(OverlayError):
                await bob.move(bind=[f"127.0.0.1:{taken.getsockname()[1]}"])
            await until(lambda: set(bob.members) == set(ada.members) == {"ada", "bob"})
            async with ada.subscribe("t") as messages, bob.publisher("t") as out:
                await out.wait_for_subscribers()
                await out.publish("still here")
                async for message in messages:
                    assert message.data == "still here"
                    break
        with pytest.raises(LocalProtocolError, match="does not run"):
            await bob.move(zone="west")

    trio.run(main)


def test_overlay_move_asks_a_running_peer(tmp_path_factory: pytest.TempPathFactory) -> None:
    runtime = tmp_path_factory.mktemp("r")
    with ExitStack() as stack:
        start = ("--insecure", "--set", FEDERATE)
        ada = stack.enter_context(peer(runtime, "--name", "ada", "--zone", "west", *start))
        more = ("--zone", "east", "--seed", ada.address)
        stack.enter_context(peer(runtime, "--name", "bob", *more, *start))
        done = overlay(runtime, "move", "--node", "bob", "--zone", "west", "--json")
        assert (done.returncode, done.stderr) == (0, "")
        told = json.loads(done.stdout)
        assert (told["node"], told["zone"]) == ("bob", "west")
        assert told["endpoints"]


def test_overlay_move_wants_to_know_where_to() -> None:
    done = CliRunner().invoke(app, ["move"])
    assert (done.exit_code, done.stderr) == (
        2,
        "overlay: say where to: --zone ZONE, --bind ADDRESS, or both\n",
    )
