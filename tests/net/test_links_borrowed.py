"""A connection carries both directions: who answers opens none of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from overlay.net.link import State
from tests.net.drivers import Keys, Speaker, running, speaker, until

both_worlds = pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])


def pair(folder: Path, secure: bool, **net: Any) -> tuple[Speaker, Speaker]:
    keys = Keys(folder)
    ada, bob = (
        speaker(name, credentials=keys.of(name) if secure else None, **net)
        for name in ("ada", "bob")
    )
    return ada, bob


@both_worlds
def test_an_answer_takes_the_connection_that_is_there(tmp_path: Path, secure: bool) -> None:
    async def main() -> None:
        ada, bob = pair(tmp_path, secure)
        async with running(ada, bob):
            ada.knows(bob)
            ada.say("bob", 1)
            await until(lambda: bob.numbers == [1], "the question")
            bob.say("ada", *range(100))
            await until(lambda: ada.numbers == list(range(100)), "the answers, in order")
            assert bob.link("ada").borrowed
            assert ada.driver.status().sessions == [], "bob opened no connection"
            assert (ada.talk.ups, bob.talk.ups) == (["bob"], ["ada"])

    trio.run(main)


def test_it_is_not_closed_while_the_other_side_uses_it(tmp_path: Path) -> None:
    async def main() -> None:
        ada, bob = pair(tmp_path, False, idle_close=1.0)
        async with running(ada, bob):
            ada.knows(bob)
            ada.say("bob", 1)
            await until(lambda: bob.numbers == [1], "the question")
            began = trio.current_time()
            while trio.current_time() - began < 2.5:
                bob.say("ada", len(ada.numbers))
                await trio.sleep(0.1)
            assert ada.count("links closed") == 0
            await until(lambda: ada.count("links closed") == 1, "the idle close")
            await until(lambda: not bob.driver.status().sessions, "its end at the other side")
            assert ada.talk.losses == bob.talk.losses == []
            bob.knows(ada)
            bob.say("ada", 1000)
            await until(lambda: ada.numbers[-1:] == [1000], "a connection of bob's own")
            assert not bob.link("ada").borrowed

    trio.run(main)


def test_what_waits_for_a_lost_connection_leaves_by_another(tmp_path: Path) -> None:
    async def main() -> None:
        ada, bob = pair(tmp_path, False)
        async with running(ada, bob):
            ada.knows(bob)
            bob.knows(ada)
            ada.say("bob", 1)
            await until(lambda: bob.numbers == [1], "the question")
            bob.say("ada", 1)
            await until(lambda: ada.numbers == [1], "the answer")
            ada.link("bob").close(None, 0)
            await until(lambda: bob.link("ada").state is not State.OPEN, "the loss")
            assert [loss.peer for loss in bob.talk.losses] == ["ada"], "told once"
            bob.say("ada", 2)
            await until(lambda: ada.numbers == [1, 2], "the next")

    trio.run(main)
