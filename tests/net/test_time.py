"""Overlay time on real sockets: peers with wrong clocks, NTP servers, and `overlay time`."""

from __future__ import annotations

import json
import math
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from nodes.peer import Peer
from nodes.supervisor import Supervisor
from overlay.net.config import NetSettings
from overlay.net.ntp import NtpAnswer, NtpClient
from protocols.timesync import TimeSync
from protocols.topics.subscription import Replay
from tests.net.ntp_responder import ntp_servers
from tests.net.processes import overlay, peer
from tests.net.zone import NO_DELEGATES, Zone, until

SHIFTS = {"ada": 0.0, "bob": 5.0, "cyn": -3.0, "dan": 0.25}
CLOSE = 0.001  # s
ZONES_CLOSE = 0.01  # s: each zone measures by itself, here with processes that wait for a core


def shifted(seconds: float, *more: str) -> list[str]:
    return [NO_DELEGATES, f"net.clock_offset={seconds}", *more]


def in_machine_time(one: Peer) -> float:
    """By how much a peer's overlay time is ahead of this machine's clock: exactly known here."""
    return one.time.offset + one.node.config.section(NetSettings).clock_offset


def agree(peers: list[Peer], within: float = CLOSE) -> bool:
    if not all(one.time.synchronised for one in peers) or len({o.time.root for o in peers}) > 1:
        return False
    times = [in_machine_time(one) for one in peers]
    return max(times) - min(times) <= within


@pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])
def test_peers_with_wrong_clocks_agree_within_a_millisecond(tmp_path: Path, secure: bool) -> None:
    zone = Zone(tmp_path, secure=secure)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            peers: list[Peer] = []
            for name, shift in SHIFTS.items():
                one = zone.peer(name, *peers[:1], sets=shifted(shift))
                peers.append(await stack.enter_async_context(one))
            await until(lambda: agree(peers))
            for one in peers:
                assert one.time.error < 0.5
                assert one.time.stratum in (1, 2)
                before = one.time.now()
                assert one.time.now() >= before

    trio.run(main)


def test_messages_are_stamped_with_overlay_time(tmp_path: Path) -> None:
    zone = Zone(tmp_path, secure=False)

    async def main() -> None:
        async with (
            zone.peer("ada", sets=shifted(0.0)) as ada,
            zone.peer("bob", ada, sets=shifted(500.0)) as bob,
        ):
            await until(lambda: agree([ada, bob]))
            first, second = (ada, bob) if ada.time.root == "bob" else (bob, ada)
            async with (
                second.subscribe("time/**", replay=Replay.all()) as news,
                first.publisher("time/1", keep=10) as out,
            ):
                await out.publish(b"now")
                with trio.fail_after(30):
                    message = await anext(aiter(news))
                # Of two clocks 500 s apart one was moved; the stamp follows both.
                assert abs(message.sent_at - second.time.now()) < 30

    trio.run(main)


def test_zones_agree_by_themselves_and_a_supervisor_with_them() -> None:
    options: dict[str, Any] = {"insecure": True, "bind": ["127.0.0.1:0"], "profile": "local"}
    options["control"] = False

    def shift(seconds: float) -> list[str]:
        return [f"net.clock_offset={seconds}"]

    async def main() -> None:
        async with Peer.join(name="ada", zone="east", sets=shift(0.0), **options) as ada:
            seeds = ada.node.endpoints
            west: dict[str, Any] = {"zone": "west", "seeds": seeds}
            async with (
                Peer.join(name="bob", sets=shift(0.3), **west, **options) as bob,
                Peer.join(name="cyn", sets=shift(-0.2), **west, **options) as cyn,
                Supervisor.join(name="sue", seeds=seeds, sets=shift(0.1), **options) as sue,
            ):
                # The zone with two members leads, once both are there.
                peers, leading = [ada, bob, cyn], ("bob", "cyn")
                await until(lambda: ada.time.root in leading and agree(peers, ZONES_CLOSE))
                await until(lambda: abs(sue.time.offset + 0.1 - in_machine_time(ada)) < ZONES_CLOSE)

    trio.run(main)


