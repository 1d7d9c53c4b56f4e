"""The sleeper of the driver's timers: its deadline moves both ways, and no call is lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from overlay.net.alarm import Alarm

AT = 1000.0  # the node's clock, when trio's is at 0


def _play(script: Callable[[], Awaitable[None]]) -> None:
    trio.run(script, clock=MockClock(autojump_threshold=0.001))


def test_it_sleeps_until_the_time_it_was_told() -> None:
    async def main() -> None:
        alarm = Alarm(lambda: AT + trio.current_time())
        await alarm.sleep_until(AT + 5)
        assert trio.current_time() == 5
        await alarm.sleep_until(AT + 1)  # long past
        assert trio.current_time() == 5

    _play(main)


def test_an_earlier_time_counts_and_a_later_one_does_not() -> None:
    async def main() -> None:
        alarm = Alarm(lambda: AT + trio.current_time())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(alarm.sleep_until, AT + 50)
            await wait_all_tasks_blocked()
            alarm.ring_by(AT + 3)
            alarm.ring_by(AT + 40)
        assert trio.current_time() == 3

    _play(main)


def test_a_call_while_nobody_sleeps_is_kept() -> None:
    async def main() -> None:
        alarm = Alarm(lambda: AT + trio.current_time())
        alarm.ring()
        await alarm.sleep_until(AT + 9)
        assert trio.current_time() == 0
        await alarm.sleep_until(AT + 9)
        assert trio.current_time() == 9, "one call wakes once"

    _play(main)


def test_a_call_wakes_the_sleeper_at_once() -> None:
    async def main() -> None:
        alarm = Alarm(lambda: AT + trio.current_time())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(alarm.sleep_until, AT + 50)
            await wait_all_tasks_blocked()
            alarm.ring()
        assert trio.current_time() == 0

    _play(main)
