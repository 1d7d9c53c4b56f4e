"""A peer that knows our peers only from docs/wire.md takes part in a zone of them."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

import tests.wire
from nodes.peer import Peer
from tests.net.zone import DEADLINE, OVERLAY, Zone, until

STRANGER = Path(tests.wire.__file__).parent / "stranger.py"
COUNT = 300
LONG = 40_000  # bytes: travels beside its head


@asynccontextmanager
async def a_stranger(contact: Peer, told: Path, *words: str) -> AsyncIterator[None]:
    """Run it; what it tells goes to that file."""
    command = [sys.executable, str(STRANGER), "eve", "west", "tcp://127.0.0.1:*"]
    command += [contact.node.endpoints[0], "--overlay", OVERLAY, *words]
    with told.open("w") as out:
        process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=out)
        try:
            yield
            assert process.stdin is not None
            await process.stdin.aclose()
            assert await process.wait() == 0
        finally:
            process.kill()


def said(told: Path, event: str) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in told.read_text().splitlines()]
    return [line for line in lines if line["event"] == event]


def test_a_stranger_joins_subscribes_and_publishes(tmp_path: Path) -> None:
    told = tmp_path / "told"

    async def main() -> None:
        zone = Zone(tmp_path, secure=False)
        words = ("--subscribe", "to/eve", "--publish", "from/eve", "--count", str(COUNT))
        with trio.fail_after(DEADLINE):
            await play(zone, words)

    async def play(zone: Zone, words: tuple[str, ...]) -> None:
        async with (
            zone.peer("ada") as ada,
            zone.peer("bob", ada) as bob,
            bob.subscribe("from/eve") as messages,
            ada.publisher("to/eve", reliability="ack") as out,
        ):
            await bob.joined(count=2)
            async with a_stranger(ada, told, *words):
                await ada.joined(count=3)
                await bob.joined(count=3)  # which heard of it from ada
                await out.wait_for_subscribers()
                for number in range(COUNT):
                    await out.publish({"number": number})
                await out.publish("x" * LONG)
                await out.flush()  # it acknowledged all of them
                got = []
                async for message in messages:
                    got.append((message.publisher, message.sequence, message.data))
                    if len(got) == COUNT:
                        break
                numbers = range(1, COUNT + 1)
                assert got == [("eve", at, {"number": at}) for at in numbers]
                await until(lambda: said(told, "acknowledged"))
            await until(lambda: "eve" not in ada.members and "eve" not in bob.members)
            for peer in (ada, bob):
                assert not peer.node.status().driver.refusals

    trio.run(main)
    heard = [(one["publisher"], one["sequence"], one["data"]) for one in said(told, "message")]
    sent = [("ada", at + 1, {"number": at}) for at in range(COUNT)]
    assert heard == [*sent, ("ada", COUNT + 1, "x" * LONG)]
