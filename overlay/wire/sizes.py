"""How many bytes a message can take on the wire, without encoding it.

Queues are capped in bytes at the moment of queueing, so this runs for every message sent: for
most types it is an addition. Types with lists or nested values are measured by encoding them;
those bytes are then sent as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from msgspec import inspect

from overlay.errors import LocalProtocolError
from overlay.limits import Limits
from overlay.protocol import Message
from overlay.wire.checks import Checks, payload_bound, shape_of
from overlay.wire.frames import SCOPE_CHARACTERS

BATCH_BYTES = 120_000
"""A batch is closed at this size. Half of it cost a tenth of the rate at 100 B and a third at
1 KiB, twice as much gained nothing; and a head that is shorter than `limits.string_bytes` spares
the reader a look at each string."""

HEAD_BYTES = 32  # what a head takes besides its sections, with one index of an attached payload
INDEX_BYTES = 5  # each further index

_HEADER = 10  # array header and tag
_SCALAR = 9  # the longest MessagePack number
_LENGTH = 5  # the longest header of bytes or a string
_UTF8 = 4  # bytes that one character can take


class Encoded(NamedTuple):
    """A message that is encoded once, for any number of peers."""

    kind: type[Message]
    raw: msgspec.Raw
    size: int  # what to count `raw` as
    payload: bytes | None  # that travels apart: nobody encodes or copies it


class Sizes:
    """Size bounds of the message types of one node."""

    def __init__(self, kinds: Iterable[type[Message]], limits: Limits) -> None:
        self.batch_bytes = min(BATCH_BYTES, limits.frame_bytes - HEAD_BYTES)
        # Counting each message as at least this long keeps a batch under limits.batch_messages
        # without counting messages.
        self._least = -(-self.batch_bytes // limits.batch_messages)
        self._strings = limits.string_bytes
        self._inline = limits.payload_inline
        self._longest = limits.message_bytes
        self.surely_fits = limits.frame_bytes - HEAD_BYTES - section_bytes("x" * SCOPE_CHARACTERS)
        """A message that counts as no more has a place in a frame, whatever its scope."""
        self._checks = Checks(limits)
        self.with_payload: dict[type[Message], int] = {}
        """Types whose one variable field is `payload`: what the rest takes at most.

        Without those of the bulk lane: who finds a type here may put it into the other one.
        """
        self.bounded: dict[type[Message], tuple[int, tuple[tuple[str, int], ...]]] = {}
        """Types of scalars, text and bytes: a constant, and (field, bytes per item)."""
        self.carriers: dict[type[Message], None] = {}
        """Types with a `payload` that may travel apart, whatever else they hold."""
        self._encoder = msgspec.msgpack.Encoder()
        self.learn(kinds)

    def learn(self, kinds: Iterable[type[Message]]) -> None:
        """Take in the types of protocols that were added."""
        new = tuple(kinds)
        self._checks.learn(new)
        for kind in new:
            if payload_bound(kind) is not None:
                self.carriers[kind] = None
            self._learn(kind)

    def _learn(self, kind: type[Message]) -> None:
        constant, variable = _HEADER, []
        for field in shape_of(kind).fields:
            if isinstance(field.type, (inspect.IntType, inspect.FloatType)):
                constant += _SCALAR
            elif isinstance(field.type, (inspect.BoolType, inspect.NoneType)):
                constant += 1
            elif isinstance(field.type, inspect.BytesType):
                constant += _LENGTH
                variable.append((field.name, 1))
            elif isinstance(field.type, inspect.StrType):
                constant += _LENGTH
                variable.append((field.name, _UTF8))
            else:
                return  # neither table has it: measured by encoding
        if variable == [("payload", 1)] and not kind.bulk:
            self.with_payload[kind] = max(constant, self._least)
        else:
            self.bounded[kind] = (constant, tuple(variable))

    def bound(self, msg: Message) -> tuple[int, Message | msgspec.Raw]:
        """Return what to count `msg` as, and what to hand to the encoder.

        LocalProtocolError for what a receiver with the same limits would refuse.
        """
        kind = type(msg)
        base = self.with_payload.get(kind)
        if base is not None:
            return base + len(msg.payload), msg  # type: ignore[attr-defined]
        rule = self.bounded.get(kind)
        if rule is not None:
            size, variable = rule
            for name, each in variable:
                size += each * len(getattr(msg, name))
            if size > self._strings:  # a shorter message holds no longer string
                self._check(msg)
            return max(size, self._least), msg
        encoded = self._encoder.encode(msg)
        if len(encoded) > self._strings or kind in self._checks.open_ended:
            self._check(msg)
        return self.of_encoded(encoded), msgspec.Raw(encoded)

    def encoded(self, msg: Message) -> Encoded:
        """The same for a message that is encoded once; a long payload stays as it is."""
        kind, length = type(msg), 0
        if kind in self.carriers:
            length = len(msg.payload)  # type: ignore[attr-defined]
            if length > self._longest:
                raise LocalProtocolError(
                    f"{kind.__name__} carries {length} bytes; limits.message_bytes is"
                    f" {self._longest}"
                )
            if length >= self._inline:
                return self._bare(msg)
        size, encodable = self.bound(msg)
        if length and size > self.surely_fits:
            return self._bare(msg)
        return self._encoded(kind, size, encodable, None)

    def _bare(self, msg: Message) -> Encoded:
        size, encodable = self.bound(msgspec.structs.replace(msg, payload=b""))
        return self._encoded(type(msg), size, encodable, msg.payload)  # type: ignore[attr-defined]

    def _encoded(
        self, kind: type[Message], size: int, encodable: Message | msgspec.Raw, apart: bytes | None
    ) -> Encoded:
        if not isinstance(encodable, msgspec.Raw):
            encoded = self._encoder.encode(encodable)
            size, encodable = self.of_encoded(encoded), msgspec.Raw(encoded)
        return Encoded(kind, encodable, size, apart)

    def _check(self, msg: Message) -> None:
        fault = self._checks.fault(msg)
        if fault is not None:
            raise LocalProtocolError(f"peers would refuse this {type(msg).__name__}: {fault}")

    def of_encoded(self, encoded: bytes) -> int:
        """What to count a message as that is encoded already."""
        return max(len(encoded), self._least)


def section_bytes(scope: str) -> int:
    """What a section takes besides its messages."""
    return 1 + _LENGTH + _UTF8 * len(scope) + _LENGTH
