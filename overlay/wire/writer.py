"""A queue of one link: messages wait unencoded and leave as frames, one encoding per batch."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from overlay.errors import LocalProtocolError
from overlay.limits import Limits
from overlay.logs import about
from overlay.protocol import Message, Scope
from overlay.wire.frames import SCOPE_CHARACTERS, VERSION
from overlay.wire.sizes import HEAD_BYTES, INDEX_BYTES, Encoded, Sizes, section_bytes

Part: TypeAlias = bytes | memoryview
Parts: TypeAlias = tuple[list[Part], int]
"""One encoded frame, with the bytes that it counts as."""

Tally: TypeAlias = Callable[[list[tuple[Scope, list[Any]]], list[tuple[int, Part]], int], None]
"""Takes the messages of a batch, the payloads beside it by place, and the bytes of all."""

log = logging.getLogger("overlay.wire")

UNENCODABLE = (OverflowError, RecursionError, TypeError, ValueError, msgspec.EncodeError)
ATTACHED_BYTES = 1 << 20  # parts of one frame together: enough to share a send, few to hold back


class BatchWriter:
    """Collects messages for one peer and packs them into frames, capped in bytes."""

    __slots__ = (
        "_attached",
        "_attached_bytes",
        "_attached_cap",
        "_batch",
        "_carriers",
        "_clock",
        "_encoder",
        "_granted",
        "_inline",
        "_limits",
        "_room",
        "_runs",
        "_sizes",
        "_surely_fits",
        "_with_payload",
        "capacity",
        "dropped",
        "frames",
        "left",
        "push",
        "scope",
        "tally",
        "version",
    )

    def __init__(
        self, sizes: Sizes, limits: Limits, capacity: int, clock: Callable[[], float]
    ) -> None:
        self.version = VERSION  # until the handshake agrees on another
        self.capacity = capacity
        self.dropped = 0  # messages that found the queue full
        self.tally: Tally | None = None  # told of each batch that is closed
        self.frames: deque[Parts] = deque()
        self._sizes = sizes
        self._with_payload = sizes.with_payload
        self._carriers = sizes.carriers
        self._limits = limits
        self._inline = limits.payload_inline
        self._batch = sizes.batch_bytes
        self._surely_fits = sizes.surely_fits
        self._attached_cap = min(ATTACHED_BYTES, limits.frame_bytes)
        self._clock = clock
        self._encoder = msgspec.msgpack.Encoder()
        self._room = capacity  # bytes that all closed batches may still take
        self._runs: list[tuple[Scope, list[Any]]] = []  # the open batch
        # These three are the fast path of `NetEffects.send`: while `scope` is that of the last
        # message and `left` has room, a small message is queued by taking its bytes off `left`
        # and calling `push`.
        self.scope: Scope | None = None
        self.push: Callable[[Any], None] = [].append
        self._granted = self.left = min(capacity, self._batch)  # bytes for the open batch
        self._attached: list[tuple[int, Part]] = []
        self._attached_bytes = 0

    def __bool__(self) -> bool:
        """True while anything waits."""
        return bool(self._runs or self.frames)

    @property
    def room(self) -> int:
        """Bytes that may still be queued."""
        return self._room - (self._granted - self.left)

    @property
    def queued(self) -> int:
        """Bytes that wait, with what is reserved."""
        return self.capacity - self.room

    def put(self, scope: Scope, msg: Message) -> bool:
        """Queue one message; False when that closed a batch, which is then worth sending.

        A message that finds the queue full is dropped and counted.
        """
        kind = type(msg)
        base = self._with_payload.get(kind)
        if base is not None:
            length = len(msg.payload)  # type: ignore[attr-defined]
            if length < self._inline and base + length <= self._surely_fits:
                return self._append(scope, msg, base + length)
            return self._put_apart(scope, msg)
        carries = kind in self._carriers
        if carries and len(msg.payload) >= self._inline:  # type: ignore[attr-defined]
            return self._put_apart(scope, msg)
        size, encodable = self._sizes.bound(msg)
        if size > self._surely_fits:
            if carries:
                return self._put_apart(scope, msg)
            self.check_fit(scope, kind, encodable)
        return self._append(scope, encodable, size)

    def put_encoded(self, scope: Scope, encoded: Encoded) -> bool:
        """Queue a message that was encoded once for several peers."""
        kind, raw, size, payload = encoded
        if size > self._surely_fits:
            self.check_fit(scope, kind, raw)
        if payload is None:
            return self._append(scope, raw, size)
        return self._attach(scope, raw, size, payload)

    def reserve(self, size: int) -> bool:
        """Take room for what waits elsewhere; False, and one message dropped, when it is full."""
        if size > self.room:
            self.dropped += 1
            return False
        self._room -= size
        self._leave_room()
        return True

    def release(self, size: int) -> None:
        """Give such room back."""
        self._room += size
        if not self._runs:
            self._granted = self.left = min(self._room, self._batch)

    def check_fit(
        self, scope: Scope, kind: type[Message], encodable: Message | msgspec.Raw
    ) -> None:
        """LocalProtocolError if a frame of its own would be too small for it.

        Encodes once more to know: asked only of what is counted as nearly a whole frame.
        """
        size = len(self._encoder.encode(encodable))
        if size > self._limits.frame_bytes - HEAD_BYTES - section_bytes(scope):
            raise LocalProtocolError(
                f"{kind.__name__} takes {size} bytes; only a field `payload: bytes` may grow past"
                f" limits.frame_bytes ({self._limits.frame_bytes})"
            )

    def _append(self, scope: Scope, encodable: Message | msgspec.Raw, size: int) -> bool:
        if size > self.room:
            self.dropped += 1
            return True
        closed = False
        if scope != self.scope or size > self.left:
            closed = self._make_place(scope, size)
        self.left -= size  # below zero for one message that is longer than a batch
        self.push(encodable)
        return not closed

    def _make_place(self, scope: Scope, size: int) -> bool:
        """Begin a section, or a batch if the open one cannot take it; True when one was closed."""
        section = 0 if scope == self.scope else section_bytes(scope)
        closed = bool(self._runs) and section + size > self.left
        if closed:
            self.pack()
        if scope != self.scope:
            self._begin_run(scope)
        return closed

    def _begin_run(self, scope: Scope) -> None:
        if len(scope) > SCOPE_CHARACTERS:
            raise LocalProtocolError(f"scope {scope[:20]!r}… is over {SCOPE_CHARACTERS} characters")
        run: list[Any] = []
        self.scope = scope
        self.push = run.append
        self._runs.append((scope, run))
        self._withdraw(section_bytes(scope))

    def _withdraw(self, size: int) -> None:
        """Leave the open batch less: its bytes go elsewhere, or into the head."""
        self.left -= size
        self._granted -= size

    def _put_apart(self, scope: Scope, msg: Message) -> bool:
        """Make the payload a part of its own."""
        kind = type(msg)
        payload: bytes = msg.payload  # type: ignore[attr-defined]
        if len(payload) > self._limits.frame_bytes:
            raise LocalProtocolError(
                f"{kind.__name__} carries {len(payload)} bytes: it needs a lane that makes pieces"
            )
        size, encodable = self._sizes.bound(msgspec.structs.replace(msg, payload=b""))
        if size > self._surely_fits:
            self.check_fit(scope, kind, encodable)
        return self._attach(scope, encodable, size, payload)

    def _attach(self, scope: Scope, bare: Message | msgspec.Raw, size: int, payload: Part) -> bool:
        size += INDEX_BYTES
        if size + len(payload) > self.room:
            self.dropped += 1
            return True
        full = self._attached_bytes + len(payload) > self._attached_cap
        if full and self._attached:
            self.pack()
        kept = self._append(scope, bare, size)
        self._room -= len(payload)
        self._leave_room()
        self._attached.append((sum(len(run) for _, run in self._runs) - 1, payload))
        self._attached_bytes += len(payload)
        return kept and not full and self._attached_bytes < self._attached_cap

    def _leave_room(self) -> None:
        """What is kept elsewhere may leave less for the open batch than it was granted."""
        excess = self.left - self.room
        if excess > 0:
            self._withdraw(excess)

    def pack(self) -> None:
        """Close the open batch into an encoded frame."""
        if not self._runs:
            return
        try:
            head = self._head()
        except UNENCODABLE:
            self._drop_unencodable()
            head = self._head()
        parts: list[Part] = [head]
        parts.extend(payload for _, payload in self._attached)
        used = self._granted - self.left
        if self.tally is not None:
            self.tally(self._runs, self._attached, len(head) + self._attached_bytes)
        self.frames.append((parts, used + self._attached_bytes))
        self._room -= used
        self._granted = self.left = min(self._room, self._batch)
        self._runs = []
        self.scope = None
        self._attached = []
        self._attached_bytes = 0

    def _head(self) -> bytes:
        indices = [index for index, _ in self._attached]
        return self._encoder.encode((self.version, self._clock(), self._runs, indices))

    def _drop_unencodable(self) -> None:
        """Take out what MessagePack cannot say (an integer of 80 bits): the rest must not suffer.

        Each message was queued unencoded, so its sender is no longer there to hear of it.
        """
        payloads = dict(self._attached)
        runs: list[tuple[Scope, list[Any]]] = []
        self._attached = []
        place = kept = 0
        for scope, run in self._runs:
            good: list[Any] = []
            for msg in run:
                try:
                    self._encoder.encode(msg)
                except UNENCODABLE as error:
                    self.dropped += 1
                    kind = type(msg).__name__
                    log.error(
                        "a %s cannot be encoded: %s",
                        kind,
                        error,
                        extra=about("not-encoded", "wire", kind=kind),
                    )
                else:
                    good.append(msg)
                    if place in payloads:
                        self._attached.append((kept, payloads[place]))
                    kept += 1
                place += 1
            runs.append((scope, good))
        self._runs = runs

    def sent(self) -> None:
        """The first frame left: give its room back."""
        _, size = self.frames.popleft()
        self.release(size)

    def discard(self) -> int:
        """Drop everything that waits, and return how many frames that was."""
        self.pack()
        lost = len(self.frames)
        while self.frames:
            self.sent()
        return lost
