"""Peers of a zone on real sockets: in one process, and as processes that are killed."""

import signal
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path

import pytest
import trio

from nodes.peer import NotAdmitted, Peer
from nodes.recipes import add_zone
from nodes.settings import node_config
from overlay.errors import LocalProtocolError, SecurityError
from overlay.host import Host, Surroundings
from overlay.protocol import PeerMet
from protocols.membership import (
    AttributesChanged,
    MemberFailed,
    MemberLeft,
    Membership,
)
from protocols.membership.messages import Gossip
from protocols.membership.records import Record, State
from protocols.topology import Topology
from tests.net.processes import overlay
from tests.net.zone import DEADLINE, Zone, crashing, narrator, until

NAMES = ("ada", "bob", "cyn", "dan", "eve")


def sees(peer: Peer, member: str, **attributes: int | str) -> bool:
    return member in peer.members and peer.members[member].attributes == attributes


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("r")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


def test_a_peer_without_seeds_is_in_its_zone_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with Zone(tmp_path, secure=False).peer("ada") as ada:
            with trio.fail_after(DEADLINE):
                await ada.joined()
            assert [*ada.members] == ["ada"]

    trio.run(main)


@pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])
def test_five_join_through_one_see_attributes_and_one_leaves(tmp_path: Path, secure: bool) -> None:
    zone = Zone(tmp_path, secure=secure)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(zone.peer("ada", attributes={"gpu": 4}))
            others = [
                await stack.enter_async_context(zone.peer(name, first)) for name in NAMES[1:4]
            ]
            last = zone.peer("eve", first)
            async with last:
                for peer in (first, *others, last):
                    await peer.joined(count=5)
                    assert sorted(peer.members) == sorted(NAMES)
                    await until(partial(sees, peer, "ada", gpu=4))
                await last.joined()
                others[0].attributes["rack"] = "7"
                await until(partial(sees, last, "bob", rack="7"))
                with first.watch_members() as events:
                    del others[0].attributes["rack"]
                    assert await anext(events) == AttributesChanged("west", "bob", ("rack",))
                assert not others[0].attributes
                for peer in (first, *others):  # so that nothing but the farewell is still to come
                    await until(partial(sees, peer, "bob"))
                topologies = [p.node.protocol(Topology, "west") for p in (first, *others, last)]
                await until(lambda: all(links.degree == 4 for links in topologies))
                heard = [peer.watch_members() for peer in (first, *others)]
            for stream in heard:
                assert await anext(stream) == MemberLeft("west", "eve")
            assert all("eve" not in peer.members for peer in (first, *others))

    trio.run(main)


def test_members_and_attributes_are_what_an_application_expects(tmp_path: Path) -> None:
    async def main() -> None:
        async with Zone(tmp_path, secure=False).peer("ada") as ada:
            await ada.joined(count=1)
            me = ada.members["ada"]
            assert (me.name, me.state, list(me.endpoints)) == ("ada", "alive", ada.node.endpoints)
            assert list(ada.members) == ["ada"]
            assert "bob" not in ada.members
            with pytest.raises(KeyError):
                ada.members["bob"]
            ada.attributes["gpu"] = 4
            ada.attributes.update(room="b 12", spare=True)
            assert dict(ada.attributes) == {"gpu": 4, "room": "b 12", "spare": True}
            assert ada.members["ada"].attributes["gpu"] == 4
            with pytest.raises(LocalProtocolError, match="at most 1024 are allowed"):
                ada.attributes["long"] = "x" * 1025
            with pytest.raises(LocalProtocolError, match="list is neither text nor a number"):
                ada.attributes["list"] = [1]  # type: ignore[assignment]
            with pytest.raises(LocalProtocolError, match="1 to 64 printable characters"):
                ada.attributes["\n"] = 1
            with pytest.raises(KeyError):
                del ada.attributes["none"]
            assert len(ada.attributes) == 3

    trio.run(main)


