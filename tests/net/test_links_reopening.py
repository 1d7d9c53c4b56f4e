"""Links open on demand, close when idle, and open again: nothing that waited is lost."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import trio

from overlay.net.link import Link, State
from tests.net.drivers import Keys, Speaker, running, speaker, until

both_worlds = pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


def _free_port() -> int:
    """One that was free a moment ago; a restarted peer binds it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_nothing_is_opened_before_there_is_something_to_say() -> None:
    async def main() -> None:
        ada, bob = speaker("ada"), speaker("bob")
        async with running(ada, bob):
            ada.knows(bob)
            assert ada.driver.status().links == []
            ada.say("bob", 1)
            await until(lambda: bob.numbers == [1], "the first message")
            assert [link.peer for link in ada.driver.status().links] == ["bob"]
            assert ada.talk.ups == ["bob"]
            assert bob.driver.status().links == []  # it had nothing to say

    trio.run(main)


@both_worlds
def test_an_idle_link_is_closed_and_the_next_message_opens_it(keys: Keys, secure: bool) -> None:
    async def main() -> None:
        ada, bob = (
            speaker(name, credentials=keys.of(name) if secure else None, idle_close=1.0)
            for name in ("ada", "bob")
        )
        async with running(ada, bob):
            ada.knows(bob)
            for number in range(2):
                ada.say("bob", number)
                await until(lambda: not ada.driver.links.by_name, "the idle close")
                await until(lambda: not bob.driver.status().sessions, "its end at the other side")
            assert bob.numbers == [0, 1]
            assert ada.count("links closed") == 2
            assert ada.talk.ups == ["bob"] * 2
            assert ada.talk.losses == bob.talk.losses == []  # nobody was lost

    trio.run(main)


def test_a_second_link_to_the_same_peer_is_given_up_without_alarm() -> None:
    async def main() -> None:
        ada, bob = speaker("ada"), speaker("bob")
        async with running(ada, bob):
            ada.knows(bob)
            ada.say("bob", 1)
            await until(lambda: bob.numbers == [1], "a link")
            ada.driver.meet(bob.driver.endpoints[0])
            await until(lambda: not ada.driver.links.anonymous, "the answer")
            await until(lambda: len(bob.driver.status().sessions) == 1, "one session again")
            assert bob.talk.losses == []
            ada.say("bob", 2)
            await until(lambda: bob.numbers == [1, 2], "the first link, still open")

    trio.run(main)


@both_worlds
@pytest.mark.parametrize("moves", [False, True], ids=["same address", "another address"])
def test_what_waits_reaches_a_restarted_peer(keys: Keys, secure: bool, moves: bool) -> None:
    certificates = {name: keys.of(name) if secure else None for name in ("ada", "bob")}
    port = _free_port()

    def make(name: str, port: int = 0) -> Speaker:
        bind = (f"tcp://127.0.0.1:{port}",)
        return speaker(name, credentials=certificates[name], bind=bind, retry_longest=0.2)

    async def main() -> None:
        ada = make("ada")
        async with running(ada):
            bob = make("bob", port)
            async with running(bob):
                ada.knows(bob)
                ada.say("bob", 1)
                await until(lambda: bob.numbers == [1], "the first life")
            await until(lambda: not ada.is_open("bob"), "the loss")
            ada.say("bob", 2, 3)
            await until(lambda: ada.link("bob").failures >= 3, "attempts in vain")
            ada.say("bob", 4)
            again = make("bob", 0 if moves else port)
            async with running(again):
                if moves:
                    again.knows(ada)
                    again.say("ada", 9)  # its Hello tells where it lives now
                await until(lambda: again.numbers == [2, 3, 4], "what waited, in order")
            assert [loss.peer for loss in ada.talk.losses][:1] == ["bob"]
            assert ada.count("messages dropped") == ada.count("frames undelivered") == 0

    trio.run(main)


def test_a_broken_link_that_nobody_needs_stays_closed_and_opens_at_once_when_needed() -> None:
    async def main() -> None:
        port = _free_port()
        ada = speaker("ada")
        async with running(ada):
            bob = speaker("bob", bind=(f"tcp://127.0.0.1:{port}",))
            async with running(bob):
                ada.knows(bob)
                ada.say("bob", 1)
                await until(lambda: bob.numbers == [1], "the first life")
            await until(lambda: not ada.is_open("bob"), "the loss")
            attempts = ada.count("attempts failed")
            again = speaker("bob", bind=(f"tcp://127.0.0.1:{port}",))
            async with running(again):
                assert ada.count("attempts failed") == attempts
                # The sweep is a second away: the message itself must have the link looked at.
                ada.driver._sweep_at = ada.driver.now() + 30
                ada.say("bob", 2)
                await until(lambda: again.numbers == [2], "the message", within=20)

    trio.run(main)


def test_attempts_follow_each_other_with_pauses_that_double(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    fail = Link.fail

    def record(link: Link, reason: str, now: float) -> None:
        fail(link, reason, now)
        pauses.append(link.deadline - now)

    monkeypatch.setattr(Link, "fail", record)

    async def main() -> None:
        ada = speaker("ada", retry_first=0.02, retry_longest=0.3)
        async with running(ada):
            began = ada.driver.now()
            ada.driver.learn("bob", [f"tcp://127.0.0.1:{_free_port()}"])
            ada.say("bob", 1)
            await until(lambda: len(pauses) >= 8, "eight attempts")
            took = ada.driver.now() - began
            assert ada.count("attempts failed") == len(pauses)
            assert took >= sum(pauses[:7])
            for number, pause in enumerate(pauses):
                longest = min(0.3, 0.02 * 2**number)
                assert longest / 2 <= pause <= longest
            assert len({pause / min(0.3, 0.02 * 2**n) for n, pause in enumerate(pauses)}) > 1
            assert [loss.peer for loss in ada.talk.losses] == ["bob"]  # told once, not each time

    trio.run(main)


def test_attempts_come_when_they_are_due_not_with_the_next_sweep() -> None:
    async def main() -> None:
        ada = speaker("ada", retry_first=0.01, retry_longest=0.01)
        async with running(ada):
            ada.driver.learn("bob", [f"tcp://127.0.0.1:{_free_port()}"])
            ada.say("bob", 1)
            began = trio.current_time()
            await until(lambda: ada.count("attempts failed") >= 40, "forty attempts")
            assert trio.current_time() - began < 20  # with the sweep alone it is 40 s

    trio.run(main)


def test_what_nobody_takes_is_given_up_and_counted() -> None:
    async def main() -> None:
        ada = speaker("ada", give_up=0.5)
        async with running(ada):
            ada.driver.learn("bob", [f"tcp://127.0.0.1:{_free_port()}"])
            ada.say("bob", *range(10))
            await until(lambda: ada.count("frames undelivered") == 1, "the end of patience")
            await until(lambda: not ada.driver.links.by_name, "the link to be forgotten")
            bob = speaker("bob")
            async with running(bob):
                ada.knows(bob)
                ada.say("bob", 11)
                await until(lambda: bob.numbers == [11], "a new beginning")

    trio.run(main)


def test_of_several_addresses_one_is_enough() -> None:
    async def main() -> None:
        ada, bob = speaker("ada"), speaker("bob")
        async with running(ada, bob):
            dead = [f"tcp://127.0.0.1:{_free_port()}", "ipc:///nonexistent/socket"]
            ada.driver.learn("bob", [*dead, *bob.driver.endpoints])
            ada.say("bob", 1)
            await until(lambda: bob.numbers == [1], "the third address")
            assert ada.link("bob").state is State.OPEN

    trio.run(main)
