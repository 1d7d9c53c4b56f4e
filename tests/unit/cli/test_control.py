"""The control socket: what it answers, what it bounds, and what it leaves behind."""

import os
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import outcome
import pytest
import trio

from nodes.control import REQUEST_BYTES, ControlError, ask, name_of, sockets, sockets_of
from nodes.folders import private_folder, runtime_folder
from nodes.service import MAX_CLIENTS, ControlService
from overlay.errors import ConfigError, LocalProtocolError

CROWD = MAX_CLIENTS + 4


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return private_folder(tmp_path_factory.mktemp("c") / "run")


def serving(service: ControlService, folder: Path, questions: Callable[[Path], Any]) -> Any:
    """Ask from a thread, as the CLI does from its process, while the service runs."""

    def ask_all() -> Any:
        (path,) = folder.glob("*.sock")
        return questions(path)

    async def main() -> Any:
        async with service.listening(folder, "ada") as listener, trio.open_nursery() as nursery:
            nursery.start_soon(service.serve, listener)
            with trio.fail_after(60):
                answer = await trio.to_thread.run_sync(outcome.capture, ask_all)
            nursery.cancel_scope.cancel()
        return answer

    return trio.run(main).unwrap()


def raw(path: Path, sent: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(60)
        link.connect(str(path))
        link.sendall(sent)
        link.shutdown(socket.SHUT_WR)
        received = b""
        while part := link.recv(4096):
            received += part
        return received


def test_a_registered_handler_answers_with_arguments(folder: Path) -> None:
    service = ControlService()
    service.register("add", lambda a, b: {"sum": a + b})
    assert serving(service, folder, lambda path: ask(path, "add", a=1, b=2)) == {"sum": 3}
    assert service.counts["answered"] == 1


def test_a_handler_is_registered_once() -> None:
    service = ControlService()
    service.register("status", dict)
    with pytest.raises(LocalProtocolError, match="'status' have a handler already"):
        service.register("status", dict)


def test_what_nobody_handles_is_refused_by_name(folder: Path) -> None:
    service = ControlService()
    service.register("status", dict)
    with pytest.raises(ControlError, match="knows only status"):
        serving(service, folder, lambda path: ask(path, "dance"))
    assert service.counts["unknown"] == 1


def test_arguments_that_do_not_fit_are_one_line(folder: Path) -> None:
    service = ControlService()
    service.register("status", dict)
    service.register("take", lambda a: a)
    with pytest.raises(ControlError, match="take: "):
        serving(service, folder, lambda path: ask(path, "take", b=1))


def test_an_error_of_a_handler_reaches_the_asker(folder: Path) -> None:
    def fail() -> None:
        raise LocalProtocolError("not now")

    service = ControlService()
    service.register("fail", fail)
    with pytest.raises(ControlError, match="fail: not now"):
        serving(service, folder, lambda path: ask(path, "fail"))


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\n",
        b'{"do": 7}\n',
        b'{"do": "x", "rights": "all"}\n',
        b'{"do": "x"',
        b"x" * (REQUEST_BYTES + 1),
    ],
)
def test_nonsense_is_counted_and_answered_in_one_line(folder: Path, sent: bytes) -> None:
    service = ControlService()
    received = serving(service, folder, lambda path: raw(path, sent))
    assert b'"error"' in received
    assert received.count(b"\n") == 1
    assert service.counts == {"malformed": 1}


def test_a_crowd_is_turned_away_and_the_service_goes_on(folder: Path) -> None:
    service = ControlService()
    service.register("status", lambda: "fine")

    def crowd(path: Path) -> Any:
        with ExitStack() as silent:
            for _ in range(CROWD):
                link = silent.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                link.settimeout(60)
                link.connect(str(path))
            assert link.recv(1) == b"", "the last one is turned away"
        for _ in range(1000):  # until the silent ones have been seen to leave
            try:
                return ask(path, "status", timeout=60)
            except ControlError:
                continue
        raise AssertionError("the service did not come back")

    assert serving(service, folder, crowd) == "fine"
    assert service.counts["turned-away"] >= CROWD - MAX_CLIENTS


def test_the_socket_is_gone_after_the_service(folder: Path) -> None:
    serving(ControlService(), folder, lambda path: None)
    assert list(folder.iterdir()) == []


def test_what_a_killed_node_left_is_removed(folder: Path) -> None:
    left = folder / "bob.1.0.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(left))
    assert list(sockets(folder)) == []
    assert not left.exists()


def test_nodes_are_found_by_name_also_when_it_has_dots(folder: Path) -> None:
    def names(path: Path) -> tuple[list[str], list[Path]]:
        return [name_of(one) for one in sockets(folder)], sockets_of(folder, "eve")

    assert serving(ControlService(), folder, names) == (["ada"], [])
    assert name_of(Path("lab.host.7.12.0.sock")) == "lab.host.7"


def test_a_path_too_long_says_what_to_do(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    with pytest.raises(ConfigError, match="set XDG_RUNTIME_DIR to a shorter path"):
        serving(ControlService(), private_folder(deep / "run"), lambda path: None)


def test_nobody_behind_the_socket_is_one_line(folder: Path) -> None:
    with pytest.raises(ControlError, match=r"behind ada.1.0.sock cannot be reached: No such file"):
        ask(folder / "ada.1.0.sock", "status")


def test_the_runtime_folder_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert runtime_folder() == tmp_path / "zmq-overlay"
    assert runtime_folder().stat().st_mode & 0o777 == 0o700


def test_without_a_runtime_directory_it_is_in_tmp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("nodes.folders.USERS", "/nonexistent")
    assert runtime_folder() == Path(f"/tmp/zmq-overlay-{os.geteuid()}")


def test_without_the_variable_the_folder_of_the_session_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("nodes.folders.USERS", str(tmp_path))
    session = tmp_path / str(os.geteuid())
    session.mkdir(mode=0o700)
    assert runtime_folder() == session / "zmq-overlay"


def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run").chmod(0o755)
    with pytest.raises(ConfigError, match=r"mode 0755\): run `chmod 700 "):
        private_folder(tmp_path / "run")


def test_a_link_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "run").symlink_to(tmp_path / "real")
    with pytest.raises(ConfigError, match="is no folder"):
        private_folder(tmp_path / "run")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be used for control sockets: No such file"):
        private_folder(tmp_path / "no" / "run")
