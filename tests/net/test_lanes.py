"""Two lanes on a real link: what should not wait overtakes bulk, and large messages take turns."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from overlay.limits import MIB, Limits
from overlay.net.link import State
from overlay.wire.frames import Mark
from tests.net.deaf import Deaf, deaf_peer
from tests.net.drivers import Heap, Keys, Speaker, Talk, Word, running, speaker, until

both_worlds = pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])
LAST = 1 << 30
CHUNK = bytes(512 * 1024)
CHUNKS = 100  # 50 MiB
TAKES = 0.005  # s for each of them at a slow reader
AHEAD = 1 * MIB
PART_WAY = Limits(frame_bytes=64 * 1024, string_bytes=4096, message_bytes=64 * MIB)


class SlowTalk(Talk):
    """Takes its time over everything long."""

    def _on_word(self, src: str, msg: Word | Heap, now: float) -> None:
        super()._on_word(src, msg, now)
        busy_until = time.monotonic() + (TAKES if msg.payload else 0.0)
        while time.monotonic() < busy_until:
            pass


def _numbers(heard: Speaker) -> list[int]:
    return heard.numbers[1:]  # without the one that opened the link


async def _open(ada: Speaker, bob: Speaker) -> None:
    ada.knows(bob)
    ada.say("bob", -1)
    await until(lambda: bob.numbers == [-1], "the link")


@both_worlds
def test_small_messages_overtake_50_mib_on_the_way_to_a_slow_reader(
    tmp_path: Path, secure: bool
) -> None:
    keys = Keys(tmp_path) if secure else None

    async def main() -> None:
        ada, bob = (
            speaker(
                name,
                credentials=keys.of(name) if keys else None,
                protocol=SlowTalk,
                bulk_ahead=AHEAD,
            )
            for name in ("ada", "bob")
        )
        async with running(ada, bob):
            await _open(ada, bob)
            ada.heave("bob", *range(CHUNKS), payload=CHUNK)
            await until(lambda: len(bob.numbers) > 10, "a stream that flows")
            waited_for = []
            small = CHUNKS
            while CHUNKS - 1 not in bob.numbers:
                before = len(_numbers(bob))
                ada.say("bob", small)
                await until(lambda due=small: due in bob.numbers, "a small one")  # type: ignore[misc]
                waited_for.append(_numbers(bob).index(small) - before)
                small += 1
            heard = _numbers(bob)
            # It waits for what is on its way: a window, and the frame that passes its end.
            assert max(waited_for) <= (AHEAD + 2 * MIB) // len(CHUNK) + 2
            assert [number for number in heard if number < CHUNKS] == list(range(CHUNKS))
            assert [number for number in heard if number >= CHUNKS] == list(range(CHUNKS, small))
            assert ada.count("bulk messages dropped") == 0
            assert ada.driver.status().refusals == bob.driver.status().refusals == {}

    trio.run(main)


async def _met(ada: Speaker, dan: Deaf) -> None:
    ada.driver.learn("dan", [dan.endpoint])
    ada.say("dan", 0)
    await until(dan.welcomes, "a Hello")
    await until(lambda: ada.is_open("dan"), "the link")
    await until(lambda: dan.reads_one() is not None, "the first word")


def _marks(parts: list[bytes]) -> list[int]:
    """The marks that a frame holds."""
    _, _, sections, _ = msgspec.msgpack.decode(parts[0])
    own = [msg for scope, messages in sections if scope == "#" for msg in messages]
    return [msg[1] for msg in own if msg[0] == Mark.__struct_config__.tag]


def test_bulk_goes_no_further_ahead_than_its_window() -> None:
    async def main() -> None:
        ada = speaker("ada", bulk_ahead=1 * MIB)
        with deaf_peer("dan") as dan:
            async with running(ada):
                await _met(ada, dan)
                before = ada.count("bytes sent")
                ada.heave("dan", *range(40), payload=bytes(100_000))  # 4 MB
                link = ada.link("dan")
                assert link.bulk
                sent = ada.count("bytes sent") - before
                assert 1 * MIB <= sent <= 2.5 * MIB
                assert not link.blocked  # it is our window that is full, not ZeroMQ's queue
                waiting = ada.driver.status().links[0].bulk_waiting
                assert waiting >= 1.4 * MIB
                assert ada.driver.status().links[0].waiting == 0
                # Nothing more leaves until marks come back; then everything does.
                payloads, marks = 0, 0

                def all_read() -> bool:
                    nonlocal payloads, marks
                    while (parts := dan.reads_one()) is not None:
                        payloads += len(parts) - 1
                        for mark in _marks(parts):
                            dan.answers(Mark(mark))
                            marks += 1
                    return payloads == 40

                await until(all_read, "all of the bulk")
                assert marks >= 3
                await until(lambda: not link.bulk, "an empty lane")
                assert ada.driver.status().links[0].bulk_waiting == 0
                assert ada.driver.status().refusals == {}

    trio.run(main)


def test_a_mark_that_got_lost_is_sent_again() -> None:
    async def main() -> None:
        ada = speaker("ada", bulk_ahead=1 * MIB)
        with deaf_peer("dan") as dan:
            async with running(ada):
                await _met(ada, dan)
                ada.heave("dan", *range(40), payload=bytes(100_000))
                seen: list[int] = []

                def repeated() -> bool:
                    while (parts := dan.reads_one()) is not None:
                        seen.extend(_marks(parts))  # and answers none of them, as in a flood
                    return len(seen) > len(set(seen))

                await until(repeated, "the last mark once more")
                assert seen[-1] == max(seen)
                dan.answers(Mark(seen[-1]))
                before = ada.count("bytes sent")
                await until(lambda: ada.count("bytes sent") > before + MIB, "more bulk")
                assert ada.driver.status().refusals == {}

    trio.run(main)


def test_a_mark_that_nobody_sent_is_refused_and_opens_nothing() -> None:
    async def main() -> None:
        ada = speaker("ada", bulk_ahead=1 * MIB)
        with deaf_peer("dan") as dan:
            async with running(ada):
                await _met(ada, dan)
                ada.heave("dan", *range(40), payload=bytes(100_000))
                sent = ada.count("frames sent")
                dan.answers(Mark(1 << 62))
                await until(lambda: ada.driver.status().refusals == {"stray-mark": 1}, "a refusal")
                assert ada.count("frames sent") == sent
                assert ada.is_open("dan")

    trio.run(main)


def test_each_lane_has_its_own_bound_and_counts_its_own_drops() -> None:
    async def main() -> None:
        ada = speaker("ada", link_bytes=1 * MIB, bulk_ahead=65_536)
        with deaf_peer("dan") as dan:
            async with running(ada):
                await _met(ada, dan)
                ada.heave("dan", *range(100), payload=bytes(30_000))
                link = ada.link("dan")
                assert link.bulk is not None
                dropped = ada.count("bulk messages dropped")
                assert 60 <= dropped <= 65  # 3 MB, of which 1 MiB waits and a little has left
                assert 0.9 * MIB <= link.bulk.queued <= 1 * MIB
                assert ada.count("messages dropped") == 0
                ada.say("dan", 1)  # there is room for what should not wait
                found: list[Any] = []

                def said() -> bool:
                    while (parts := dan.reads_one()) is not None:
                        _, _, sections, _ = msgspec.msgpack.decode(parts[0])
                        found.extend(msg[:2] for _, messages in sections for msg in messages)
                    return [Word.__struct_config__.tag, 1] in found

                await until(said, "the word")
                assert ada.count("messages dropped") == 0
                assert ada.count("bulk messages dropped") == dropped

    trio.run(main)


@both_worlds
def test_64_mib_and_small_messages_take_turns(tmp_path: Path, secure: bool) -> None:
    keys = Keys(tmp_path) if secure else None
    large = bytes(range(256)) * (64 * MIB // 256)

    async def main() -> None:
        ada, bob = (
            speaker(name, credentials=keys.of(name) if keys else None, bulk_ahead=MIB)
            for name in ("ada", "bob")
        )
        async with running(ada, bob):
            await _open(ada, bob)
            ada.say("bob", LAST, payload=large)
            said = 0
            while LAST not in bob.numbers:  # one of each lane, as fast as they are heard
                ada.say("bob", 2 * said)
                ada.heave("bob", 2 * said + 1)
                said += 1
                await until(lambda due=2 * said: len(_numbers(bob)) >= due, f"round {said}")  # type: ignore[misc]
            await until(lambda: len(_numbers(bob)) == 2 * said + 1, "all")
            heard = _numbers(bob)
            assert said > 10  # they went in between, some in each window
            assert [number for number in heard if number % 2 == 0 and number != LAST] == list(
                range(0, 2 * said, 2)
            )
            assert [number for number in heard if number % 2] == list(range(1, 2 * said, 2))
            assert next(data for _, number, data in bob.talk.heard if number == LAST) == large

    trio.run(main)


def test_a_shorter_large_message_does_not_wait_for_a_longer_one() -> None:
    async def main() -> None:
        ada, bob = (speaker(name, limits=PART_WAY) for name in ("ada", "bob"))
        async with running(ada, bob):
            await _open(ada, bob)
            ada.heave("bob", 1, payload=b"long" * (4 * MIB))
            ada.heave("bob", 2, payload=b"short" * 100_000)
            ada.heave("bob", 3, payload=b"ordinary")
            await until(lambda: len(_numbers(bob)) == 3, "all three")
            assert _numbers(bob) == [3, 2, 1]
            assert [data for _, _, data in bob.talk.heard[1:]] == [
                b"ordinary",
                b"short" * 100_000,
                b"long" * (4 * MIB),
            ]
            assert bob.driver.status().refusals == {}

    trio.run(main)


def test_a_large_message_whose_link_breaks_in_the_midst_arrives_whole_and_once() -> None:
    large = bytes(range(256)) * (16 * MIB // 256)

    async def main() -> None:
        ada = speaker("ada", limits=PART_WAY, bulk_ahead=1 * MIB)
        bob = speaker("bob", limits=PART_WAY)
        with deaf_peer("bob") as impostor:  # lets ada in, and dies when it has read a little
            async with running(ada):
                ada.driver.learn("bob", [impostor.endpoint])
                ada.heave("bob", 1, payload=large)
                ada.say("bob", 2)
                await until(impostor.welcomes, "a Hello")
                await until(lambda: ada.is_open("bob"), "the link")
                read = 0
                while read < 10:
                    await trio.lowlevel.checkpoint()
                    read += impostor.reads_one() is not None
                impostor.close()
                await until(lambda: not ada.is_open("bob"), "the end of the link")
                assert ada.link("bob").waiting
                assert ada.link("bob").waiting_since is not None
                async with running(bob):
                    ada.knows(bob)
                    await until(lambda: bob.numbers, "the whole message")
                    assert bob.numbers == [1]
                    assert bob.talk.heard[0][2] == large
                    assert bob.driver.status().refusals == {}

    trio.run(main)


def test_bulk_for_a_peer_that_never_comes_is_given_up_and_counted() -> None:
    async def main() -> None:
        ada = speaker("ada", give_up=0.5, retry_longest=0.1)
        async with running(ada):
            ada.driver.learn("bob", ["tcp://127.0.0.1:1"])
            ada.heave("bob", 1, payload=bytes(4000))
            ada.heave("bob", 2, payload=bytes(3 * MIB))
            ada.say("bob", 3)
            assert ada.link("bob").waiting
            await until(lambda: ada.count("frames undelivered") == 3, "three counted")
            link = ada.driver.links.by_name.get("bob")
            assert link is None or (not link.waiting and link.state is not State.OPEN)

    trio.run(main)


@pytest.mark.parametrize("size", [10, 100_000, 3 * MIB])
def test_bulk_that_was_queued_leaves_before_goodbye(size: int) -> None:
    async def main() -> None:
        ada, bob = speaker("ada", stop_within=20.0, bulk_ahead=1 * MIB), speaker("bob")
        async with running(bob):
            async with running(ada):
                await _open(ada, bob)
                ada.heave("bob", *range(20), payload=bytes(size))
            await until(lambda: bob.talk.losses, "the goodbye")
            assert sorted(_numbers(bob)) == list(range(20))
            assert [loss.reason for loss in bob.talk.losses][:1] == ["goodbye"]

    trio.run(main)


@pytest.mark.parametrize("size", [0, 100, 40_000, 3 * MIB])
def test_one_call_sends_to_several_peers(size: int) -> None:
    async def main() -> None:
        ada, bob, cid = (speaker(name) for name in ("ada", "bob", "cid"))
        payload = bytes([7]) * size
        async with running(ada, bob, cid):
            ada.knows(bob, cid)
            for links in range(2):  # the first time there is no link to them yet
                ada.say(["bob", "cid"], 1, payload=payload)
                if not links and size <= MIB:
                    queued = [ada.link(name).writer._runs[0][1][0] for name in ("bob", "cid")]
                    assert isinstance(queued[0], msgspec.Raw)
                    assert queued[0] is queued[1]  # encoded once
                ada.heave(["bob", "cid"], 2, payload=payload)
                for one in (bob, cid):
                    await until(lambda one=one: len(one.numbers) == 2, "both")  # type: ignore[misc]
                    heard = sorted((number, data) for _, number, data in one.talk.heard)
                    assert heard == [(1, payload), (2, payload)]
                    one.talk.heard.clear()

    trio.run(main)
