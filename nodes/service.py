"""The control socket of a running node: local, for its user only, bounded in every way."""

import os
import socket
import struct
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import trio

from nodes.control import PATH_BYTES, REQUEST_BYTES, SUFFIX, Reply, Request, sockets
from overlay.errors import ConfigError, LocalProtocolError, OverlayError

Handler: TypeAlias = Callable[..., Any]
"""Takes the request's arguments by name, returns what msgspec can write as JSON.

An async generator goes on telling: a line for each value, until it or the client ends.
"""
Talker: TypeAlias = Callable[..., Coroutine[Any, Any, None]]
"""An async function: takes a Conversation, and then the request's arguments by name."""

MAX_CLIENTS = 16  # more at once are turned away: people and scripts ask one by one
TALK_CHUNK = 1 << 18
TALK_BYTES = 128 << 20  # one line of a conversation: the longest message of a topic in base64
CLIENT_SECONDS = 10.0  # for one question; a client that hangs must not keep its slot

_numbers = count()  # tells two nodes of one name and one process apart


class Conversation:
    """A client that sends lines of its own after its request, and may close that half."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield each line, without its end, until the client sends no more."""
        data = bytearray()
        while part := await self._stream.receive_some(TALK_CHUNK):
            begin = len(data)
            data += part
            while (end := data.find(b"\n", begin)) >= 0:
                line, begin = bytes(data[:end]), 0
                del data[: end + 1]
                yield line
            if len(data) > TALK_BYTES:
                raise LocalProtocolError(f"a line has at most {TALK_BYTES} bytes")

    async def say(self, value: Any) -> None:
        """Send a line; trio.BrokenResourceError when the client went away or does not read."""
        with trio.move_on_after(CLIENT_SECONDS) as patience:
            await self._stream.send_all(msgspec.json.encode(Reply(result=value)) + b"\n")
        if patience.cancelled_caught:
            raise trio.BrokenResourceError("it does not read")


