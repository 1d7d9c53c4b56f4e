"""Node: what an application holds, on real sockets."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio

from nodes.control import ControlError, ask, sockets_of
from nodes.folders import runtime_folder
from nodes.node import Node
from nodes.recipes import peer
from nodes.settings import NodeConfig, node_config
from overlay.errors import ConfigError, InvariantViolation, LocalProtocolError, SecurityError
from overlay.host import Host
from overlay.protocol import PeerMet
from overlay.security.authority import Authority
from overlay.security.rights import Rights
from protocols.echo import Echo, EchoAnswered, EchoConfig, EchoTimedOut

DEADLINE = 60


@pytest.fixture(autouse=True)
def _own_runtime_folder(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("r")))


def insecure(name: str, *, control: bool = False, **settings: str) -> NodeConfig:
    sets = [f"{key.replace('__', '.')}={value}" for key, value in settings.items()]
    return node_config(
        name,
        insecure=True,
        profile="local",
        bind=["127.0.0.1:0"],
        control=control,
        sets=["echo.timeout=30", *sets],
    )


def make(name: str, *, control: bool = False, **settings: str) -> Node:
    config = insecure(name, control=control, **settings)
    return Node(config, peer(config))


def test_two_nodes_echo_and_the_application_hears() -> None:
    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with make("ada") as ada, make("bob") as bob:
                with ada.events(PeerMet) as met:
                    ada.meet(bob.endpoints[0].removeprefix("tcp://"))
                    assert (await anext(met)).peer == "bob"
                with ada.events(EchoAnswered, EchoTimedOut) as ends:
                    request = ada.call(ada.protocol(Echo).ask, "bob", b"hello")
                    end = await anext(ends)
                assert isinstance(end, EchoAnswered)
                assert (end.peer, end.id) == ("bob", request)
                assert bob.status().protocols["echo"]["served"] == 1
                assert ada.status().insecure

    trio.run(main)


def test_a_stream_that_nobody_reads_loses_the_oldest_and_counts() -> None:
    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with make("ada") as ada, make("bob") as bob:
                ada.learn("bob", bob.endpoints)
                lazy = ada.events(EchoAnswered, capacity=2)
                with ada.events(EchoAnswered) as prompt:
                    asked = []
                    for _ in range(5):
                        asked.append(ada.call(ada.protocol(Echo).ask, "bob", b""))
                        await anext(prompt)
                assert lazy.dropped == 3
                assert ada.status().events_dropped == 3
            assert [event.id async for event in lazy] == asked[3:]  # ended with the node

    trio.run(main)


def test_who_listens_before_the_start_misses_nothing() -> None:
    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with make("bob") as bob:
                config = replace(insecure("ada"), seeds=tuple(bob.endpoints))
                ada = Node(config, peer(config))
                closed = ada.events(PeerMet)
                closed.close()
                with ada.events(PeerMet) as met:
                    async with ada:
                        assert (await anext(met)).peer == "bob"
                assert [event async for event in closed] == []

    trio.run(main)


def test_a_node_lives_once() -> None:
    async def main() -> None:
        node = make("ada")
        async with node:
            pass
        with pytest.raises(LocalProtocolError, match="lives once"):
            async with node:
                pass

    trio.run(main)


def test_stop_ends_run_and_is_harmless_twice() -> None:
    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with make("ada") as ada:
                ada.stop()
                ada.stop()
                await ada.run()

    trio.run(main)


def test_an_address_that_cannot_be_bound_is_a_plain_error() -> None:
    async def main() -> None:
        config = node_config("ada", insecure=True, bind=["192.0.2.1:0"], control=False)
        async with Node(config, peer(config)):
            raise AssertionError("it started")

    with pytest.raises(ConfigError, match=r"net.bind = 'tcp://192.0.2.1:0'"):
        trio.run(main)


def test_an_error_of_a_protocol_reaches_the_application_unwrapped() -> None:
    class Broken(Echo):
        def on_timer(self, key: object, now: float) -> None:
            raise InvariantViolation("planted")

    def recipe(host: Host) -> None:
        host.add(Broken, EchoConfig(timeout=0.01))

    async def main() -> None:
        async with Node(insecure("ada"), recipe) as ada:
            ada.call(ada.protocol(Broken).ask, "nobody", b"")
            await trio.sleep(DEADLINE)

    with pytest.raises(InvariantViolation, match="planted"):
        trio.run(main)


def test_an_error_of_the_application_stays_what_it_is() -> None:
    async def main() -> None:
        async with make("ada"):
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        trio.run(main)


def test_cancelling_the_application_stops_the_node() -> None:
    async def main() -> None:
        with trio.fail_after(DEADLINE):
            with trio.move_on_after(0) as scope:
                async with make("ada", control=True):
                    await trio.sleep_forever()
            assert scope.cancelled_caught

    trio.run(main)
    assert list(runtime_folder().iterdir()) == []


def test_without_keys_it_refuses_and_names_two_commands(tmp_path: Path) -> None:
    config = node_config("ada", keys=tmp_path)
    with pytest.raises(SecurityError, match=r"overlay keys init.*overlay keys issue ada"):
        Node(config, peer(config))


def test_keys_decide_name_zone_and_overlay(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path, "lab")
    authority.issue("ada", Rights(zones=("west",)), 1).save(tmp_path)
    config = node_config(keys=tmp_path, zone="west", control=False)
    assert Node(config, peer(config)).name == "ada"
    for wrong, complaint in (
        (node_config(keys=tmp_path, zone="east"), "may not join zone 'east'"),
        (node_config(keys=tmp_path, overlay="home"), "belong to overlay 'lab', not to 'home'"),
    ):
        with pytest.raises(SecurityError, match=complaint):
            Node(wrong, peer(wrong))


def test_secure_nodes_echo(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path, "lab")

    def secure(name: str) -> Node:
        authority.issue(name, Rights(zones=("west",)), 1).save(tmp_path)
        config = node_config(
            name,
            keys=tmp_path,
            profile="local",
            bind=["127.0.0.1:0"],
            control=False,
            sets=["echo.timeout=30"],
        )
        return Node(config, peer(config))

    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with secure("ada") as ada, secure("bob") as bob:
                with ada.events(PeerMet) as met, ada.events(EchoAnswered) as answers:
                    ada.meet(bob.endpoints[0])
                    found = await anext(met)
                    ada.call(ada.protocol(Echo).ask, found.peer, b"secret")
                    assert (await anext(answers)).peer == "bob"
                assert not ada.status().insecure
                assert not ada.status().driver.insecure

    trio.run(main)


def test_the_control_socket_tells_and_stops() -> None:
    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with make("ada", control=True) as ada:
                ada.control.register("members", lambda zone: [zone, "ada"])
                (path,) = sockets_of(runtime_folder(), "ada")

                def client() -> None:
                    status = ask(path, "status", timeout=DEADLINE)
                    assert (status["name"], status["insecure"]) == ("ada", True)
                    assert status["driver"]["endpoints"] == ada.endpoints
                    assert ask(path, "members", timeout=DEADLINE, zone="w") == ["w", "ada"]
                    with pytest.raises(ControlError, match="meet: 'x': write HOST:PORT"):
                        ask(path, "meet", timeout=DEADLINE, address="x")
                    assert ask(path, "stop", timeout=DEADLINE) is None

                await trio.to_thread.run_sync(client)
                await ada.run()

    trio.run(main)
    assert list(runtime_folder().iterdir()) == []


def test_two_nodes_of_one_name_in_two_overlays_both_have_a_control_socket() -> None:
    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with make("ada", control=True), make("ada", control=True):
                assert len(sockets_of(runtime_folder(), "ada")) == 2

    trio.run(main)
