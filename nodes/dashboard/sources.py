"""A node that is watched: through its control socket, or, as a role, in its own process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from nodes.control import REPLY_BYTES, ControlError, Reply, Request
from overlay.errors import OverlayError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from nodes.node import Node
    from nodes.watching import WatchService

CHUNK = 1 << 16


class Look(ABC):
    """A conversation with a node: names in, what changed of them out."""

    heading: dict[str, Any]  # who it is

    @abstractmethod
    async def ask(self, names: list[str]) -> None:
        """Ask; `answer` must follow before the next question."""

    @abstractmethod
    async def answer(self) -> dict[str, Any]:
        """What is not as it was told before; may be cancelled and called again."""


class Source(ABC):
    """Where one node is asked; ControlError or OSError when it is gone."""

    order: str  # in which commands ask nodes, too: the first one's word counts

    @abstractmethod
    def look(self) -> Any:
        """Begin a conversation, for `async with`."""

    @abstractmethod
    def follow(self, do: str, **arguments: Any) -> AsyncGenerator[dict[str, Any]]:
        """Ask for something that goes on."""

    @abstractmethod
    async def order_to(self, do: str, **arguments: Any) -> Any:
        """Have it do something; ControlError when it refuses."""

    async def first(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Ask for something that is told once."""
        async with aclosing(self.follow(do, **arguments)) as told:
            async for one in told:
                return one
        raise ControlError(f"{self.order} did not answer {do}")


class SocketSource(Source):
    """A node of this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.order = path.name

    @asynccontextmanager
    async def look(self) -> AsyncIterator[Look]:
        """Open its socket."""
        async with await trio.open_unix_socket(str(self.path)) as stream:
            lines = _Lines(stream, self.order)
            await lines.send(Request("facts"))
            yield _SocketLook(lines, await lines.facts())

    async def follow(self, do: str, **arguments: Any) -> AsyncGenerator[dict[str, Any]]:
        """Ask by a connection of its own."""
        async with await trio.open_unix_socket(str(self.path)) as stream:
            lines = _Lines(stream, self.order)
            await lines.send(Request(do, arguments))
            while True:
                yield await lines.facts()

    async def order_to(self, do: str, **arguments: Any) -> Any:
        """Ask by a connection of its own, which ends with the answer."""
        async with await trio.open_unix_socket(str(self.path)) as stream:
            lines = _Lines(stream, self.order)
            await lines.send(Request(do, arguments))
            return await lines.result()


class _SocketLook(Look):
    def __init__(self, lines: _Lines, heading: dict[str, Any]) -> None:
        self._lines = lines
        self.heading = heading

    async def ask(self, names: list[str]) -> None:
        await self._lines.send(names)

    async def answer(self) -> dict[str, Any]:
        return await self._lines.facts()


class _Lines:
    """JSON lines of one connection; a reader may be cancelled without losing any."""

    def __init__(self, stream: trio.SocketStream, who: str) -> None:
        self._stream = stream
        self._who = who
        self._data = bytearray()

    async def send(self, value: Any) -> None:
        await self._stream.send_all(msgspec.json.encode(value) + b"\n")

    async def facts(self) -> dict[str, Any]:
        facts = await self.result()
        if not isinstance(facts, dict):
            raise ControlError(f"{self._who} answered no facts")
        return facts

    async def result(self) -> Any:
        line = await self._line()
        try:
            reply = msgspec.json.decode(line, type=Reply)
        except msgspec.DecodeError as error:
            raise ControlError(f"{self._who} answered nonsense: {error}") from None
        if reply.error:
            raise ControlError(reply.error)
        return reply.result

    async def _line(self) -> bytes:
        searched = 0
        while (end := self._data.find(b"\n", searched)) < 0:
            searched = len(self._data)
            part = await self._stream.receive_some(CHUNK)
            if not part:
                raise ControlError(f"{self._who} hung up")
            self._data += part
            if len(self._data) > REPLY_BYTES:
                raise ControlError(f"{self._who} answered more than {REPLY_BYTES} bytes")
        line = bytes(self._data[:end])
        del self._data[: end + 1]
        return line


class LocalSource(Source):
    """The node that the dashboard is a role of."""

    def __init__(self, node: Node, watching: WatchService) -> None:
        self._node = node
        self._watching = watching
        path = node.control.path
        self.order = f"{node.name}.sock" if path is None else path.name

    @asynccontextmanager
    async def look(self) -> AsyncIterator[Look]:
        """Nothing to open."""
        yield _LocalLook(self._watching)

    async def follow(self, do: str, **arguments: Any) -> AsyncGenerator[dict[str, Any]]:
        """Ask the handler that answers on the control socket."""
        handler = self._node.control.handler(do)
        if handler is None:
            raise ControlError(f"{self._node.name} does not know {do}")
        told = handler(**arguments)
        if not isinstance(told, AsyncGenerator):
            yield msgspec.to_builtins(told)
            return
        async with aclosing(told) as values:
            async for one in values:
                yield msgspec.to_builtins(one)

    async def order_to(self, do: str, **arguments: Any) -> Any:
        """Call the handler that answers on the control socket."""
        handler = self._node.control.handler(do)
        if handler is None:
            raise ControlError(f"{self._node.name} does not know {do}")
        await trio.lowlevel.checkpoint()
        try:
            return handler(**arguments)
        except OverlayError as error:
            raise ControlError(f"{do}: {error}") from error


class _LocalLook(Look):
    def __init__(self, watching: WatchService) -> None:
        self._watching = watching
        self._told: dict[str, bytes] = {}
        self._names: list[str] = []
        self.heading = watching.heading()

    async def ask(self, names: list[str]) -> None:
        self._names = names

    async def answer(self) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        changed = self._watching.look(self._names, self._told)
        return {name: msgspec.json.decode(facts) for name, facts in changed.items()}
