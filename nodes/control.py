"""Talking to the nodes that run on this machine, through their control sockets.

A control socket is a plain unix stream that carries one line of JSON each way. ZeroMQ would add
nothing to one question and one answer but a context, its threads, and 40 ms of imports in the CLI.
Nothing here imports trio: `overlay status` must answer at once.
"""

import socket
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from select import select
from typing import Any, BinaryIO

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


def follow(
    path: Path,
    do: str,
    *,
    timeout: float = 5.0,
    silence: float | None = None,
    most: int = REPLY_BYTES,
    **arguments: object,
) -> Generator[Any]:
    """Ask for something that goes on: yields each value until the node ends it, or stops.

    A value has at most `most` bytes; TimeoutError when none comes for `silence` seconds.
    """
    try:
        with _asked(path, do, timeout, arguments) as link, link.makefile("rb") as lines:
            first = lines.readline(most)
            link.settimeout(silence)  # what goes on may be silent for hours
            yield _result(path, first)
            while line := _line_within(lines, most, silence):
                yield _result(path, line)
    except _Silence as error:
        raise TimeoutError(str(error)) from None
    except OSError as error:
        raise _unreachable(path, error, timeout) from error


class _Silence(Exception):
    """A value that did not come in time; a TimeoutError would be an OSError."""


def _line_within(lines: BinaryIO, most: int, seconds: float | None) -> bytes:
    try:
        return lines.readline(most)
    except TimeoutError:
        raise _Silence(f"nothing came for {seconds:g} s") from None


class Talk:
    """A request that goes on in both directions: lines to the node, values from it.

    The node must answer the request first; ControlError when it does not, or refuses.
    """

    def __init__(self, path: Path, do: str, *, timeout: float = 5.0, **arguments: object) -> None:
        self._path = path
        self._timeout = timeout
        try:
            self._link = _asked(path, do, timeout, arguments)
            self._lines = self._link.makefile("rb")
        except OSError as error:
            raise _unreachable(path, error, timeout) from error
        try:
            self.first = self._next()
        except BaseException:
            self.close()
            raise
        self._link.settimeout(None)  # from now on the node may make us wait, for its peers

    def send(self, line: bytes) -> None:
        """Send a line, which holds no line end; waits while the node takes no more."""
        try:
            self._link.sendall(line + b"\n")
        except OSError:
            for _ in self.values():  # it ended the talk: the last thing that it said is why
                pass
            raise ControlError(f"the node behind {self._path.name} hung up") from None

    def has_news(self) -> bool:
        """Whether the node said something that was not read yet."""
        return bool(select([self._link], [], [], 0)[0])

    def next(self) -> Any:
        """The next value; waits for it."""
        try:
            return self._next()
        except OSError as error:
            raise _unreachable(self._path, error, self._timeout) from error

    def _next(self) -> Any:
        line = self._lines.readline(REPLY_BYTES)
        if not line:
            raise ConnectionResetError(104, "it hung up")
        return _result(self._path, line)

    def values(self) -> Iterator[Any]:
        """What the node still says, until it ends the talk."""
        try:
            while line := self._lines.readline(REPLY_BYTES):
                yield _result(self._path, line)
        except OSError as error:
            raise _unreachable(self._path, error, self._timeout) from error

    def finish(self) -> None:
        """Send no more; values may still come."""
        with suppress(OSError):
            self._link.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End it."""
        self._lines.close()
        self._link.close()


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
