"""LinkLost: within milliseconds of a killed process, within three heartbeats of a frozen one."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest
import trio
import zmq

from tests.net.drivers import OVERLAY, Keys, running, speaker, until
from tests.net.processes import RunningPeer, peer

HEARTBEAT = 0.3  # s
STARVED = 10.0  # s that a busy machine may add


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("r")


def _play(runtime: Path, number: int) -> tuple[float, list[str]]:
    """Send the peer a signal; returns after how long its link was lost, and the reasons."""
    beat = ("--set", f"net.heartbeat={HEARTBEAT}")

    async def main(other: RunningPeer) -> tuple[float, list[str]]:
        ada = speaker("ada", heartbeat=HEARTBEAT)
        async with running(ada):
            ada.driver.meet(other.address)
            await until(lambda: ada.talk.ups == ["bob"], "the link")
            other.signal(number)
            began = time.monotonic()
            await until(lambda: ada.talk.losses, "LinkLost")
            return time.monotonic() - began, [loss.reason for loss in ada.talk.losses]

    with peer(
        runtime, "--name", "bob", "--insecure", "--overlay", OVERLAY, "--events", *beat
    ) as bob:
        return trio.run(main, bob)


def test_a_killed_process_is_noticed_at_once(runtime: Path) -> None:
    took, reasons = _play(runtime, signal.SIGKILL)
    assert reasons == ["disconnected"]
    assert took < STARVED  # the kernel tells at once


def test_a_frozen_process_is_noticed_by_its_missing_heartbeats(runtime: Path) -> None:
    took, reasons = _play(runtime, signal.SIGSTOP)
    assert reasons == ["disconnected"]
    assert HEARTBEAT < took < 3 * HEARTBEAT + STARVED


def test_an_attempt_that_breaks_before_its_hello_is_one_like_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ZeroMQ's thread may find out that the peer has CURVE and we have not before ours goes on."""
    send: Any = zmq.Socket.send
    refused: list[bytes] = []

    def refuse_twice(socket: zmq.Socket[bytes], data: bytes, *flags: int, **how: Any) -> Any:
        if socket.type == zmq.DEALER and len(refused) < 2:
            refused.append(data)
            raise zmq.Again
        return send(socket, data, *flags, **how)

    async def main() -> None:
        ada, bob = speaker("ada", connect_within=0.3), speaker("bob")
        async with running(ada, bob):
            monkeypatch.setattr(zmq.Socket, "send", refuse_twice)
            ada.knows(bob)
            ada.say("bob", 1)
            await until(lambda: bob.numbers == [1], "the third attempt")
            assert len(refused) == 2
            assert ada.count("attempts failed") >= 2

    trio.run(main)


def test_without_traffic_heartbeats_keep_a_link_open(tmp_path: Path) -> None:
    keys = Keys(tmp_path)

    async def main() -> None:
        ada, bob = (
            speaker(name, credentials=keys.of(name), heartbeat=HEARTBEAT) for name in ("ada", "bob")
        )
        async with running(ada, bob):
            ada.knows(bob)
            ada.say("bob", 1)
            await until(lambda: bob.numbers == [1], "the link")
            quiet_until = ada.driver.now() + 6 * HEARTBEAT
            await until(lambda: ada.driver.now() > quiet_until, "six heartbeats")
            assert ada.is_open("bob")
            assert ada.talk.losses == bob.talk.losses == []
            assert ada.link("bob").welcomed == 1

    trio.run(main)


def test_an_orderly_stop_is_a_goodbye_not_a_loss_of_what_was_said() -> None:
    async def main() -> None:
        ada, bob = speaker("ada"), speaker("bob")
        async with running(ada):
            async with running(bob):
                ada.knows(bob)
                bob.knows(ada)
                ada.say("bob", 1)
                bob.say("ada", 1)
                await until(lambda: ada.numbers == bob.numbers == [1], "both links")
                bob.say("ada", 2)
            await until(lambda: ada.talk.losses, "the goodbye")
            assert ada.numbers == [1, 2]
            assert "goodbye" in [loss.reason for loss in ada.talk.losses]

    trio.run(main)