def test_a_crash_is_noticed_and_a_restart_is_a_higher_incarnation(tmp_path: Path) -> None:
    zone = Zone(tmp_path, secure=True)

    async def main() -> None:
        async with zone.peer("ada") as ada, zone.peer("bob", ada) as bob:
            async with crashing(zone.peer("cyn", bob)) as life:
                await until(lambda: len(ada.members) == len(bob.members) == 3)
                before = ada.members["cyn"].incarnation
                with ada.watch_members() as at_ada, bob.watch_members() as at_bob:
                    life.cancel()
                    with trio.fail_after(DEADLINE):
                        for events in (at_ada, at_bob):
                            async for event in events:
                                if isinstance(event, MemberFailed):
                                    break
                            assert event == MemberFailed("west", "cyn")
            async with zone.peer("cyn", ada) as back:
                await back.joined(count=3)
                await until(lambda: "cyn" in ada.members and "cyn" in bob.members)
                assert ada.members["cyn"].incarnation > before

    trio.run(main)


def test_the_seed_is_dead_and_a_peer_still_finds_back(tmp_path: Path) -> None:
    """It knows the dead seed only; but the others remember where it was, and knock."""
    zone = Zone(tmp_path, secure=False)

    async def main() -> None:
        seed = zone.peer("seed")
        async with crashing(seed) as life:
            async with zone.peer("ada", seed) as ada, zone.peer("bob", seed) as bob:
                async with crashing(zone.peer("cyn", seed)) as lives:
                    await until(lambda: len(ada.members) == len(bob.members) == 4)
                    place = ada.members["cyn"].endpoints[0]
                    lives.cancel()
                    life.cancel()
                    await until(lambda: len(ada.members) == len(bob.members) == 2)
                async with zone.peer("cyn", seed, bind=[place]) as back:
                    await until(lambda: len(ada.members) == len(bob.members) == 3)
                    await until(lambda: sorted(back.members) == ["ada", "bob", "cyn"])

    trio.run(main)


# -- names and rights -----------------------------------------------------------------------------


@pytest.mark.parametrize("through", ["the namesake itself", "somebody else"])
@pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])
def test_the_newer_of_two_with_one_name_stops(tmp_path: Path, secure: bool, through: str) -> None:
    zone = Zone(tmp_path, secure=secure)

    async def main() -> None:
        async with zone.peer("ada") as ada, zone.peer("bob", ada) as bob:
            await until(lambda: len(ada.members) == len(bob.members) == 2)
            incarnation = bob.members["ada"].incarnation
            contact = ada if "itself" in through else bob
            with (
                trio.fail_after(DEADLINE),
                pytest.raises(NotAdmitted, match=r"'ada'.*another name"),
            ):
                async with zone.peer("ada", contact, sets=["net.unacked_within=0.5"]) as newer:
                    await newer.run()
            assert list(ada.members) == list(bob.members)
            assert len(ada.members) == 2
            assert not ada.refused
            assert ada.members["ada"].incarnation >= incarnation

    trio.run(main)


def test_a_certificate_decides_the_zone(tmp_path: Path) -> None:
    zone = Zone(tmp_path, secure=True)
    assert zone.peer("ada", zones=("east",), zone="").zone == "east"
    assert zone.peer("bob", zones=("*",), zone="").zone == "default"
    with pytest.raises(SecurityError, match="'ada' may not join zone 'west'"):
        zone.peer("ada")

    async def main() -> None:
        async with zone.peer("cyn", zones=("east", "south"), zone=""):
            raise AssertionError("it started without a zone")

    with pytest.raises(SecurityError, match="'cyn' has no single zone"):
        trio.run(main)


