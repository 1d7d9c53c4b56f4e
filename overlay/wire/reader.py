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
from overlay.wire.checks import Checks
from overlay.wire.frames import FRAMEWORK_MESSAGES, OLDEST_VERSION, VERSION

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
        self._limits = limits
        self._known: dict[type[Message], None] = {}
        self._start = msgspec.msgpack.Decoder(_Start)
        self._anything = msgspec.msgpack.Decoder()
        self._skeleton = msgspec.msgpack.Decoder(
            tuple[int, float, list[tuple[str, list[msgspec.Raw]]], list[int]]
        )
        self.learn((*FRAMEWORK_MESSAGES, *kinds))

    def learn(self, kinds: Iterable[type[Message]]) -> None:
        """Take in the types of protocols that were added."""
        new = [kind for kind in kinds if kind not in self._known]
        if not new:
            return
        self._known.update(dict.fromkeys(new))
        known = tuple(self._known)
        self._checks = Checks(known, self._limits)
        self._tags = {kind.__struct_config__.tag for kind in known}
        any_message: Any = Union.__getitem__(known)  # the types are known only at run time
        sections = list[tuple[str, list[any_message]]]
        self._frame = msgspec.msgpack.Decoder(tuple[int, float, sections, list[int]])
        self._message = msgspec.msgpack.Decoder(any_message)

    def read(self, parts: Sequence[Part]) -> Frame:
        """Return the messages of a frame; RemoteProtocolError when all of it is bad."""
        head = parts[0]
        if len(head) > self._limits.frame_bytes:
            raise RemoteProtocolError("frame-too-large", f"{len(head)} bytes")
        try:
            version, sent_at, sections, attached = self._frame.decode(head)
        except (msgspec.DecodeError, RecursionError):
            return self._read_carefully(parts)
        if not OLDEST_VERSION <= version <= VERSION:
            raise RemoteProtocolError("wrong-version", str(version))
        count = sum(len(messages) for _, messages in sections)
        if count > self._limits.batch_messages:
            raise RemoteProtocolError("batch-too-long", f"{count} messages")
        if len(head) > self._limits.string_bytes or self._checks.open_ended:
            # A shorter head cannot hold a longer string: most frames need no look at each.
            fault = self._checks.fault
            if any(fault(msg) for _, messages in sections for msg in messages):
                return self._read_carefully(parts)
        if attached or len(parts) > 1:
            _attach(sections, attached, parts, count)
        return Frame(sent_at, sections, [])

    def _read_carefully(self, parts: Sequence[Part]) -> Frame:
        head = parts[0]
        try:
            version = self._start.decode(head).version
        except (msgspec.DecodeError, RecursionError) as error:
            raise RemoteProtocolError("malformed-frame", str(error)) from None
        if not OLDEST_VERSION <= version <= VERSION:
            raise RemoteProtocolError("wrong-version", str(version))
        try:
            _, sent_at, skeleton, attached = self._skeleton.decode(head)
        except msgspec.ValidationError as error:
            raise RemoteProtocolError("wrong-shape", str(error)) from None
        except (msgspec.DecodeError, RecursionError) as error:
            raise RemoteProtocolError("malformed-frame", str(error)) from None
        count = sum(len(messages) for _, messages in skeleton)
        if count > self._limits.batch_messages:
            raise RemoteProtocolError("batch-too-long", f"{count} messages")
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
            _attach(sections, attached, parts, count)
        kept = [(scope, [m for m in messages if m is not None]) for scope, messages in sections]
        return Frame(sent_at, [section for section in kept if section[1]], refused)

    def message(self, encoded: bytes | msgspec.Raw) -> Any:
        """Decode and check one message alone."""
        try:
            msg = self._message.decode(encoded)
        except (msgspec.DecodeError, RecursionError) as error:
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
        except msgspec.DecodeError:
            return "malformed-message"
        if isinstance(value, list) and value and isinstance(value[0], int):
            return "wrong-shape" if value[0] in self._tags else "unknown-tag"
        return "wrong-shape"


def _attach(
    sections: list[tuple[str, list[Any]]], attached: list[int], parts: Sequence[Part], count: int
) -> None:
    """Give each message whose payload travelled as a part of its own that payload back."""
    if len(attached) != len(parts) - 1:
        raise RemoteProtocolError("wrong-parts", f"{len(parts) - 1} for {len(attached)} messages")
    if attached and not (attached[0] >= 0 and attached[-1] < count):
        raise RemoteProtocolError("wrong-parts", "an index outside of the batch")
    if any(a >= b for a, b in pairwise(attached)):
        raise RemoteProtocolError("wrong-parts", "indices out of order")
    begin, wanted, part = 0, iter(attached), 1
    index = next(wanted, count)
    for _, messages in sections:
        end = begin + len(messages)
        while index < end:
            msg = messages[index - begin]
            if msg is not None:
                if getattr(msg, "payload", None) != b"":
                    raise RemoteProtocolError("wrong-parts", f"{type(msg).__name__} takes none")
                messages[index - begin] = msgspec.structs.replace(msg, payload=parts[part])
            part += 1
            index = next(wanted, count)
        begin = end
