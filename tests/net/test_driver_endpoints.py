"""Where a node listens: tcp and ipc, both versions of IP, ephemeral ports that UDP shares."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import trio

from overlay.errors import ConfigError
from overlay.net import listening
from overlay.net.addresses import Endpoint, parse_endpoint
from overlay.net.introduction import certificate_path
from overlay.net.udp import Datagrams
from tests.net.drivers import Keys, running, speaker, until

both_worlds = pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s")  # short: an ipc path has 100 bytes


@both_worlds
@pytest.mark.parametrize("where", ["127.0.0.1:0", "[::1]:0", "ipc", "127.0.0.1:0 ipc [::1]:0"])
def test_each_endpoint_takes_links(folder: Path, secure: bool, where: str) -> None:
    keys = Keys(folder)
    bind = tuple(
        f"ipc://{folder}/bob" if text == "ipc" else f"tcp://{text}" for text in where.split()
    )

    async def main() -> None:
        bob = speaker("bob", credentials=keys.of("bob") if secure else None, bind=bind)
        async with running(bob):
            assert len(bob.driver.endpoints) == len(bind)
            for number, endpoint in enumerate(bob.driver.endpoints):
                name = f"ada{number}"
                ada = speaker(name, credentials=keys.of(name) if secure else None)
                async with running(ada):
                    ada.driver.learn("bob", [endpoint])
                    ada.say("bob", number)
                    await until(lambda: bob.numbers[-1:] == [number], endpoint)  # noqa: B023
                    assert str(ada.link("bob").endpoint) == endpoint

    trio.run(main)
    assert not certificate_path(Endpoint("ipc", f"{folder}/bob")).exists()


def test_an_ephemeral_port_is_taken_for_datagrams_too() -> None:
    async def main() -> None:
        ada = speaker("ada", bind=("tcp://127.0.0.1:0", "tcp://[::1]:0"))
        async with running(ada):
            for text in ada.driver.endpoints:
                endpoint = parse_endpoint(text)
                family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    with socket.socket(family, kind) as other:
                        with pytest.raises(OSError, match="in use"):
                            other.bind((endpoint.host, endpoint.port))

    trio.run(main)


@pytest.mark.parametrize("every", ["*", "0.0.0.0"])
def test_every_address_takes_links_and_datagrams(folder: Path, every: str) -> None:
    keys = Keys(folder)

    async def main() -> None:
        ada = speaker("ada", credentials=keys.of("ada"))
        bob = speaker("bob", credentials=keys.of("bob"), bind=(f"tcp://{every}:0",))
        async with running(ada, bob):
            port = parse_endpoint(bob.driver.endpoints[0]).port
            ada.driver.meet(f"tcp://127.0.0.1:{port}")  # asks for its key by a datagram
            await until(lambda: ada.is_open("bob"), "the link")

    trio.run(main)


def test_a_port_that_is_not_free_for_datagrams_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []
    bind = Datagrams.bind

    def refuse_twice(datagrams: Datagrams, endpoint: Endpoint) -> bool:
        tried.append(endpoint.port)
        return len(tried) > 2 and bind(datagrams, endpoint)

    monkeypatch.setattr(Datagrams, "bind", refuse_twice)

    async def main() -> None:
        ada = speaker("ada")
        async with running(ada):
            assert len(tried) == 3
            assert parse_endpoint(ada.driver.endpoints[0]).port == tried[2]

            def is_free(port: int) -> bool:
                with socket.socket() as other:
                    return other.connect_ex(("127.0.0.1", port)) != 0

            await until(lambda: all(map(is_free, tried[:2])), "the first two ports")

    trio.run(main)


def test_when_no_port_is_free_for_datagrams_links_still_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Datagrams, "bind", lambda datagrams, endpoint: False)
    monkeypatch.setattr(listening, "PORT_TRIES", 2)

    async def main() -> None:
        ada, bob = speaker("ada"), speaker("bob")
        async with running(ada, bob):
            ada.knows(bob)
            ada.say("bob", 1)
            await until(lambda: bob.numbers == [1], "a message")

    trio.run(main)


def test_a_port_that_another_node_has_is_a_plain_error() -> None:
    async def main() -> None:
        ada = speaker("ada")
        async with running(ada):
            bob = speaker("bob", bind=(ada.driver.endpoints[0],))
            with pytest.raises(ConfigError, match=r"Address already in use: choose another port"):
                await bob.driver.run()

    trio.run(main)


def test_what_is_advertised_by_hand_is_what_peers_learn() -> None:
    async def main() -> None:
        ada = speaker("ada", advertise=("tcp://127.0.0.9:0", "ipc:///run/ada"))
        bob = speaker("bob")
        async with running(ada, bob):
            ada.knows(bob)
            ada.say("bob", 1)
            await until(lambda: bob.numbers == [1], "a message")
            port = ada.driver._router.last_endpoint
            assert isinstance(port, bytes)
            number = port.rstrip(b"\0").decode().rpartition(":")[2]
            assert list(map(str, bob.driver.links.endpoints_of("ada"))) == [
                f"tcp://127.0.0.9:{number}",
                "ipc:///run/ada",
            ]

    trio.run(main)
