"""Datagrams in the driver's loop: unicast and multicast, both versions of IP, signed or not."""

from __future__ import annotations

import socket
from functools import partial
from pathlib import Path

import pytest
import trio

from overlay.errors import LocalProtocolError
from overlay.net.addresses import parse_endpoint
from overlay.protocol import Group, UdpAddress
from tests.net.drivers import Keys, Speaker, running, speaker, until

both_worlds = pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])
LOOPBACKS = {4: "tcp://127.0.0.1:0", 6: "tcp://[::1]:0"}
both_versions = pytest.mark.parametrize("version", [4, 6], ids=["IPv4", "IPv6"])
NEAR = {4: "127.0.0.1", 6: "::1"}
GROUPS = {4: "239.255.77.1", 6: "ff02::7700"}


def _multicasts_ipv6() -> bool:
    """Linux has no IPv6 multicast route on loopback, so another interface must be up."""
    routes = Path("/proc/net/ipv6_route")
    return routes.exists() and any(
        line.startswith("ff000000000000000000000000000000 08")
        for line in routes.read_text().splitlines()
    )


without_ipv6 = pytest.mark.skipif(not _multicasts_ipv6(), reason="no IPv6 multicast here")
MULTICAST_BINDS = {4: "tcp://127.0.0.1:0", 6: "tcp://[::]:0"}
multicast_versions = pytest.mark.parametrize(
    "version", [4, pytest.param(6, marks=without_ipv6)], ids=["IPv4", "IPv6"]
)


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


def _three(keys: Keys, secure: bool, bind: str) -> list[Speaker]:
    return [
        speaker(name, credentials=keys.of(name) if secure else None, bind=(bind,))
        for name in ("ada", "bob", "cyn")
    ]


def _address(one: Speaker) -> UdpAddress:
    found = parse_endpoint(one.driver.endpoints[0]).udp
    assert found is not None
    return found


async def _hears(one: Speaker, datagrams: int) -> None:
    await until(lambda: len(one.talk.cast_to_us) >= datagrams, f"{datagrams} datagrams")


