"""The demo's hash table: keys are stored, a whole zone is killed, and all of them are read back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import trio

from nodes.control import Talk, ask
from overlay.errors import OverlayError

T = TypeVar("T")

KEYS = 10_000
BATCH = 500  # keys in one line of the conversation
PATIENCE = 60.0  # s for whatever must happen

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[int | None]).decode


class TableReport(msgspec.Struct):
    """What was stored, what was killed, and what was read."""

    keys: int
    stored: float  # s that it took
    zone: str  # the one that was killed
    read: int  # keys with their value, after that
    again: float  # s from the kill until all could be read

    def told(self) -> str:
        """The outcome in a line."""
        return f"{self.read:,} of {self.keys:,} keys are read back {self.again:.1f} s after that"

    def faults(self) -> list[str]:
        """What must not be."""
        return [] if self.read == self.keys else [f"the table: {self.told()}"]


class Table:
    """Uses the table through the control socket of one peer, and looks at all of them."""

    def __init__(self, user: Path, servers: Sequence[Path]) -> None:
        self._user = user
        self._servers = servers

    async def play(self, zone: str, kill: Callable[[], None]) -> TableReport:
        """Store all keys, kill, and read until all are there, or patience ends."""
        await self._until_any_zone_may_go()
        began = time.monotonic()
        await self._do(partial(_store, self._user))
        stored = time.monotonic() - began
        await self._until_any_zone_may_go()
        killed = time.monotonic()
        kill()
        found = dict.fromkeys(_batches(), 0)
        while sum(found.values()) < KEYS and time.monotonic() - killed < PATIENCE:
            for numbers in [one for one in found if found[one] < BATCH]:
                try:
                    found[numbers] = await self._do(partial(_read, self._user, numbers))
                except OverlayError:  # refused while other members take over: ask again
                    await trio.sleep(0.1)
        read = sum(found.values())
        return TableReport(KEYS, stored, zone, read, time.monotonic() - killed)

    async def _until_any_zone_may_go(self) -> None:
        """Each key has its copies in three zones, and no shard is on its way to another server."""
        with trio.fail_after(PATIENCE):
            while True:
                told = [await self._do(partial(ask, one, "dht-stats")) for one in self._servers]
                settled = all(
                    one["survives"]["zone_keeps_serving"] and not one["moving"] for one in told
                )
                if settled and len({one["table"] for one in told}) == 1:
                    return
                await trio.sleep(0.1)

    @staticmethod
    async def _do(work: Callable[[], T]) -> T:
        return await trio.to_thread.run_sync(work)


def _batches() -> list[range]:
    return [range(first, first + BATCH) for first in range(0, KEYS, BATCH)]


def _name(number: int) -> str:
    return f"demo/{number}"


def _store(user: Path) -> None:
    talk = Talk(user, "dht", timeout=PATIENCE)
    try:
        for numbers in _batches():
            values = {_name(number): number for number in numbers}
            talk.send(msgspec.json.encode({"do": "put_many", "key": b"", "value": _encode(values)}))
            talk.next()
    finally:
        talk.close()


def _read(user: Path, numbers: range) -> int:
    """How many of these have their value."""
    talk = Talk(user, "dht", timeout=PATIENCE)
    try:
        keys = [_name(number) for number in numbers]
        talk.send(msgspec.json.encode({"do": "get_many", "key": b"", "value": _encode(keys)}))
        values = _decode(msgspec.convert(talk.next()["value"], bytes))
        return sum(value == number for value, number in zip(values, numbers, strict=True))
    finally:
        talk.close()
