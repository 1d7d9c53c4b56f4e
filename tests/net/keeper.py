"""A node for tests of durability: it stores values as fast as the disk takes them.

    keeper.py STATE PEER ENDPOINT

It prints `kept NUMBER` for what is on disk and tells the peer the same; SIGTERM stops it.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Hashable
from pathlib import Path

import trio

from tests.net.drivers import Speaker, Talk, Word, speaker

AT_ONCE = 20  # writes that wait for the disk


class Keeper(Talk):
    """Stores the next value as soon as an earlier one is safe; one more when it stops."""

    name = "talk"
    told = ""
    last = 0

    def begin(self, peer: str, now: float) -> None:
        self.told = peer
        for _ in range(AT_ONCE):
            self._next()

    def on_stored(self, token: Hashable, now: float) -> None:
        assert isinstance(token, int)
        print("kept", token, flush=True)
        self.effects.send(self.told, Word(token))
        self._next()

    def on_stop(self, now: float) -> None:
        self.effects.store(b"stopped", b"in order", "stopped")
        self.effects.send(self.told, Word(-1))

    def _next(self) -> None:
        self.last += 1
        self.effects.store(str(self.last).encode(), b"value", self.last)


async def main(state: str, peer: str, endpoint: str) -> None:
    """Run until SIGTERM."""
    one: Speaker = speaker("keeper", state=Path(state), protocol=Keeper)
    assert isinstance(one.talk, Keeper)
    one.driver.learn(peer, [endpoint])
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            await nursery.start(one.driver.run)
            one.driver.call(one.talk.begin, peer)
            async for _ in signals:
                one.driver.stop()
                break


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2], sys.argv[3])
