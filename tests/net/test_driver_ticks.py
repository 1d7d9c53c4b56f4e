"""Ticks: each link is flushed once in a tick; a call on an idle node flushes at once."""

from __future__ import annotations

import trio

from tests.net.drivers import Speaker, Word, running, speaker, until


async def _linked(ada: Speaker, bob: Speaker) -> None:
    ada.knows(bob)
    bob.knows(ada)
    ada.say("bob", -1)
    bob.say("ada", -1)
    await until(lambda: ada.numbers == bob.numbers == [-1], "open links")


def test_all_messages_of_one_tick_leave_as_one_frame() -> None:
    async def main() -> None:
        ada, bob = speaker("ada"), speaker("bob")
        async with running(ada, bob):
            await _linked(ada, bob)
            before = ada.count("frames sent")
            ada.say("bob", *range(500), payload=b"x" * 100)
            await until(lambda: bob.numbers[1:] == list(range(500)), "all in order")
            assert ada.count("frames sent") == before + 1

    trio.run(main)


def test_answers_to_one_batch_leave_as_one_frame() -> None:
    async def main() -> None:
        ada, bob = speaker("ada"), speaker("bob")
        async with running(ada, bob):
            await _linked(ada, bob)
            bob.driver.host._handlers[""][Word] = lambda src, msg, now: bob.talk.effects.send(
                src, msg
            )
            before = bob.count("frames sent")
            ada.say("bob", *range(500))
            await until(lambda: ada.numbers[1:] == list(range(500)), "all answers, in order")
            assert bob.count("frames sent") == before + 1

    trio.run(main)


def test_a_tick_ends_with_its_hook_whose_words_leave_in_the_same_frame() -> None:
    async def main() -> None:
        ada, bob = speaker("ada"), speaker("bob")
        async with running(ada, bob):
            await _linked(ada, bob)
            before = ada.count("frames sent")

            def at_end(now: float) -> None:
                ada.talk.effects.send("bob", Word(2))

            def command(now: float) -> None:
                ada.talk.effects.at_tick_end(at_end)
                ada.talk.effects.at_tick_end(at_end)
                ada.talk.effects.send("bob", Word(1))

            ada.driver.call(command)
            await until(lambda: bob.numbers == [-1, 1, 2], "both")
            assert ada.count("frames sent") == before + 1

    trio.run(main)


def test_a_call_on_an_idle_node_leaves_before_it_returns() -> None:
    async def main() -> None:
        ada, bob = speaker("ada", flush_gap=0.0), speaker("bob")
        async with running(ada, bob):
            await _linked(ada, bob)
            before = ada.count("frames sent")
            for number in range(10):  # below ZeroMQ's high-water mark, net.link_frames
                ada.say("bob", number)
                assert ada.count("frames sent") == before + 1 + number
            await until(lambda: bob.numbers[1:] == list(range(10)), "all in order")

    trio.run(main)


def test_calls_within_the_gap_of_a_flush_share_the_next_tick() -> None:
    async def main() -> None:
        ada, bob = speaker("ada", flush_gap=0.1), speaker("bob")
        async with running(ada, bob):
            await _linked(ada, bob)
            ada.driver._last_flush = ada.driver.now()  # as if one had just gone
            before = ada.count("frames sent")
            for number in range(200):
                ada.say("bob", number)
            waiting = ada.count("frames sent")
            await until(lambda: bob.numbers[1:] == list(range(200)), "all in order")
            # A starved machine may let the gap pass between two calls, and flush there.
            assert waiting <= before + 3
            assert before < ada.count("frames sent") <= before + 6

    trio.run(main)


def test_a_message_to_itself_comes_back_in_a_later_step() -> None:
    async def main() -> None:
        ada = speaker("ada")
        async with running(ada):
            ada.say("ada", 1, 2, 3)
            await until(lambda: ada.numbers == [1, 2, 3], "its own words")
            assert ada.count("frames sent") == 0

    trio.run(main)
