"""Moving between brokers on real sockets: subscribers that are away, and a publisher process."""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
import trio

from bench.mobility_real import ALGORITHMS, Pace, real_runs
from nodes.mobile import MobileSubscription
from nodes.peer import Peer
from nodes.scenarios.registry import find
from nodes.stage import play
from overlay.errors import ConfigError, LocalProtocolError
from protocols.mobility import Gap
from tests.net.processes import overlay, peer
from tests.net.test_content import QUICK, ring
from tests.net.test_discovery import Field, both_worlds, place
from tests.net.zone import DEADLINE, NO_DELEGATES, crashing, until

MOBILE = (
    *("mobility.beat=0.1", "mobility.lease=0.5", "mobility.overlap=0.3", "mobility.resend=0.1"),
    *QUICK,
)


def client(field: Field, name: str, *sets: str, state: Path | None = None) -> Peer:
    """A peer that knows no broker yet."""
    return Peer.join(**field.options(name, (), (*MOBILE, *sets)), state=state)


async def numbers(stream: MobileSubscription, count: int) -> list[int | str]:
    """The next ones; a gap is its reason."""
    found: list[int | str] = []
    with trio.fail_after(DEADLINE):
        while len(found) < count:
            one = await anext(stream)
            found.append(one.reason if isinstance(one, Gap) else int(one.item["x"]))  # type: ignore[arg-type]
    return found


@both_worlds
def test_what_is_published_while_a_subscriber_is_away_comes_elsewhere(
    tmp_path: Path, secure: bool
) -> None:
    field = Field(tmp_path, secure=secure)

    async def main() -> None:
        async with ring(field) as brokers, client(field, "ann") as ann, client(field, "sue") as sue:
            await ann.move_to(place(brokers[0]))
            ann.content.advertise("x >= 0", name="p")
            with sue.mobile.subscribe("x >= 0") as wanted:
                assert await sue.move_to(place(brokers[1])) == "b1"
                await until(lambda: len(brokers[0].content.machine.router.prt) == 1)
                ann.content.publish("p", {"x": 0})
                assert await numbers(wanted, 1) == [0]
                sue.mobile.leave()
                for x in range(1, 40):
                    ann.content.publish("p", {"x": x})
                await until(lambda: brokers[1].mobile.facts()["boxes"][0]["state"] == "away")
                assert await sue.move_to(place(brokers[2])) == "b2"
                for x in range(40, 60):
                    ann.content.publish("p", {"x": x})
                assert await numbers(wanted, 59) == list(range(1, 60))
                await until(lambda: not brokers[1].mobile.facts()["boxes"])
            await until(lambda: not brokers[0].content.machine.router.prt)
            with pytest.raises(LocalProtocolError, match="does not move"):
                brokers[0].mobile.subscribe("x > 1")

    trio.run(main)


def test_who_dies_is_kept_for_and_returns_with_its_state(tmp_path: Path) -> None:
    field = Field(tmp_path, secure=False)
    state = tmp_path / "sue"

    async def main() -> None:
        async with ring(field) as brokers, client(field, "ann") as ann:
            await ann.move_to(place(brokers[0]))
            ann.content.advertise("x >= 0", name="p")
            first = client(field, "sue", state=state)
            async with crashing(first) as death:
                wanted = first.mobile.subscribe("x >= 0", name="all")
                await first.move_to(place(brokers[1]))
                await until(lambda: len(brokers[0].content.machine.router.prt) == 1)
                ann.content.publish("p", {"x": 0})
                assert await numbers(wanted, 1) == [0]
                await until(lambda: not brokers[1].mobile.facts()["boxes"][0]["kept"])
                death.cancel()
            for x in range(1, 20):
                ann.content.publish("p", {"x": x})
            async with client(field, "sue", state=state) as sue:
                with sue.mobile.subscribe("x >= 0", name="all") as wanted:
                    await sue.move_to(place(brokers[2]))
                    assert await numbers(wanted, 19) == list(range(1, 20))

    trio.run(main)


