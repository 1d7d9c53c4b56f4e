"""No wake-up is lost: ZMQ_FD tells only of changes, and any tick may take notice of one.

The regular look at all links would heal a lost wake-up within a second; here it hardly ever comes.
"""

from __future__ import annotations

import select
from collections.abc import Hashable

import pytest
import trio

from overlay.net import driver as driver_module
from overlay.net.driver import Driver
from tests.net.drivers import WITHIN, Speaker, Word, running, speaker, until

ROUND_TRIPS = 1000


@pytest.fixture(autouse=True)
def _seldom_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_module, "SWEEP_EVERY", 10 * WITHIN)
    for sweeps in ("links.Links", "introduction.Introductions"):  # links here open at once
        monkeypatch.setattr(f"overlay.net.{sweeps}.sweep", lambda self, now: now + 10 * WITHIN)


async def _message_during_a_timers_tick(ada: Speaker, bob: Speaker) -> None:
    """Let a message reach bob's socket while the tick of his timer runs, and sends over it.

    So ZeroMQ takes notice of it then, and nobody else is told.
    """
    ada.knows(bob)
    ada.say("bob", 0)
    await until(lambda: bob.numbers == [0], "an open link")
    fired = trio.Event()

    def on_fire(key: Hashable, now: float) -> None:
        ada.say("bob", 1)
        there = select.poll()
        there.register(int(bob.driver._router.FD), select.POLLIN)
        assert there.poll(1000 * WITHIN)
        bob.talk.effects.send("ada", Word(2))  # over the connection that she opened
        fired.set()

    bob.talk.on_fire = on_fire
    bob.driver.call(lambda now: bob.talk.effects.set_timer("soon", now + 0.05))
    await fired.wait()


def test_what_a_timers_tick_took_notice_of_is_read() -> None:
    async def main() -> None:
        ada, bob = speaker("ada"), speaker("bob")
        async with running(ada, bob):
            await _message_during_a_timers_tick(ada, bob)
            await until(lambda: bob.numbers == [0, 1], "the message", within=10)

    trio.run(main)


def test_this_check_fails_where_ticks_do_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    whole_tick = Driver._tick

    def forgetful(self: Driver) -> bool:
        whole_tick(self)
        return False

    async def main() -> None:
        ada, bob = speaker("ada"), speaker("bob")
        async with running(ada, bob):
            await until(lambda: True, "the start")
            monkeypatch.setattr(Driver, "_tick", forgetful)
            await _message_during_a_timers_tick(ada, bob)
            with pytest.raises(AssertionError, match="in vain for the message"):
                await until(lambda: bob.numbers == [0, 1], "the message", within=0.5)
            monkeypatch.undo()

    trio.run(main)


@pytest.mark.parametrize("pause", [0.0, 100e-6, 300e-6])
def test_thousands_of_round_trips_with_a_timer_at_each(pause: float) -> None:
    def bounce(one: Speaker, other: str) -> None:
        """Answer from a timer, which so fires just when the next message may arrive."""

        def on_fire(key: Hashable, now: float) -> None:
            if key != "noise":
                one.talk.effects.send(other, Word(0))
                one.talk.effects.set_timer("noise", now + pause)

        def on_word(src: str, msg: Word, now: float) -> None:
            one.talk.heard.append((src, msg.number, b""))
            one.talk.effects.set_timer("answer", now + pause)

        one.talk.on_fire = on_fire
        one.driver.host._handlers[""][Word] = on_word

    async def main() -> None:
        ada, bob = speaker("ada"), speaker("bob")
        async with running(ada, bob):
            ada.knows(bob)
            bob.knows(ada)
            bounce(ada, "bob")
            bounce(bob, "ada")
            ada.say("bob", 0)
            await until(lambda: len(ada.numbers) >= ROUND_TRIPS, f"{ROUND_TRIPS} round trips")

    trio.run(main)
