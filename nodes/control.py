"""Talking to the nodes that run on this machine, through their control sockets.

A control socket is a plain unix stream that carries one line of JSON each way. ZeroMQ would add
nothing to one question and one answer but a context, its threads, and 40 ms of imports in the CLI.
Nothing here imports trio: `overlay status` must answer at once.
"""

import socket
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec

from overlay.errors import OverlayError

SUFFIX = ".sock"
REQUEST_BYTES = 4096  # a name and a few arguments
REPLY_BYTES = 8 << 20  # the status of a node with thousands of links
PATH_BYTES = 107  # what the kernel takes as the address of a unix socket


class ControlError(OverlayError):
    """A node could not be reached, or did not do what it was asked."""


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line to a node: which handler, and its arguments."""

    do: str
    arguments: dict[str, Any] = {}


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line back: the handler's result, or why there is none."""

    result: Any = None
    error: str = ""


def ask(path: Path, do: str, *, timeout: float = 5.0, **arguments: object) -> Any:
    """Ask the node behind that socket; ControlError when it is gone, silent, or refuses."""
    try:
        with _asked(path, do, timeout, arguments) as link:
            line = _read_line(link)
    except OSError as error:
        raise _unreachable(path, error, timeout) from error
    return _result(path, line)


def follow(path: Path, do: str, *, timeout: float = 5.0, **arguments: object) -> Generator[Any]:
    """Ask for something that goes on: yields each value until the node ends it, or stops."""
    try:
        with _asked(path, do, timeout, arguments) as link, link.makefile("rb") as lines:
            first = lines.readline(REPLY_BYTES)
            link.settimeout(None)  # what goes on may be silent for hours
            yield _result(path, first)
            while line := lines.readline(REPLY_BYTES):
                yield _result(path, line)
    except OSError as error:
        raise _unreachable(path, error, timeout) from error


def _asked(path: Path, do: str, timeout: float, arguments: dict[str, object]) -> socket.socket:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.settimeout(timeout)
        link.connect(str(path))
        link.sendall(msgspec.json.encode(Request(do, arguments)) + b"\n")
    except BaseException:
        link.close()
        raise
    return link


def _unreachable(path: Path, error: OSError, timeout: float) -> ControlError:
    reason = error.strerror or f"no answer within {timeout:g} s"
    return ControlError(f"the node behind {path.name} cannot be reached: {reason}")


def _result(path: Path, line: bytes) -> Any:
    try:
        reply = msgspec.json.decode(line, type=Reply)
    except msgspec.DecodeError as error:
        raise ControlError(f"the node behind {path.name} answered nonsense: {error}") from None
    if reply.error:
        raise ControlError(reply.error)
    return reply.result


def sockets(folder: Path) -> Iterator[Path]:
    """The control sockets of running nodes, by name; what dead nodes left is removed."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        if _is_stale(path):
            path.unlink(missing_ok=True)
        else:
            yield path


def sockets_of(folder: Path, name: str) -> list[Path]:
    """The running nodes of that name: more than one when they belong to different overlays."""
    return [path for path in sockets(folder) if name_of(path) == name]


def name_of(path: Path) -> str:
    """The node behind a socket `NAME.PID.NUMBER.sock`."""
    return path.name.removesuffix(SUFFIX).rsplit(".", 2)[0]


def _is_stale(path: Path) -> bool:
    # A node renames its socket into place once it listens: one that refuses has no listener left.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return True
        except OSError:
            return False  # busy, or not ours to judge
    return False


def _read_line(link: socket.socket) -> bytes:
    data = bytearray()
    while not data.endswith(b"\n"):
        part = link.recv(65536)
        if not part:
            raise ConnectionResetError(104, "it hung up")
        data += part
        if len(data) > REPLY_BYTES:
            raise OSError(90, f"its answer is over {REPLY_BYTES} bytes")
    return bytes(data)
