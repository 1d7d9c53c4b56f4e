"""What topics leave in the traces: a row for each chunk, however many messages it holds."""

from __future__ import annotations

from overlay.ids import NodeId
from overlay.tracing import Kind, Trace
from overlay.tracing.kinds import (
    DELIVERED,
    FORWARDED,
    PUBLISHED,
    RELAYED,
    REPAIRED,
    STREAM_BEGAN,
    STREAM_ENDED,
)
from protocols.topics.core import Core
from protocols.topics.history import Chunk
from protocols.topics.messages import Data, StreamKey
from protocols.topics.modes import Mode, name_of


def published(core: Core, key: StreamKey, topic: str, mode: Mode, chunk: Chunk) -> None:
    """A publisher of this node closed a chunk."""
    first, count, size = chunk.first, chunk.count, len(chunk.payload)
    origin, stream = key
    detail = name_of(mode)
    core.effects.trace(
        Trace(PUBLISHED, "", topic, origin, stream, first, count, size, None, None, None, detail)
    )


def delivered(
    core: Core,
    key: StreamKey,
    topic: str,
    mode: Mode,
    chunk: Chunk,
    *,
    source: NodeId,
    via: NodeId,
    hops: int,
    kind: Kind = DELIVERED,
) -> None:
    """Subscriptions of this node got a chunk; of a relayed stream nobody knows all hops."""
    origin, stream = key
    known = None if source != origin else 0 if via == core.me else hops
    first, count, size, sent_at = chunk.first, chunk.count, len(chunk.payload), chunk.sent_at
    peer, detail = via or source, name_of(mode)
    core.effects.trace(
        Trace(kind, peer, topic, origin, stream, first, count, size, known, None, sent_at, detail)
    )


def began(core: Core, key: StreamKey, topic: str, source: NodeId, start: int) -> None:
    """Subscriptions of this node get a stream from here on."""
    core.effects.trace(
        Trace(STREAM_BEGAN, source, topic, origin=key[0], stream=key[1], first=start)
    )


def left(core: Core, key: StreamKey, topic: str, expected: int) -> None:
    """Nobody here wants a stream any more: what follows is not lost."""
    core.effects.trace(
        Trace(
            STREAM_ENDED,
            topic=topic,
            origin=key[0],
            stream=key[1],
            first=expected,
            detail="unsubscribed",
        )
    )


def relayed(core: Core, key: StreamKey, topic: str, chunk: Chunk, source: NodeId) -> None:
    """This gateway hands a chunk on."""
    core.effects.trace(_row(RELAYED, key, topic, chunk, peer=source, since=chunk.sent_at))


def repaired(core: Core, key: StreamKey, topic: str, chunk: Chunk, peer: NodeId) -> None:
    """A chunk was sent again."""
    core.effects.trace(_row(REPAIRED, key, topic, chunk, peer=peer, since=chunk.sent_at))


def forwarded(core: Core, data: Data, child: NodeId, hops: int) -> None:
    """A chunk went on down its tree."""
    core.effects.trace(
        Trace(
            FORWARDED,
            child,
            data.topic,
            data.origin,
            data.stream,
            data.first,
            data.count,
            len(data.payload),
            hops,
            since=data.sent_at,
            message="TreeData",
        )
    )


def _row(
    kind: Kind,
    key: StreamKey,
    topic: str,
    chunk: Chunk,
    *,
    peer: NodeId = "",
    hops: int | None = None,
    since: float | None = None,
    detail: str = "",
) -> Trace:
    return Trace(
        kind,
        peer,
        topic,
        key[0],
        key[1],
        chunk.first,
        chunk.count,
        len(chunk.payload),
        hops,
        None,
        since,
        detail,
    )
