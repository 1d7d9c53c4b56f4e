"""How much a node takes from its peers: the limits that the codec and the drivers enforce."""

from __future__ import annotations

from typing import Annotated

from overlay.config import Settings, bounded
from overlay.errors import ConfigError

KIB = 1024
MIB = 1024 * KIB
HEAD_ROOM = 64 * KIB  # that a part may pass `frame_bytes` by before ZeroMQ cuts its connection


class Limits(Settings, frozen=True, kw_only=True):
    """Sizes past which something is split, refused or counted as a peer's fault."""

    frame_bytes: Annotated[
        int,
        bounded(
            "bytes",
            4 * KIB,
            64 * MIB,
            "longest encoded batch in one frame: it is held whole in memory at both ends",
        ),
    ] = 1 * MIB
    batch_messages: Annotated[
        int,
        bounded(
            "messages",
            1,
            65_536,
            "most messages in one frame: a tick that decodes them delays every other peer",
        ),
    ] = 4096
    nesting: Annotated[
        int,
        bounded(
            "levels",
            4,
            256,
            "deepest nesting of a message: a decoder recurses, and a peer must not exhaust it",
        ),
    ] = 32
    string_bytes: Annotated[
        int,
        bounded(
            "bytes",
            64,
            16 * MIB,
            "longest text in a message: names, topics and patterns are short, bulk is payload",
        ),
    ] = 128 * KIB
    payload_inline: Annotated[
        int,
        bounded(
            "bytes",
            0,
            1 * MIB,
            "from this size a payload is a part of its own: copying it costs more than a part",
        ),
    ] = 32 * KIB
    message_bytes: Annotated[
        int,
        bounded(
            "bytes",
            4 * KIB,
            1024 * MIB,
            "longest message put together from several frames: what one peer may make us hold",
        ),
    ] = 64 * MIB
    datagram_bytes: Annotated[
        int,
        bounded(
            "bytes",
            512,
            65_507,  # what UDP over IPv4 can carry
            "longest datagram: leaves room for its signature under UDP's own 65507",
        ),
    ] = 60_000

    def check(self) -> None:
        """The smaller units fit into the larger ones."""
        for inner, outer in (
            ("string_bytes", "frame_bytes"),
            ("payload_inline", "frame_bytes"),
            ("frame_bytes", "message_bytes"),
        ):
            small, large = getattr(self, inner), getattr(self, outer)
            if small > large:
                raise ConfigError(
                    f"{inner} = {small} is over {outer} = {large}: "
                    f"lower {inner} or raise {outer} to {small}"
                )