def test_who_may_not_join_a_zone_is_no_member_of_it(tmp_path: Path) -> None:
    """Its own node was talked into zone west; the others look at its certificate."""
    zone = Zone(tmp_path, secure=True)

    async def main() -> None:
        async with zone.peer("ada") as ada, zone.peer("bob", ada) as bob:
            await until(lambda: len(ada.members) == len(bob.members) == 2)
            before = [(peer.members["ada"], peer.members["bob"]) for peer in (ada, bob)]
            intruder = zone.peer("eve", ada, zones=("east",), zone="east")

            def hacked(host: Host) -> None:
                host.surroundings = Surroundings(zone="west", here=host.surroundings.here)
                add_zone(host, "west", intruder.node.config)

            intruder._recipe = hacked
            intruder.node.zone = "west"
            with trio.fail_after(DEADLINE):
                with pytest.raises(NotAdmitted, match="does not allow zone 'west'"):
                    async with intruder:
                        await intruder.run()
            refused = ada.node.status().driver.refusals["zone-not-allowed"]
            assert refused > 0

            visitor = zone.peer("eve", ada, zone="east")
            visitor.node.zone = "west"
            visitor._recipe = add_west
            with suppress(NotAdmitted):  # its Join is refused, too
                async with visitor:
                    with visitor.node.events(PeerMet) as met:
                        await anext(met)
                    claim = Record("eve", 10**12, State.ALIVE, 1, 1, ("tcp://127.0.0.1:1",))
                    accusation = Record("bob", 2 * 10**12, State.DEAD, 1, 1)
                    membership = visitor.node.protocol(Membership, "west")
                    visitor.node.call(
                        lambda now: membership.effects.send("ada", Gossip((claim, accusation)))
                    )
                    await until(
                        lambda: ada.node.status().driver.refusals["zone-not-allowed"] > refused
                    )
            assert [(peer.members["ada"], peer.members["bob"]) for peer in (ada, bob)] == before
            assert len(ada.members) == len(bob.members) == 2

    def add_west(host: Host) -> None:
        add_zone(host, "west", node_config())

    trio.run(main)


# -- processes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])
def test_three_processes_one_killed_one_stopped(runtime: Path, secure: bool) -> None:
    words = () if secure else ("--insecure",)
    if secure:
        assert overlay(runtime, "keys", "init").returncode == 0
        for name in ("ada", "bob", "cyn"):
            assert overlay(runtime, "keys", "issue", name, "--zone", "west").returncode == 0
    with (
        narrator(runtime, "ada", *words) as ada,
        narrator(runtime, "bob", "--seed", ada.running.address, *words) as bob,
    ):
        with narrator(runtime, "cyn", "--seed", ada.running.address, *words) as cyn:
            first = ada.await_told("member-joined", "cyn")
            bob.await_told("member-joined", "cyn")
            cyn.await_told("member-joined", "bob")
            assert overlay(runtime, "set", "gpu=4", "--node", "ada").returncode == 0
            changed = cyn.await_told("attributes-changed", "ada")
            assert changed["values"] == {"gpu": 4}
            cyn.running.signal(signal.SIGKILL)
            for other in (ada, bob):
                other.await_told("member-failed", "cyn")
        with narrator(runtime, "cyn", "--seed", bob.running.address, *words) as back:
            again = ada.await_told("member-joined", "cyn", 2)
            assert again["incarnation"] > first["incarnation"]
            bob.await_told("member-joined", "cyn", 2)
            back.await_told("attributes-changed", "ada")
            back.running.signal(signal.SIGTERM)
            for other in (ada, bob):
                other.await_told("member-left", "cyn")
            assert back.running.process.wait(DEADLINE) == 0
        assert len(ada.told("member-failed", "cyn")) == 1
        assert not ada.told("member-failed", "bob")


def test_a_second_process_of_one_name_on_another_machine_says_so(
    runtime: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("e")  # a runtime folder of its own: it sees no local node
    with (
        narrator(runtime, "ada", "--insecure") as ada,
        narrator(runtime, "bob", "--insecure", "--seed", ada.running.address) as bob,
    ):
        bob.await_told("member-joined", "ada")
        words = ("--insecure", "--zone", "west", "--profile", "local", "--bind", "127.0.0.1:0")
        done = overlay(elsewhere, "peer", "--name", "ada", "--seed", ada.running.address, *words)
        assert done.returncode == 1
        complaint = done.stderr.splitlines()[-1]
        assert complaint.startswith("overlay: a node called 'ada' runs at tcp://127.0.0.1:")
        assert complaint.endswith("choose another name")
