"""A peer that does not read: its queue is bounded, what it costs is counted, others go on."""

from __future__ import annotations

import psutil
import trio

from tests.net.deaf import deaf_peer, fill
from tests.net.drivers import running, speaker, until

MIB = 1 << 20
PAYLOAD = bytes(30_000)


def test_the_queue_of_a_deaf_peer_is_bounded_and_others_go_on() -> None:
    async def main() -> None:
        ada, bob = speaker("ada", link_bytes=4 * MIB), speaker("bob")
        with deaf_peer("dan") as dan:
            async with running(ada, bob):
                ada.knows(bob)
                ada.driver.learn("dan", [dan.endpoint])
                ada.say("dan", 0)
                await until(dan.welcomes, "a Hello")
                await until(lambda: ada.is_open("dan"), "the link")
                await fill(ada, "dan")
                assert ada.link("dan").blocked
                held = psutil.Process().memory_info().rss
                dropped = ada.count("messages dropped")
                for number in range(100):
                    ada.say("dan", *range(50), payload=PAYLOAD)
                    ada.say("bob", number)
                await until(lambda: bob.numbers == list(range(100)), "the others' messages")
                assert ada.count("messages dropped") >= dropped + 4000  # of 5000: 150 MB
                grown = psutil.Process().memory_info().rss - held
                assert grown < 40 * MIB
                assert ada.is_open("dan")

    trio.run(main)


def test_what_fitted_into_the_queue_leaves_when_the_peer_reads_again() -> None:
    async def main() -> None:
        ada = speaker("ada", link_bytes=1 * MIB, link_frames=1)
        with deaf_peer("dan") as dan:
            async with running(ada):
                ada.driver.learn("dan", [dan.endpoint])
                ada.say("dan", 0)
                await until(dan.welcomes, "a Hello")
                await until(lambda: ada.is_open("dan"), "the link")
                await fill(ada, "dan")
                frames = len(ada.link("dan").writer.frames)
                assert frames
                before = ada.count("frames sent")
                read = 0

                def all_read() -> bool:
                    nonlocal read
                    read += dan.reads()
                    return not ada.link("dan").writer

                await until(all_read, "an empty queue")
                assert read
                assert ada.count("frames sent") >= before + frames
                dropped = ada.count("messages dropped")
                ada.say("dan", 1)
                await until(lambda: ada.count("frames sent") > before + frames, "room again")
                assert ada.count("messages dropped") == dropped

    trio.run(main)


def test_a_link_that_never_opens_is_bounded_too() -> None:
    async def main() -> None:
        ada = speaker("ada", link_bytes=1 * MIB)
        with deaf_peer("dan") as dan:  # it never says Welcome
            async with running(ada):
                ada.driver.learn("dan", [dan.endpoint])
                await fill(ada, "dan")
                held = sum(size for _, size in ada.link("dan").writer.frames)
                assert 0.9 * MIB <= held <= 1 * MIB

    trio.run(main)
