"""What travels, counted for the traces: a row for each type of message in a frame.

Nothing here runs unless the level is `messages`: lanes and the ROUTER ask for it once per frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from overlay.host import DRIVER, Host
from overlay.ids import NodeId
from overlay.protocol import NODE_SCOPE, Group, Message, Scope, UdpAddress
from overlay.tracing import Kind, Trace
from overlay.tracing.kinds import CAST, DROPPED, HEARD, RECEIVED, SENT
from overlay.wire.frames import FRAMEWORK_MESSAGES, FRAMEWORK_SCOPE
from overlay.wire.sizes import Sizes

if TYPE_CHECKING:
    from overlay.net.link import Link

Runs = Sequence[tuple[Scope, Sequence[Any]]]


class Tallies:
    """Counts the messages of one node's frames and datagrams."""

    def __init__(self, host: Host, sizes: Sizes) -> None:
        self._host = host
        self._sizes = sizes
        self._protocols: dict[type[Message], str] = {}
        self._tags: dict[Any, type[Message]] = {}
        self._dropped: dict[Link, tuple[int, int]] = {}  # of each link's two lanes, so far

    def sent(self, link: Link, runs: Runs, attached: Sequence[tuple[int, Any]], size: int) -> None:
        """A frame for that link is packed; its payloads that travel apart go by their place."""
        self._tell(SENT, link.name or "", runs, attached, size)

    def received(self, peer: NodeId, runs: Runs, size: int) -> None:
        """A frame of that peer was read."""
        self._tell(RECEIVED, peer, runs, (), size)

    def _tell(
        self, kind: Kind, peer: str, runs: Runs, attached: Sequence[tuple[int, Any]], size: int
    ) -> None:
        """One row for each type; the bytes of the frame are shared out by what each counts as."""
        if len(runs) == 1:
            scope, messages = runs[0]
            types = {*map(type, messages)}
            if len(types) == 1 and msgspec.Raw not in types:  # most frames: nothing to share out
                self._row(kind, peer, scope, types.pop(), len(messages), size)
                return
        apart = {place: len(payload) for place, payload in attached}
        counts: dict[tuple[Scope, type[Message]], list[int]] = {}
        place = total = 0
        for scope, messages in runs:
            for msg in messages:
                weight = self._weight(msg) + apart.get(place, 0)
                entry = counts.setdefault((scope, self._type(msg)), [0, 0])
                entry[0] += 1
                entry[1] += weight
                total += weight
                place += 1
        for (scope, what), (count, weight) in counts.items():
            self._row(kind, peer, scope, what, count, size * weight // (total or 1))

    def _row(
        self, kind: Kind, peer: str, scope: Scope, what: type[Message], count: int, size: int
    ) -> None:
        traces = self._host.traces
        if traces is None or scope == FRAMEWORK_SCOPE:
            return  # marks and pieces: what travels in pieces is told when it is whole
        row = Trace(kind, peer, count=count, bytes=size, message=what.__name__)
        traces.take(self.protocol_of(what), scope, row)

    def look_for_drops(self, links: Iterable[Link]) -> None:
        """Tell what found the queues of links full since the last look."""
        traces, seen, self._dropped = self._host.traces, self._dropped, {}
        for link in links:
            counts = (link.writer.dropped, link.dropped_bulk)
            before = seen.get(link, (0, 0))
            self._dropped[link] = counts
            for lane, now, earlier in zip(("first", "bulk"), counts, before, strict=True):
                if now > earlier and traces is not None:
                    row = Trace(DROPPED, link.name or "", count=now - earlier, detail=lane)
                    traces.take(DRIVER, NODE_SCOPE, row)

    def cast(self, to: UdpAddress | Group, scope: Scope, msg: Message, size: int) -> None:
        """A datagram left."""
        self._tell_one(CAST, f"{to.host}:{to.port}", scope, msg, size)

    def heard(self, peer: NodeId, scope: Scope, msg: Message, size: int) -> None:
        """A datagram came."""
        self._tell_one(HEARD, peer, scope, msg, size)

    def _tell_one(self, kind: Kind, peer: str, scope: Scope, msg: Message, size: int) -> None:
        traces, what = self._host.traces, type(msg)
        if traces is not None:
            row = Trace(kind, peer, bytes=size, message=what.__name__)
            traces.take(self.protocol_of(what), scope or NODE_SCOPE, row)

    def _weight(self, msg: Any) -> int:
        """Its bytes, or what they are counted as: nothing is encoded for this."""
        if isinstance(msg, msgspec.Raw):
            return len(memoryview(msg))
        kind = type(msg)
        base = self._sizes.with_payload.get(kind)
        if base is not None:
            return base + len(msg.payload)
        rule = self._sizes.bounded.get(kind)
        if rule is None:
            return 64 + len(getattr(msg, "payload", b""))  # as read: nobody measures it again
        size, variable = rule
        return size + sum([each * len(getattr(msg, name)) for name, each in variable])

    def _type(self, msg: Any) -> type[Message]:
        if not isinstance(msg, msgspec.Raw):
            return type(msg)
        tag = _TAG.decode(msg).tag
        if tag not in self._tags:
            self._learn()
        return self._tags[tag]

    def protocol_of(self, what: type[Message]) -> str:
        """Whose message that is."""
        if what not in self._protocols:
            self._learn()
        return self._protocols.get(what, DRIVER)

    def _learn(self) -> None:
        for instance in self._host.instances:
            for kind in instance.protocol.messages:
                self._protocols[kind] = instance.name
        self._protocols.update(dict.fromkeys(FRAMEWORK_MESSAGES, DRIVER))
        self._tags = {kind.__struct_config__.tag: kind for kind in self._protocols}


class _Tagged(msgspec.Struct, array_like=True):
    """What any encoded message begins with; the rest of the array is skipped."""

    tag: int


_TAG = msgspec.msgpack.Decoder(_Tagged)