def _free_udp_port() -> int:
    """Free a moment ago; groups share theirs."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        probe.bind(("::", 0))
        return int(probe.getsockname()[1])


@both_worlds
@both_versions
def test_a_datagram_to_one_node_tells_its_origin(keys: Keys, secure: bool, version: int) -> None:
    async def main() -> None:
        ada, bob, cyn = _three(keys, secure, LOOPBACKS[version])
        async with running(ada, bob, cyn):
            before = bob.driver.now()
            ada.cast(_address(bob), 1, b"hello")
            await until(lambda: bob.talk.cast_to_us, "the datagram")
            ((origin, number, payload),) = bob.talk.cast_to_us
            assert (number, payload) == (1, b"hello")
            assert (origin.name, origin.address) == ("ada", _address(ada))
            assert before <= origin.arrived_at <= bob.driver.now()
            assert origin.interface == ""
            bob.cast(origin.address, 2)  # it can be answered
            await until(lambda: ada.talk.cast_to_us, "the answer")
            assert cyn.talk.cast_to_us == []

    trio.run(main)


@both_worlds
@multicast_versions
def test_a_group_reaches_all_who_joined_but_the_sender(
    keys: Keys, secure: bool, version: int
) -> None:
    group = Group(GROUPS[version], _free_udp_port())

    async def main() -> None:
        ada, bob, cyn = _three(keys, secure, MULTICAST_BINDS[version])
        async with running(ada, bob, cyn):
            for one in (ada, bob, cyn):
                one.driver.datagrams.join(group)
                one.driver.datagrams.join(group)  # harmless twice
                assert one.count("groups not joined") == 0
            for number in range(3):
                ada.cast(group, number)
            for one in (bob, cyn):
                await _hears(one, 3)
                assert [number for _, number, _ in one.talk.cast_to_us] == [0, 1, 2]
                origin = one.talk.cast_to_us[0][0]
                assert origin.name == "ada"
                assert origin.interface in [name for _, name in socket.if_nameindex()]
                assert origin.interface == "lo" or version == 6
            bob.cast(bob.talk.cast_to_us[0][0].address, 3)  # it can be answered
            await until(lambda: ada.talk.cast_to_us, "the answer")
            cyn.driver.datagrams.leave(group)
            bob.cast(group, 4)
            await until(lambda: len(ada.talk.cast_to_us) == 2, "bob's datagram")
            bob.cast(UdpAddress(NEAR[version], _address(cyn).port), 5)
            await until(lambda: len(cyn.talk.cast_to_us) > 3, "one sent to cyn alone")
            assert [number for _, number, _ in cyn.talk.cast_to_us] == [0, 1, 2, 5]
            assert [number for _, number, _ in ada.talk.cast_to_us] == [3, 4]  # none of its own
            assert {**ada.driver.status().refusals, **bob.driver.status().refusals} == {}

    trio.run(main)


@multicast_versions
def test_nodes_bound_to_every_address_hear_a_group_once(version: int) -> None:
    """Whatever interfaces this machine has: a copy by another one is counted, not delivered."""
    group = Group(GROUPS[version], _free_udp_port())
    bind = "tcp://0.0.0.0:0" if version == 4 else "tcp://[::]:0"

    async def main() -> None:
        ada, bob = speaker("ada", bind=(bind,)), speaker("bob", bind=(bind,))
        async with running(ada, bob):
            ada.driver.datagrams.join(group)
            bob.driver.datagrams.join(group)
            for number in range(20):
                ada.cast(group, number)
            await until(lambda: len(bob.talk.cast_to_us) >= 20, "all")
            assert [number for _, number, _ in bob.talk.cast_to_us] == list(range(20))
            assert ada.talk.cast_to_us == []

    trio.run(main)


@multicast_versions
def test_a_group_takes_nothing_that_was_sent_elsewhere(keys: Keys, version: int) -> None:
    """Another group on the same port, or a datagram to the port itself."""
    port = _free_udp_port()
    group = Group(GROUPS[version], port)
    other = Group("239.255.77.2" if version == 4 else "ff02::7701", port)

    async def main() -> None:
        ada, bob, cyn = _three(keys, False, MULTICAST_BINDS[version])
        async with running(ada, bob, cyn):
            bob.driver.datagrams.join(group)
            cyn.driver.datagrams.join(other)
            ada.cast(other, 1)
            ada.cast(UdpAddress(NEAR[version], port), 2)
            ada.cast(group, 3)
            await until(lambda: bob.talk.cast_to_us and cyn.talk.cast_to_us, "one each")
            assert [number for _, number, _ in bob.talk.cast_to_us] == [3]
            assert [number for _, number, _ in cyn.talk.cast_to_us] == [1]

    trio.run(main)


def test_what_cannot_be_sent_or_joined_is_counted_and_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        ada, bob = speaker("ada"), speaker("bob")
        async with running(ada, bob):
            ada.cast(UdpAddress("256.1.1.1", 9), 1)
            ada.cast(UdpAddress("fe80::1%nowhere", 9), 1)
            assert ada.count("datagrams not sent") == 2
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as greedy:
                greedy.bind(("0.0.0.0", 0))  # shares its port with nobody
                ada.driver.datagrams.join(Group("239.255.77.1", greedy.getsockname()[1]))
            assert ada.count("groups not joined") == 1
            with pytest.raises(LocalProtocolError, match=r"limits.datagram_bytes is 60000"):
                ada.cast(_address(bob), 1, bytes(60_001))
            ada.cast(_address(bob), 2, bytes(50_000))
            await until(lambda: bob.talk.cast_to_us, "a datagram of 50 kB")

    trio.run(main)
    assert "group 239.255.77.1 port" in caplog.text


def test_each_address_that_a_node_listens_at_takes_datagrams(keys: Keys) -> None:
    """Introductions are datagrams: a peer may know only the second address."""

    async def main() -> None:
        bind = ("tcp://127.0.0.1:0", "tcp://127.0.0.2:0", "tcp://[::1]:0")
        bob = speaker("bob", credentials=keys.of("bob"), bind=bind)
        async with running(bob):
            assert len(bob.driver.endpoints) == 3
            for number, endpoint in enumerate(bob.driver.endpoints):
                ada = speaker(f"ada{number}", credentials=keys.of(f"ada{number}"))
                async with running(ada):
                    ada.driver.meet(endpoint)
                    await until(partial(ada.is_open, "bob"), endpoint)

    trio.run(main)
