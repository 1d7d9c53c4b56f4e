"""Peers that were told no address find each other over real sockets, on loopback."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import trio
import trio.lowlevel

from nodes.peer import Peer
from nodes.supervisor import Supervisor
from overlay.protocol import Group
from overlay.security.authority import Authority
from overlay.security.datagram import DatagramSigner
from overlay.security.plain import PlainSigner
from overlay.security.rights import Rights
from overlay.wire.datagrams import write_datagram
from protocols.beacon import Announcement, Beacon, BeaconSettings, PeerFound, Presence, Query
from tests.net.beacons import own_group, setting_words
from tests.net.processes import peer as peer_process
from tests.net.zone import DEADLINE, Narrator, Zone, until

both = pytest.mark.parametrize("secure", [True, False], ids=["secure", "insecure"])


def beacon(peer: Peer) -> Beacon:
    return peer.node.protocol(Beacon)


@both
def test_peers_find_each_other_with_no_address(tmp_path: Path, secure: bool) -> None:
    zone = Zone(tmp_path, secure=secure)
    sets = own_group()

    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with zone.peer("ada", sets=sets) as ada, zone.peer("bob", sets=sets) as bob:
                await ada.joined(count=2)
                await bob.joined(count=2)
                async with zone.peer("cid", sets=sets) as cid:
                    for one in (ada, bob, cid):
                        await one.joined(count=3)
                    assert beacon(cid).counts.queries == 1

    trio.run(main)


def test_many_that_start_at_once_are_one_zone(tmp_path: Path) -> None:
    zone = Zone(tmp_path, secure=True)
    sets = own_group()
    peers = [zone.peer(f"n{index}", sets=sets) for index in range(12)]

    async def live(peer: Peer, joined: trio.Event) -> None:
        async with peer:
            await peer.joined(count=len(peers))
            joined.set()
            await trio.sleep_forever()

    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with trio.open_nursery() as nursery:
                all_joined = [trio.Event() for _ in peers]
                for peer, joined in zip(peers, all_joined, strict=True):
                    nursery.start_soon(live, peer, joined)
                for joined in all_joined:
                    await joined.wait()
                nursery.cancel_scope.cancel()

    trio.run(main)


def test_two_overlays_do_not_mix(tmp_path: Path) -> None:
    sets = own_group()
    zones = [Zone(tmp_path / "one", secure=True), Zone(tmp_path / "other", secure=True)]
    plain = Zone(tmp_path / "plain", secure=False)

    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with (
                zones[0].peer("ada", sets=sets) as ada,
                zones[0].peer("bob", sets=sets) as bob,
                zones[1].peer("cid", sets=sets) as cid,  # an authority of the same name
                zones[1].peer("dan", sets=sets) as dan,
                plain.peer("eva", sets=sets) as eva,
            ):
                for one in (ada, bob, cid, dan):
                    await one.joined(count=2)
                assert {*ada.members} == {"ada", "bob"}
                assert {*dan.members} == {"cid", "dan"}
                assert {*eva.members} == {"eva"}
                await until(lambda: ada.node.driver.refusals.counts["certificate-untrusted"])
                await until(lambda: ada.node.driver.refusals.counts["datagram-wrong-overlay"])
                await until(lambda: eva.node.driver.refusals.counts["datagram-wrong-overlay"])
                assert beacon(ada).counts.found <= 1

    trio.run(main)


def test_a_supervisor_and_zones_find_each_other() -> None:
    sets = [*own_group(), "zones.settle=0.2"]

    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with (
                Peer.join(name="ada", zone="east", insecure=True, control=False, sets=sets) as ada,
                Peer.join(name="bob", zone="west", insecure=True, control=False, sets=sets),
                Supervisor.join(name="sue", insecure=True, control=False, sets=sets) as sue,
            ):
                await until(lambda: [zone.name for zone in sue.zones] == ["east", "west"])
                await until(lambda: [zone.name for zone in ada.zones] == ["east", "west"])

    trio.run(main)


def test_processes_find_each_other(tmp_path: Path) -> None:
    words = ["--insecure", "--zone", "west", "--events", *setting_words(own_group())]
    with peer_process(tmp_path, "--name", "ada", *words) as ada:
        one = Narrator(ada)
        with peer_process(tmp_path, "--name", "bob", *words) as bob:
            other = Narrator(bob)
            one.await_told("member-joined", "bob")
            other.await_told("member-joined", "ada")
            bob.process.kill()
            other.end()
        ada.process.kill()
        one.end()


def test_groups_are_joined_and_left_at_run_time(tmp_path: Path) -> None:
    zone = Zone(tmp_path, secure=False)
    sets = own_group()

    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with zone.peer("ada", sets=sets) as ada:
                ada.node.driver.remove_instance(beacon(ada))
                async with zone.peer("bob", sets=sets) as bob:
                    await until(lambda: beacon(bob).counts.queries >= 3)
                    assert {*ada.members} == {"ada"}
                    assert ada.node.driver.datagrams._groups == {}

    trio.run(main)


def test_forged_replayed_oversized_and_made_up_beacons_change_nothing(tmp_path: Path) -> None:
    zone = Zone(tmp_path, secure=True)
    sets = own_group()
    authority = Authority.load(tmp_path)
    mallory = authority.issue("mallory", Rights(zones=("*",)), 1)
    elsewhere = Authority.create(tmp_path / "elsewhere", "testing").issue("bob", Rights(), 1)

    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with zone.peer("ada", sets=sets) as ada:
                driver, counts = ada.node.driver, beacon(ada).counts
                refusals = driver.refusals.counts
                settings = beacon(ada).config
                group = settings.groups()[4]
                who = beacon(ada).presence
                sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                sender.bind(("127.0.0.1", 0))
                sender.setsockopt(
                    socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1")
                )

                def cast(data: bytes) -> None:
                    sender.sendto(data, (group.host, group.port))

                def body(number: int) -> bytes:
                    made_up = msg_of(who, f"tcp://127.0.0.1:{1 + number % 1000}")
                    return write_datagram("", Announcement(made_up, number), driver.limits)

                now = driver.now()
                signer = DatagramSigner(mallory)
                good = signer.sign(body(1), now, with_certificate=True)
                cast(good)
                await until(lambda: counts.heard == 1)
                assert counts.found == 1  # mallory itself: a link will not prove that address
                cast(good)
                await until(lambda: refusals["datagram-replayed"] == 1)
                forged = bytearray(signer.sign(body(2), now, with_certificate=True))
                forged[-70] ^= 1
                cast(bytes(forged))
                await until(lambda: refusals["datagram-forged"] == 1)
                cast(DatagramSigner(elsewhere).sign(body(3), now, with_certificate=True))
                await until(lambda: refusals["certificate-untrusted"] == 1)
                cast(PlainSigner("bob", "testing").sign(body(4), now))
                await until(lambda: refusals["datagram-wrong-overlay"] == 1)
                cast(good[:4] + bytes(60_000))
                await until(lambda: refusals["datagram-malformed"] + refusals["datagram-stale"])
                wide = msg_of(who, *["tcp://127.0.0.1:1"] * 9)
                long = write_datagram("", Announcement(wide, 5), driver.limits)
                cast(signer.sign(long, now, with_certificate=True))
                await until(lambda: sum(refusals.values()) >= 6)
                for number in range(100):
                    cast(signer.sign(body(10 + number), now, with_certificate=True))
                await until(lambda: counts.limited >= 80)
                assert counts.found == 1
                async with zone.peer("bob", sets=sets) as bob:  # the flood is in nobody's way
                    await bob.joined(count=2)
                sender.close()

    trio.run(main)


def msg_of(who: Presence, *endpoints: str) -> Presence:
    return Presence(who.version, who.overlay, who.authority, who.zone, who.size, endpoints)


def test_a_flood_of_made_up_names_leaves_a_way_in(tmp_path: Path) -> None:
    zone = Zone(tmp_path, secure=False)
    sets = own_group()

    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with zone.peer("ada", sets=sets) as ada:
                driver, counts = ada.node.driver, beacon(ada).counts
                who, group = beacon(ada).presence, beacon(ada).config.groups()[4]
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                    sender.bind(("127.0.0.1", 0))
                    for number in range(500):
                        made_up = msg_of(who, f"tcp://127.0.0.1:{1 + number}")
                        msg = (
                            Query(made_up, number, 3)
                            if number % 2
                            else (Announcement(made_up, number))
                        )
                        data = write_datagram("", msg, driver.limits)
                        signed = PlainSigner(f"x{number}", "testing").sign(data, 0.0)
                        sender.sendto(signed, (group.host, group.port))
                        if number % 50 == 49:
                            await trio.lowlevel.checkpoint()
                await until(lambda: counts.limited >= 200)
                assert counts.answered <= 60
                assert counts.found <= 5
                async with zone.peer("bob", sets=sets) as bob:
                    await bob.joined(count=2)

    trio.run(main)


def test_a_loopback_node_does_not_hear_the_network(tmp_path: Path) -> None:
    zone = Zone(tmp_path, secure=False)

    async def main() -> None:
        async with zone.peer("ada", sets=own_group()) as ada:
            joined = ada.node.driver.datagrams._listening()
            assert list(joined.values()) == ["lo"]

    trio.run(main)


def test_a_group_that_cannot_be_had_is_counted_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The port belongs to somebody who does not share it; seeds still work."""
    zone = Zone(tmp_path, secure=False)
    sets = own_group()
    settings = BeaconSettings(
        port=int(sets[0].partition("=")[2]), ipv4_group=sets[1].partition("=")[2]
    )
    group: Group = settings.groups()[4]

    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with zone.peer("ada", sets=sets) as ada:
                assert ada.node.driver.status().counters["groups not joined"] == 1
                async with zone.peer("bob", ada, sets=sets) as bob:
                    await bob.joined(count=2)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind((group.host, group.port))
        trio.run(main)
    assert f"group {group.host} port {group.port}" in caplog.text


def test_last_known_peers_are_found_where_multicast_is_not(tmp_path: Path) -> None:
    """A port of its own cuts bob off from the others' group, as a switch might."""
    zone = Zone(tmp_path / "keys", secure=True)
    sets, deaf = own_group(), own_group()
    state = tmp_path / "state"

    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with zone.peer("ada", sets=sets):
                quick = ("beacon.remember_every=0.1",)
                bob = zone.peer("bob", sets=[*sets, *quick], state=state)
                async with bob:
                    await bob.joined(count=2)
                    await until(lambda: beacon(bob)._stored)
                again = zone.peer("bob", sets=deaf, state=state)
                found = again.node.events(PeerFound)
                async with again:
                    await again.joined(count=2)
                    with found:
                        first = await anext(found)
                    assert (first.peer, first.how) == ("ada", "last known")

    trio.run(main)