def test_a_replay_of_the_last_seconds_counts_in_overlay_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All clocks are far behind this machine's, by which nothing was sent for minutes."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    zone = Zone(tmp_path / "zone", secure=False)

    async def main() -> None:
        async with (
            zone.peer("ada", sets=shifted(-500.0), control=True) as ada,
            zone.peer("bob", ada, sets=shifted(-500.0), control=True) as bob,
        ):
            await until(lambda: agree([ada, bob]))
            async with ada.publisher("time/1", keep=10) as out:
                await out.publish("early")
                wanted = ("sub", "time/*", "--replay", "30s", "--count", "1", "--within", "20")
                done = await trio.to_thread.run_sync(
                    lambda: overlay(tmp_path, *wanted, "--node", "bob")
                )
                assert done.stdout == "time/1 early\n", done.stderr

    trio.run(main)


def test_ntp_servers_give_the_time_and_a_false_one_is_outvoted(tmp_path: Path) -> None:
    zone = Zone(tmp_path, secure=False)

    async def main() -> None:
        async with ntp_servers(3.0, 3.0, 50.0) as servers:
            servers[0].guess = True
            named = json.dumps([server.address for server in servers])
            async with zone.peer("ada", sets=shifted(-1.0, f"time.ntp={named}")) as ada:
                await until(lambda: ada.time.root in (servers[0].address, servers[1].address))
                await until(lambda: abs(in_machine_time(ada) - 3.0) < CLOSE)
                assert ada.time.stratum == 2
                assert ada.time.offset == pytest.approx(4.0, abs=0.01)
                states = {one["source"]: one["state"] for one in ada.time.facts()["sources"]}
                assert states[servers[2].address] == "falseticker"
                assert states[servers[0].address] == "chosen"
                assert ada.node.protocol(TimeSync).counts.falsetickers >= 1

    trio.run(main)


def test_time_is_slewed_back_and_never_jumps(tmp_path: Path) -> None:
    zone = Zone(tmp_path, secure=False)

    async def main() -> None:
        async with ntp_servers(-2.0) as (server,):
            sets = shifted(0.0, f'time.ntp=["{server.address}"]')
            async with zone.peer("ada", sets=sets) as ada:
                told = [ada.time.now()]

                def arrived() -> bool:
                    told.append(ada.time.now())
                    return abs(in_machine_time(ada) + 2.0) < CLOSE

                await until(arrived)
                assert told == sorted(told)
                assert len(told) > 10

    trio.run(main)


def test_the_client_of_ntp_counts_what_it_refuses_and_goes_on() -> None:
    answers: list[NtpAnswer] = []
    missed: list[str] = []

    async def main() -> None:
        async with ntp_servers(10.0, 0.0) as (good, bad):
            good.guess = True
            bad.kiss = b"RATE"
            nobody = "127.0.0.1:9"
            client = NtpClient(
                (good.address, bad.address, nobody),
                trio.current_time,
                lambda _server, answer: answers.append(answer),
                missed.append,
                burst_every=0.01,
            )
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.run)
                await until(lambda: len(answers) >= 5 and nobody in missed)
                nursery.cancel_scope.cancel()
            assert bad.asked == 1  # it asked for less
            assert client.counts["ntp kisses of death"] == 1
            assert client.counts["ntp-not-asked"] >= 5
            assert client.counts["ntp failures"] >= 1

    trio.run(main)
    for answer in answers:
        assert answer.asked <= answer.heard
        assert math.isclose(answer.sent, answer.received, abs_tol=1.0)
        assert answer.stratum == 1


def test_the_command_shows_offset_and_error_of_each_source(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    runtime = tmp_path_factory.mktemp("r")
    start = ("--insecure", "--zone", "west", "--set", NO_DELEGATES)
    with (
        peer(runtime, "--name", "ada", *start) as ada,
        peer(runtime, "--name", "bob", "--seed", ada.address, *start,
             "--set", "net.clock_offset=0.4"),
    ):  # fmt: skip

        def asked() -> dict[str, dict[str, Any]]:
            done = overlay(runtime, "time", "--json")
            assert done.returncode == 0, done.stderr
            return {one["node"]: one for one in json.loads(done.stdout)["nodes"]}

        async def both_agree() -> None:
            await until(lambda: len({one["root"] for one in asked().values()}) == 1)

        trio.run(both_agree)
        facts = asked()
        follower = next(name for name, one in facts.items() if one["root"] != name)
        (source,) = facts[follower]["sources"]
        assert source["state"] == "chosen"
        assert abs(abs(source["offset"]) - 0.4) < 0.1
        assert source["error"] > 0
        shown = overlay(runtime, "time", "--node", follower)
        assert "chosen" in shown.stdout
        assert "±" in shown.stdout
        assert "ppm" in shown.stdout
        refused = overlay(runtime, "time", "--node", "nobody")
        assert refused.returncode == 1
        assert "no node 'nobody' runs" in refused.stderr
