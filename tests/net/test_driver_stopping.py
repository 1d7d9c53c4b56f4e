"""A node stops in time, and nothing that it acknowledged is lost: not even when it is killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import trio

from tests.net.deaf import deaf_peer, fill
from tests.net.drivers import WITHIN, Speaker, running, speaker, until

ROOT = Path(__file__).parents[2]
IN_TIME = 2.0  # s


def test_a_stop_before_the_start_and_many_after_are_harmless() -> None:
    async def main() -> None:
        ada, bob = speaker("ada"), speaker("bob")
        ada.driver.stop()
        await ada.driver.run()
        async with running(bob):
            for _ in range(3):
                bob.driver.stop()
        bob.driver.stop()

    trio.run(main)


@pytest.mark.parametrize("payload", [b"", bytes(1000), bytes(100_000)], ids=len)
def test_what_was_queued_on_an_open_link_still_leaves(payload: bytes) -> None:
    said = list(range(300))

    async def main() -> None:
        ada, bob = speaker("ada"), speaker("bob")
        async with running(bob):
            async with running(ada):
                ada.knows(bob)
                ada.say("bob", -1)
                await until(lambda: bob.numbers == [-1], "the link")
                ada.say("bob", *said, payload=payload)
            await until(lambda: bob.talk.losses, "the goodbye")
            assert bob.numbers == [-1, *said]

    trio.run(main)


def test_what_waits_for_a_link_that_is_about_to_open_still_leaves() -> None:
    async def main() -> None:
        ada, bob = speaker("ada"), speaker("bob")
        async with running(bob):
            async with running(ada):
                ada.knows(bob)
                ada.say("bob", 1, 2, 3)
            await until(lambda: bob.numbers == [1, 2, 3], "the last words")

    trio.run(main)


def test_a_blocked_link_does_not_hold_it_up() -> None:
    async def main() -> None:
        ada = speaker("ada", link_bytes=1 << 20)
        with deaf_peer("dan") as dan:
            async with running(ada):
                ada.driver.learn("dan", [dan.endpoint])
                ada.say("dan", 0)
                await until(dan.welcomes, "a Hello")
                await until(lambda: ada.is_open("dan"), "the link")
                await fill(ada, "dan")
                began = time.monotonic()
                ada.driver.stop()
            took = time.monotonic() - began
            assert ada.driver.net.stop_within <= took < IN_TIME

    trio.run(main)


def test_peers_that_are_gone_do_not_hold_it_up() -> None:
    async def main() -> None:
        ada = speaker("ada")
        with deaf_peer("dan") as dan:  # never says Welcome
            async with running(ada):
                ada.driver.learn("dan", [dan.endpoint])
                ada.driver.learn("eve", ["tcp://127.0.0.1:9"])
                ada.driver.meet("tcp://127.0.0.1:9")
                for peer in ("dan", "eve", "nobody"):
                    ada.say(peer, 1)
                await until(lambda: ada.count("attempts failed") >= 3, "vain attempts")
                began = time.monotonic()
                ada.driver.stop()
            assert time.monotonic() - began < IN_TIME

    trio.run(main)


# -- what is stored ---------------------------------------------------------------------------


def _on_disk(state: Path) -> set[bytes]:
    with closing(sqlite3.connect(state / "state.sqlite")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {bytes(key) for (key,) in db.execute("SELECT key FROM kept")}


@contextmanager
def _keeper(state: Path, peer: Speaker) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "tests.net.keeper", str(state), peer.name]
    with subprocess.Popen(
        [*words, peer.driver.endpoints[0]],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
def test_what_was_acknowledged_is_on_disk(tmp_path: Path, number: int) -> None:
    async def main() -> None:
        bob = speaker("bob")
        async with running(bob):
            with _keeper(tmp_path, bob) as keeper:
                await until(lambda: len(bob.numbers) >= 60, "some writes")
                began = time.monotonic()
                os.kill(keeper.pid, number)
                told, _ = await trio.to_thread.run_sync(lambda: keeper.communicate(timeout=WITHIN))
                took = time.monotonic() - began
            whole = told[: told.rfind("\n") + 1]  # a killed process may leave half a line
            printed = [int(line.split()[1]) for line in whole.splitlines()]
            acknowledged = {str(one).encode() for one in printed}
            assert len(acknowledged) >= 60
            assert acknowledged <= _on_disk(tmp_path)
            if number == signal.SIGTERM:
                assert keeper.returncode == 0
                assert took < IN_TIME
                assert b"stopped" in _on_disk(tmp_path)  # stored while it stopped
                # Everything it said has left, in order, the last word last.
                await until(lambda: bob.numbers[-1:] == [-1], "its last word")
                assert bob.numbers == [*printed[: len(bob.numbers) - 1], -1]
                assert len(bob.numbers) - 1 >= len(printed) - 20

    trio.run(main)


def test_a_new_life_begins_with_what_was_kept(tmp_path: Path) -> None:
    async def main() -> None:
        for life in range(3):
            ada = speaker("ada", state=tmp_path)
            async with running(ada):
                assert ada.talk.kept == {bytes([past]): b"x" for past in range(life)}
                ada.driver.call(ada.talk.keep, bytes([life]), b"x")
                await until(lambda: ada.talk.stored, "the disk")  # noqa: B023

    trio.run(main)
