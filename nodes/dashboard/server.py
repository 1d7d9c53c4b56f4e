"""The HTTP server of a dashboard: alone, or as a role of a peer.

async with Peer.join(name="ada", zone="lab") as peer:
    async with serving(peer=peer) as dashboard:
        print(dashboard.url)
"""

from __future__ import annotations

import logging
import os
import socket
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from nodes.dashboard import check_installed
from nodes.dashboard.hub import Hub
from nodes.dashboard.metric_names import protocol_counters
from nodes.dashboard.security import Guard
from nodes.dashboard.sources import LocalSource
from nodes.folders import runtime_folder
from nodes.node import only_error
from overlay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

    from nodes.dashboard.sources import Source
    from nodes.peer import Peer
    from nodes.supervisor import Supervisor

ADDRESS = "127.0.0.1:7480"
TOKEN_VARIABLE = "OVERLAY_DASHBOARD_TOKEN"
BACKLOG = 64
GRACE = 0.5  # s for open pages to hear the end


class Serving(msgspec.Struct):
    """A dashboard that runs."""

    url: str  # with the token, where one is needed
    address: str  # HOST:PORT
    token: str
    hub: Hub


def address_of(text: str) -> tuple[str, int]:
    """HOST:PORT, HOST or :PORT; ConfigError says what would be right."""
    text = text or ADDRESS
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, ADDRESS.rpartition(":")[2]
    try:
        number = int(port)
    except ValueError:
        number = -1
    if not 0 <= number <= 65535:
        raise ConfigError(f"{text!r} is no address for a dashboard: HOST:PORT, as {ADDRESS}")
    return host.strip("[]") or "127.0.0.1", number


def read_token(file: Path | None) -> str:
    """From a file, or `$OVERLAY_DASHBOARD_TOKEN`: a command line is no place for secrets."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE, "").strip()
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{file}: no token can be read there: {reason}") from None


def _listen(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, number, _, address = found[0]
        listener = socket.socket(family, kind, number)
    except OSError as error:
        raise ConfigError(f"{host}:{port}: {error.strerror or error}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"the dashboard cannot listen at {host}:{port}: {error.strerror}: choose another port"
        ) from None
    listener.setblocking(False)
    return listener


@asynccontextmanager
async def serving(
    address: str = ADDRESS,
    *,
    peer: Peer | Supervisor | None = None,
    node: str = "",
    folder: Path | None = None,
    token: str = "",
    hosts: Iterable[str] = (),
    actions: bool = False,
    sources: Iterable[Source] = (),
) -> AsyncIterator[Serving]:
    """Serve until the block ends: the nodes of this machine, or one; as a role of `peer`, too.

    At another address than loopback, and where actions are allowed, a token is needed; it is made
    up when none is given. `sources` are more nodes to watch. ConfigError when that address cannot
    be had.
    """
    check_installed()
    from hypercorn.config import Config
    from hypercorn.trio import serve

    from nodes.dashboard.app import Dashboard

    protocol_counters()  # 0.1 s, which the first scrape would wait for; once in a process
    host, port = address_of(address)
    guard = Guard(host, token=token, hosts=hosts, actions=actions)
    listener = _listen(host, port)
    try:
        name, number = listener.getsockname()[:2]
        guard.cookie = f"overlay_dashboard_{number}"
        own = LocalSource(peer.node, peer.watching) if peer is not None else None
        here = () if own is None else (own,)
        hub = Hub(folder or runtime_folder(), (*here, *sources), node)
        dashboard = Dashboard(hub, guard, actions=actions, own=peer.node.name if peer else "")
        config = Config()
        config.bind = [f"fd://{listener.detach()}"]  # which the server closes
        config.graceful_timeout = GRACE
        config.errorlog = logging.getLogger("overlay.dashboard")
        config.include_server_header = False
        place = f"[{name}]:{number}" if ":" in name else f"{name}:{number}"
        if name in ("0.0.0.0", "::"):
            place = f"{socket.gethostname()}:{number}"
        url = f"http://{place}/" + (f"?token={guard.token}" if guard.token else "")
        stopping = trio.Event()
        async with trio.open_nursery() as nursery:
            await nursery.start(hub.run)
            nursery.start_soon(
                trio.to_thread.run_sync, protocol_counters
            )  # the first scrape is soon
            ended = trio.Event()
            run = partial(serve, config=config, shutdown_trigger=stopping.wait, mode="asgi")

            async def run_server(task_status: trio.TaskStatus[None]) -> None:
                try:
                    await run(dashboard.app(), task_status=task_status)  # type: ignore[arg-type]
                finally:
                    ended.set()

            await nursery.start(run_server)
            try:
                yield Serving(url, place, guard.token, hub)
            finally:
                with trio.CancelScope(shield=True), trio.move_on_after(2 * GRACE):
                    stopping.set()
                    await ended.wait()
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        alone = only_error(group)
        raise alone from alone.__cause__
    finally:
        listener.close()
