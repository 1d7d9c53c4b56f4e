"""Echo as a client, for `overlay echo`: meet one address, ask it some times, tell how it went."""

from collections.abc import Callable
from statistics import median

import msgspec
import trio

from nodes.node import Node
from nodes.recipes import visitor
from nodes.settings import NodeConfig
from overlay.errors import OverlayError
from overlay.ids import NodeId
from overlay.protocol import PeerMet
from protocols.echo import Echo, EchoAnswered, EchoTimedOut


class NobodyThere(OverlayError):
    """No peer completed the handshake at that address."""


class Summary(msgspec.Struct, frozen=True):
    """How all requests ended; times in seconds."""

    peer: NodeId
    asked: int
    answered: int
    timed_out: int
    shortest: float
    median: float
    longest: float


async def ask_repeatedly(
    config: NodeConfig,
    address: str,
    *,
    count: int,
    pause: float,
    size: int,
    within: float,
    on_end: Callable[[EchoAnswered | EchoTimedOut], None],
) -> Summary:
    """Ask, `pause` seconds after each end of a request; NobodyThere when no peer lets us in."""
    times: list[float] = []
    async with Node(config, visitor(config)) as node:
        name = await _meet(node, address, within)
        echo = node.protocol(Echo)
        with node.events(EchoAnswered, EchoTimedOut) as ends:
            for number in range(count):
                if number:
                    await trio.sleep(pause)
                node.call(echo.ask, name, bytes(size))
                end = await anext(ends)
                if isinstance(end, EchoAnswered):
                    times.append(end.round_trip)
                on_end(end)
    known = times or [0.0]
    return Summary(
        name, count, len(times), count - len(times), min(known), median(known), max(known)
    )


async def _meet(node: Node, address: str, within: float) -> NodeId:
    with node.events(PeerMet) as met:
        node.meet(address)
        with trio.move_on_after(within):
            async for found in met:
                return found.peer
    status = node.status()
    if status.driver.refusals:
        hint = f"refused: {', '.join(status.driver.refusals)}"
    elif status.insecure:
        hint = "is a peer running there, and is it --insecure too?"
    else:
        hint = "is a peer running there, with keys of this overlay?"
    raise NobodyThere(f"nobody let us in at {address} within {within:g} s: {hint}")
