"""`peer.dht` of three members on real sockets: what each operation returns, and how it fails."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from nodes.dht import OperationRefused, PeerTable
from nodes.peer import Peer
from overlay.errors import ConfigError, LocalProtocolError
from protocols.dht.events import TableJoined
from tests.net.zone import DEADLINE, FEDERATE, Zone

SERVE = ["dht.serve=true", "dht.found_after=0.2", "dht.shard_bits=4", FEDERATE]


@asynccontextmanager
async def three(
    folder: Path, *, secure: bool = False, sets: tuple[str, ...] = (), **last: Any
) -> AsyncIterator[tuple[Peer, Peer, Peer]]:
    """Three servers who know each other; `last` is about the third."""
    zone = Zone(folder, secure=secure)
    mine = [*SERVE, "dht.founders=3", *sets]
    with trio.fail_after(DEADLINE):
        async with (
            zone.peer("ada", sets=mine) as ada,
            zone.peer("bob", ada, sets=mine) as bob,
            zone.peer("eve", ada, sets=mine, **last) as eve,
        ):
            for one in (ada, bob, eve):
                await one.joined(count=3)
                await one.dht.ready()
            yield ada, bob, eve


def playing(
    folder: Path, play: Callable[[PeerTable, PeerTable], Awaitable[None]], **more: Any
) -> None:
    async def main() -> None:
        async with three(folder, **more) as (ada, bob, _):
            await play(ada.dht, bob.dht)

    trio.run(main)


def test_every_operation_answers_as_the_paper_says(tmp_path: Path) -> None:
    async def play(ada: PeerTable, bob: PeerTable) -> None:
        assert await ada.get("k") is None
        assert await ada.contains("k") is False
        assert await ada.remove("k") is False
        assert await ada.replace("k", 1) is None
        assert await ada.get("k") is None  # replace inserts nothing
        assert await ada.put_and_retrieve("k", 1) is None
        assert await bob.put_and_retrieve("k", {"b": 2, "a": 1}) == 1
        assert await ada.put_if_absent("k", 5) is False
        assert await bob.replace("k", {"a": 1, "b": 3}, 6) is False
        assert await bob.replace("k", {"a": 1, "b": 2}, [1, "two", b"\xff"]) is True
        assert await ada.get("k") == [1, "two", b"\xff"]
        assert await ada.replace("k", 3.5) == [1, "two", b"\xff"]
        assert await ada.remove("k", 3) is False
        assert await ada.contains("k") is True
        assert await ada.remove("k", 3.5) is True
        assert await bob.put_if_absent("k", "x") is True
        assert await bob.put("k", b"") is True
        assert await ada.get("k") == b""
        assert await ada.remove("k") is True

    playing(tmp_path, play)


def test_a_stale_read_is_some_value_that_was_written(tmp_path: Path) -> None:
    async def play(ada: PeerTable, bob: PeerTable) -> None:
        await ada.put("k", 1)
        assert await bob.get("k", stale_ok=True) in (None, 1)
        while await bob.get("k", stale_ok=True) != 1:  # noqa: ASYNC110 (nobody tells)
            await trio.sleep(0.01)
        assert await bob.contains("k", stale_ok=True)

    playing(tmp_path, play)


def test_many_at_once_come_back_in_order(tmp_path: Path) -> None:
    async def play(ada: PeerTable, bob: PeerTable) -> None:
        values = {f"key {number}": number for number in range(1500)}
        await ada.put_many(values)
        assert await bob.get_many([*values, "none"]) == [*range(1500), None]
        assert await bob.get_many([]) == []
        with pytest.raises(OperationRefused, match="a key of 1025 bytes"):
            await ada.put_many({"x" * 1025: 1, "last": 2})
        assert await bob.get("last") == 2

    playing(tmp_path, play)


def test_tasks_that_share_a_key_count_without_a_lock(tmp_path: Path) -> None:
    async def play(ada: PeerTable, bob: PeerTable) -> None:
        await ada.put("count", 0)

        async def count(table: PeerTable) -> None:
            for _ in range(10):
                while True:
                    value = await table.get("count")
                    if await table.replace("count", value, value + 1):
                        break

        async with trio.open_nursery() as nursery:
            for table in (ada, bob, ada, bob):
                nursery.start_soon(count, table)
        assert await ada.get("count") == 40

    playing(tmp_path, play)


def test_values_expire(tmp_path: Path) -> None:
    async def play(ada: PeerTable, bob: PeerTable) -> None:
        await ada.put("k", 1, ttl=0.2)
        assert await ada.put_if_absent("k", 2) is False
        while await bob.contains("k"):  # noqa: ASYNC110 (nobody tells)
            await trio.sleep(0.02)
        assert await bob.put_if_absent("k", 3) is True

    playing(tmp_path, play)


def test_a_watch_tells_now_and_each_change_and_the_last_of_several(tmp_path: Path) -> None:
    async def play(ada: PeerTable, bob: PeerTable) -> None:
        with bob.watch("k") as values:
            assert await anext(values) is None
            await ada.put("k", 1)
            assert await anext(values) == 1
            await ada.put("k", 2)
            await ada.put("k", 3)
            seen = [await anext(values)]
            while seen[-1] != 3:
                seen.append(await anext(values))
            await ada.remove("k")
            assert await anext(values) is None
        with pytest.raises(StopAsyncIteration):
            await anext(values)

    playing(tmp_path, play)


def test_keys_and_values_at_their_limits_and_past_them(tmp_path: Path) -> None:
    async def play(ada: PeerTable, bob: PeerTable) -> None:
        for key in (b"", bytes(range(256)), b"\x00" * 1024):
            await ada.put(key, 1)
            assert await bob.get(key) == 1
        await ada.put("v", b"x" * (65_536 - 5))  # and 5 bytes that say how long it is
        assert len(await bob.get("v")) == 65_531
        mistakes: tuple[tuple[Callable[[], Awaitable[Any]], str], ...] = (
            (lambda: ada.put(b"x" * 1025, 1), "a key of 1025 bytes: dht.key_bytes is 1024"),
            (lambda: ada.get("x" * 1025), "a key of 1025 bytes"),
            (lambda: ada.put("v", b"x" * 65_536), "dht.value_bytes is 65536"),
            (lambda: ada.put("v", None), "None stands for no value: remove the key"),
            (lambda: ada.put("v", object()), "MessagePack cannot say it"),
            (lambda: ada.put("v", 1, ttl=-1), "ttl = -1"),
            (lambda: ada.put(7, 1), "a key is bytes or text, not int"),  # type: ignore[arg-type]
        )
        for wrong, problem in mistakes:
            with pytest.raises(LocalProtocolError, match=problem):
                await wrong()
        with pytest.raises(TypeError):
            await ada.replace("k")  # type: ignore[call-overload]
        with pytest.raises(TypeError):
            await ada.remove("k", 1, 2)  # type: ignore[call-overload]

    playing(tmp_path, play)


def test_who_is_full_says_so_and_loses_nothing(tmp_path: Path) -> None:
    async def play(ada: PeerTable, bob: PeerTable) -> None:
        done = []
        with pytest.raises(OperationRefused, match=r"full.*; nothing was done"):
            for number in range(1000):
                await ada.put(str(number), b"x" * 1000)
                done.append(str(number))
        assert 10 <= len(done) < 100
        assert all(value == b"x" * 1000 for value in await bob.get_many(done))
        await ada.remove(done[0])

    playing(tmp_path, play, sets=("dht.node_bytes=50000",))


def test_without_a_majority_it_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        zone = Zone(tmp_path, secure=False)
        sets = [*SERVE, "dht.operation_timeout=1.0"]
        async with zone.peer("ada", sets=[FEDERATE, "dht.operation_timeout=1.0"]) as ada:
            with pytest.raises(OperationRefused, match=r"get\('k'\): .*; nothing was done"):
                await ada.dht.get("k")  # nobody serves
            async with zone.peer("bob", ada, sets=sets) as bob:
                await bob.dht.put("k", 1)
                assert await ada.dht.get("k") == 1  # through its access point
                assert await ada.dht.put("k", 2)

    trio.run(main)


def test_a_call_that_is_cancelled_leaves_the_table_usable(tmp_path: Path) -> None:
    async def play(ada: PeerTable, bob: PeerTable) -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            await ada.put("k", 1)
        assert scope.cancelled_caught
        with trio.move_on_after(0):
            await ada.put_many({str(number): number for number in range(100)})
        await ada.put("k", 2)
        assert await bob.get("k") == 2

    playing(tmp_path, play)


def test_without_the_right_to_write_a_node_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with three(tmp_path, secure=True, table="read") as (ada, _, eve):
            await ada.dht.put("k", 1)
            assert await eve.dht.get("k") == 1
            with pytest.raises(LocalProtocolError, match="the certificate of eve does not allow"):
                await eve.dht.put("k", 2)
            assert await ada.dht.get("k") == 1

    trio.run(main)


def test_sqlite_needs_a_folder(tmp_path: Path) -> None:
    async def main() -> None:
        async with Zone(tmp_path, secure=False).peer("ada", sets=[*SERVE, "dht.storage=sqlite"]):
            pass

    with pytest.raises(ConfigError, match="say where with --state"):
        trio.run(main)


def test_what_was_acknowledged_is_there_after_a_restart_of_all(tmp_path: Path) -> None:
    sets = [*SERVE, "dht.storage=sqlite", "dht.founders=2"]
    values = {str(number): number for number in range(300)}

    async def live(play: Callable[[Peer], Awaitable[None]]) -> None:
        zone = Zone(tmp_path, secure=False)
        with trio.fail_after(DEADLINE):
            async with (
                zone.peer("ada", sets=sets, state=tmp_path / "a") as ada,
                zone.peer("bob", ada, sets=sets, state=tmp_path / "b") as bob,
            ):
                await bob.joined(count=2)
                await play(bob)

    async def write(peer: Peer) -> None:
        await peer.dht.put_many(values)

    async def read(peer: Peer) -> None:
        assert await peer.dht.get_many(values) == list(values.values())

    trio.run(live, write)
    trio.run(live, read)


def test_events_tell_of_the_table(tmp_path: Path) -> None:
    async def main() -> None:
        peer = Zone(tmp_path, secure=False).peer("ada", sets=SERVE)
        events = peer.dht.watch_events()
        async with peer:
            with trio.fail_after(DEADLINE), events:
                async for event in events:
                    if isinstance(event, TableJoined):
                        assert event.founded
                        break

    trio.run(main)


def test_who_retires_leaves_nothing_behind(tmp_path: Path) -> None:
    async def play(ada: PeerTable, bob: PeerTable) -> None:
        await ada.put_many({str(number): number for number in range(50)})
        with trio.fail_after(30):
            await bob.retire()
        assert bob.where("1").leader != "bob"
        assert await bob.get_many([str(number) for number in range(50)]) == list(range(50))
        assert await ada.put("1", "one")
        assert await ada.accept_loss() == 0

    playing(tmp_path, play)