class ControlService:
    """Answers questions by name: `register("status", node.status)`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._handlers: dict[str, Handler] = {}
        self._talkers: dict[str, Talker] = {}
        self._clients = 0
        self.path: Path | None = None  # of the socket, once it listens

    def register(self, name: str, handler: Handler) -> None:
        """Answer `name` by calling `handler`; each name once."""
        self._check_new(name)
        self._handlers[name] = handler

    def register_talk(self, name: str, talker: Talker) -> None:
        """Answer `name` by a conversation; each name once."""
        self._check_new(name)
        self._talkers[name] = talker

    def handler(self, name: str) -> Handler | None:
        """Who answers that question; None when nobody does."""
        return self._handlers.get(name)

    def _check_new(self, name: str) -> None:
        if name in self._handlers or name in self._talkers:
            raise LocalProtocolError(f"control requests {name!r} have a handler already")

    @asynccontextmanager
    async def listening(self, folder: Path, node: str) -> AsyncIterator[trio.SocketListener]:
        """Open the socket, and remove it at the end; serve its clients with `serve`."""
        for _ in sockets(folder):
            pass  # which removes what killed nodes left
        self.path = path = folder / f"{node}.{os.getpid()}.{next(_numbers)}{SUFFIX}"
        hidden = path.with_suffix(".new")
        if len(os.fsencode(hidden)) > PATH_BYTES:
            raise ConfigError(
                f"{path}: too long for a control socket: set XDG_RUNTIME_DIR to a shorter path"
            )
        link = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            await link.bind(str(hidden))
            link.listen(4 * MAX_CLIENTS)  # a full backlog would look like a fault to the asker
            hidden.rename(path)  # so that a socket which refuses is always a stale one
            async with trio.SocketListener(link) as listener:
                yield listener
        finally:
            link.close()
            hidden.unlink(missing_ok=True)
            path.unlink(missing_ok=True)

    async def serve(self, listener: trio.SocketListener) -> None:
        """Answer until cancelled."""
        await trio.serve_listeners(self._serve_client, [listener])

    async def _serve_client(self, stream: trio.SocketStream) -> None:
        async with stream:
            if self._clients >= MAX_CLIENTS:
                self.counts["turned-away"] += 1
                return
            self._clients += 1
            try:
                with trio.move_on_after(CLIENT_SECONDS) as patience:
                    reply = await self._answer(stream)
                if isinstance(reply, AsyncGenerator):
                    await self._keep_telling(stream, reply)
                elif isinstance(reply, Coroutine):
                    await self._keep_talking(stream, reply)
                if patience.cancelled_caught:
                    self.counts["too-slow"] += 1
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self.counts["hung-up"] += 1
            finally:
                self._clients -= 1

    async def _answer(self, stream: trio.SocketStream) -> Any:
        """Send the reply; one that goes on is returned instead."""
        if _uid_of(stream) not in (os.geteuid(), 0):
            self.counts["foreign"] += 1
            return None
        line = await _read_line(stream)
        if line is None:
            self.counts["malformed"] += 1
            reply = Reply(error=f"a request is one line of at most {REQUEST_BYTES} bytes")
        elif not line:
            return None  # it only looked whether we live
        else:
            reply = self._handle(line, stream)
        if isinstance(reply.result, AsyncGenerator | Coroutine):
            return reply.result
        await stream.send_all(msgspec.json.encode(reply) + b"\n")
        return None

    async def _keep_telling(self, stream: trio.SocketStream, told: AsyncGenerator[Any]) -> None:
        async with aclosing(told), trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_on_hangup, stream, nursery.cancel_scope)
            try:
                async for one in told:
                    if not await self._tell(stream, Reply(result=one)):
                        break
            except OverlayError as error:
                await self._tell(stream, Reply(error=str(error)))
            nursery.cancel_scope.cancel()

    async def _keep_talking(
        self, stream: trio.SocketStream, talk: Coroutine[Any, Any, None]
    ) -> None:
        try:
            await talk
        except OverlayError as error:
            await self._tell(stream, Reply(error=str(error)))

    async def _tell(self, stream: trio.SocketStream, reply: Reply) -> bool:
        """Send one of several lines; False when its reader went away, or does not read."""
        with trio.move_on_after(CLIENT_SECONDS):
            try:
                await stream.send_all(msgspec.json.encode(reply) + b"\n")
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return False
            return True
        self.counts["too-slow"] += 1
        return False

    def _handle(self, line: bytes, stream: trio.SocketStream) -> Reply:
        try:
            request = msgspec.json.decode(line, type=Request)
            handler: Handler
            if request.do in self._talkers:
                handler = partial(self._talkers[request.do], Conversation(stream))
            else:
                handler = self._handlers[request.do]
        except msgspec.DecodeError as error:
            self.counts["malformed"] += 1
            return Reply(error=f"no request: {error}")
        except KeyError:
            self.counts["unknown"] += 1
            known = ", ".join(sorted({*self._handlers, *self._talkers}))
            return Reply(error=f"this node knows only {known}")
        self.counts["answered"] += 1
        try:
            return Reply(result=handler(**request.arguments))
        except (OverlayError, TypeError) as error:  # TypeError: arguments that it does not take
            return Reply(error=f"{request.do}: {error}")


async def _read_line(stream: trio.SocketStream) -> bytes | None:
    """The line, empty when the client hung up at once, None when it is no line."""
    data = bytearray()
    while not data.endswith(b"\n"):
        part = await stream.receive_some(REQUEST_BYTES)
        data += part
        if len(data) > REQUEST_BYTES or (data and not part):
            return None
        if not part:
            return b""
    return bytes(data)


async def _cancel_on_hangup(stream: trio.SocketStream, scope: trio.CancelScope) -> None:
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        while await stream.receive_some(REQUEST_BYTES):
            pass
    scope.cancel()


def _uid_of(stream: trio.SocketStream) -> int:
    credentials = stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, uid, _ = struct.unpack("3i", credentials)
    return int(uid)