def test_a_bound_makes_a_gap(tmp_path: Path) -> None:
    field = Field(tmp_path, secure=False)

    async def main() -> None:
        async with (
            field.broker("b0", *MOBILE, "mobility.max_kept=5") as broker,
            client(field, "sue") as sue,
        ):
            with sue.mobile.subscribe("x >= 0") as wanted:
                await sue.move_to(place(broker))
                sue.mobile.leave()
                await until(lambda: broker.mobile.facts()["boxes"][0]["state"] == "away")
                broker.content.advertise("x >= 0", name="p")
                for x in range(12):
                    broker.content.publish("p", {"x": x})
                await sue.move_to(place(broker))
                found = await numbers(wanted, 6)
                assert found == ["too many were kept", *range(7, 12)]
        with pytest.raises(ConfigError, match="--state FOLDER"):
            async with field.broker("b1", "mobility.storage=sqlite"):
                pass

    trio.run(main)


def test_the_nearest_broker_is_followed(tmp_path: Path) -> None:
    """The nearest one leaves: discovery finds the other, and the client goes there by itself."""
    field = Field(tmp_path, secure=False)
    sets = ("mobility.follow_nearest=true", "mobility.stay=0", "discovery.every=0.3")

    async def main() -> None:
        async with field.bdn() as bdn:
            told = (*sets, f"discovery.bdns=[{place(bdn)!r}]")
            async with (
                field.broker("b0", *MOBILE, bdns=(bdn,)) as b0,
                field.broker("b1", *MOBILE, bdns=(bdn,), links=(b0,)) as b1,
                client(field, "sue", *told) as sue,
            ):
                await until(lambda: sue.content.broker is not None)
                first = b0 if sue.content.broker == "b0" else b1
                other = b1 if first is b0 else b0
                assert sue.mobile.followed == 1
                first.stop()
                await until(lambda: sue.content.broker == other.name)
                assert sue.mobile.followed == 2

    trio.run(main)


def test_commands_show_and_move(tmp_path_factory: pytest.TempPathFactory) -> None:
    runtime = tmp_path_factory.mktemp("r")
    words = ("--insecure", "--zone", "west", "--set", NO_DELEGATES)
    with ExitStack() as stack:
        b0 = stack.enter_context(peer(runtime, "--name", "b0", *words, kind="broker"))
        stack.enter_context(peer(runtime, "--name", "sue", "--seed", b0.address, *words))
        sue = ("--node", "sue")
        moved = overlay(runtime, "mobile", "move", b0.address.removeprefix("tcp://"), *sue)
        assert (moved.returncode, moved.stdout) == (0, "sue is at b0: 0 mobile subscriptions\n")
        shown = overlay(runtime, "mobile", "show", "--json")
        (told,) = [one for one in json.loads(shown.stdout)["nodes"] if one["node"] == "sue"]
        assert (told["role"], told["broker"], told["moving"]) == ("client", "b0", False)
        wrong = overlay(runtime, "mobile", "move", "nobody", *sue)
        assert wrong.returncode != 0
        assert "nobody does not answer" in wrong.stderr
        assert "Traceback" not in wrong.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mobility-away-durable", "mobility-away-crashes"])
def test_scenarios_over_sockets(name: str) -> None:
    entry = find(name)
    trio.run(partial(play, entry.script, size=entry.nodes, seed=3))


@pytest.mark.parametrize(
    "algorithms",
    [("delayed",), pytest.param(ALGORITHMS, marks=pytest.mark.slow)],
    ids=["delayed", "all"],
)
def test_a_publisher_process_moves_around_five_brokers_under_load(
    algorithms: tuple[str, ...], tmp_path: Path
) -> None:
    for run in trio.run(real_runs, algorithms, Pace(300.0, 0.2, 0.1), tmp_path):
        assert run.is_clean, run
        assert run.moves == 5
