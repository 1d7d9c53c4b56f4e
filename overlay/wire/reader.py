"""Frames to typed messages. Only this module and `datagrams` meet malformed bytes.

A good frame costs one decoding call. A frame that fails it is read again message by message, so
that each bad one is refused under its own reason and the good ones beside it still arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Union

import msgspec

from overlay.errors import RemoteProtocolError
from overlay.limits import Limits
from overlay.protocol import Message
from overlay.wire.checks import Checks, payload_bound
from overlay.wire.frames import (
    FRAMEWORK_MESSAGES,
    OLDEST_VERSION,
    UNDECODABLE,
    VERSION,
    ShortText,
)

Part = bytes | memoryview
Refused = list[RemoteProtocolError]


class Frame(NamedTuple):
    """What one frame brought."""

    sent_at: float
    sections: list[tuple[str, list[Any]]]
    refused: Refused  # messages that were not let through, one error each


class _Start(msgspec.Struct, array_like=True):
    version: int


class BatchReader:
    """Decodes the frames of one node's message types, within its limits."""

    def __init__(self, kinds: Iterable[type[Message]], limits: Limits) -> None:
        self.limits = limits
        self._known: dict[type[Message], None] = {}
        self._checks = Checks(limits)
        self._payloads: dict[type[Message], int] = {}  # types with one, and its longest
        self._start = msgspec.msgpack.Decoder(_Start)
        self._anything = msgspec.msgpack.Decoder()
        self._skeleton = msgspec.msgpack.Decoder(
            tuple[int, float, list[tuple[ShortText, list[msgspec.Raw]]], list[int]]
        )
        self.learn((*FRAMEWORK_MESSAGES, *kinds))

    def learn(self, kinds: Iterable[type[Message]]) -> None:
        """Take in the types of protocols that were added."""
        new = [kind for kind in kinds if kind not in self._known]
        if not new:
            return
        self._checks.learn(new)
        self._known.update(dict.fromkeys(new))
        known = tuple(self._known)
        for kind in new:
            longest = payload_bound(kind)
            if longest is not None:
                self._payloads[kind] = longest
        self._tags = {kind.__struct_config__.tag for kind in known}
        any_message: Any = Union.__getitem__(known)  # the types are known only at run time
        sections = list[tuple[ShortText, list[any_message]]]
        self._frame = msgspec.msgpack.Decoder(tuple[int, float, sections, list[int]])
        self._message = msgspec.msgpack.Decoder(any_message)

    def read(self, parts: Sequence[Part]) -> Frame:
        """Return the messages of a frame; RemoteProtocolError when all of it is bad."""
        if not parts:
            raise RemoteProtocolError("malformed-frame", "no parts")
        head = parts[0]
        if len(head) > self.limits.frame_bytes:
            raise RemoteProtocolError("frame-too-large", f"{len(head)} bytes")
        if len(parts) > 1:
            apart = sum(map(len, parts)) - len(head)
            if apart > self.limits.frame_bytes:
                raise RemoteProtocolError("frame-too-large", f"payloads of {apart} bytes")
        try:
            version, sent_at, sections, attached = self._frame.decode(head)
        except UNDECODABLE:
            return self._read_carefully(parts)
        if not OLDEST_VERSION <= version <= VERSION:
            raise RemoteProtocolError("wrong-version", str(version))
        count = self._count(sections)
        if len(head) > self.limits.string_bytes or self._checks.open_ended:
            # A shorter head cannot hold a longer string: most frames need no look at each.
            fault = self._checks.fault
            if any(fault(msg) for _, messages in sections for msg in messages):
                return self._read_carefully(parts)
        if attached or len(parts) > 1:
            refused = self._attach(sections, attached, parts, count)
            if refused:
                return Frame(sent_at, _kept(sections), refused)
        return Frame(sent_at, sections, [])

    def _count(self, sections: Sequence[tuple[str, Sequence[Any]]]) -> int:
        """Count the messages of a frame; its sections are bounded too, for they may be empty."""
        count = sum([len(messages) for _, messages in sections])
        most = self.limits.batch_messages
        if count > most or len(sections) > most:
            raise RemoteProtocolError(
                "batch-too-long", f"{count} messages in {len(sections)} sections"
            )
        return count

    def _read_carefully(self, parts: Sequence[Part]) -> Frame:
        head = parts[0]
        try:
            version = self._start.decode(head).version
        except UNDECODABLE as error:
            raise RemoteProtocolError("malformed-frame", str(error)) from None
        if not OLDEST_VERSION <= version <= VERSION:
            raise RemoteProtocolError("wrong-version", str(version))
        try:
            _, sent_at, skeleton, attached = self._skeleton.decode(head)
        except msgspec.ValidationError as error:
            raise RemoteProtocolError("wrong-shape", str(error)) from None
        except UNDECODABLE as error:
            raise RemoteProtocolError("malformed-frame", str(error)) from None
        count = self._count(skeleton)
        refused: Refused = []
        sections: list[tuple[str, list[Any]]] = []
        for scope, raws in skeleton:
            messages: list[Any] = []
            for raw in raws:
                try:
                    messages.append(self.message(raw))
                except RemoteProtocolError as error:
                    refused.append(error)
                    messages.append(None)  # keeps the places that `attached` counts
            sections.append((scope, messages))
        if attached or len(parts) > 1:
            refused += self._attach(sections, attached, parts, count)
        return Frame(sent_at, _kept(sections), refused)

    def message(self, encoded: bytes | msgspec.Raw) -> Any:
        """Decode and check one message alone."""
        try:
            msg = self._message.decode(encoded)
        except UNDECODABLE as error:
            raise RemoteProtocolError(self._reason(encoded), str(error)) from None
        fault = self._checks.fault(msg)
        if fault is not None:
            raise fault
        return msg

    def _reason(self, encoded: bytes | msgspec.Raw) -> str:
        try:
            value = self._anything.decode(encoded)
        except RecursionError:
            return "nested-too-deep"
        except UNDECODABLE:
            return "malformed-message"
        if isinstance(value, list) and value and isinstance(value[0], int):
            return "wrong-shape" if value[0] in self._tags else "unknown-tag"
        return "wrong-shape"

    def with_payload(self, msg: Any, payload: Part, reason: str) -> Any:
        """Return a message with its payload that travelled apart, within the bound of its type."""
        longest = self._payloads.get(type(msg))
        if longest is None or msg.payload:
            raise RemoteProtocolError(reason, f"{type(msg).__name__} takes no payload")
        if len(payload) > longest:
            detail = f"{type(msg).__name__} takes {longest} bytes of payload, not {len(payload)}"
            raise RemoteProtocolError("wrong-shape", detail)
        return msgspec.structs.replace(msg, payload=payload)

    def _attach(
        self,
        sections: list[tuple[str, list[Any]]],
        attached: list[int],
        parts: Sequence[Part],
        count: int,
    ) -> Refused:
        """Give messages their payloads back; one that its type does not allow leaves None."""
        if len(attached) != len(parts) - 1:
            detail = f"{len(parts) - 1} for {len(attached)} messages"
            raise RemoteProtocolError("wrong-parts", detail)
        if attached and not (attached[0] >= 0 and attached[-1] < count):
            raise RemoteProtocolError("wrong-parts", "an index outside of the batch")
        if any(a >= b for a, b in pairwise(attached)):
            raise RemoteProtocolError("wrong-parts", "indices out of order")
        refused: Refused = []
        begin, wanted, part = 0, iter(attached), 1
        index = next(wanted, count)
        for _, messages in sections:
            end = begin + len(messages)
            while index < end:
                msg = messages[index - begin]
                if msg is not None:
                    try:
                        msg = self.with_payload(msg, parts[part], "wrong-parts")
                    except RemoteProtocolError as error:
                        if error.reason == "wrong-parts":
                            raise
                        refused.append(error)
                        msg = None
                    messages[index - begin] = msg
                part += 1
                index = next(wanted, count)
            begin = end
        return refused


def _kept(sections: list[tuple[str, list[Any]]]) -> list[tuple[str, list[Any]]]:
    """What is left without the refused messages."""
    kept = [(scope, [msg for msg in messages if msg is not None]) for scope, messages in sections]
    return [section for section in kept if section[1]]
