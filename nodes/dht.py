"""The hash table as applications use it: `peer.dht`.

await peer.dht.put("colour", "blue")
await peer.dht.get("colour")                     # 'blue'
await peer.dht.replace("colour", "blue", "red")  # True: it was blue
async for value in peer.dht.watch("colour"):
    print(value)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import msgspec
import trio
from trio.lowlevel import Abort, current_task, reschedule, wait_task_rescheduled

from nodes.dht_errors import OperationRefused, OutcomeUnknown, TableError, failure
from nodes.dht_watch import KeyWatch
from overlay.errors import LocalProtocolError
from protocols.dht.events import (
    MajorityLost,
    RebalancingProgressed,
    StorageZoneAdded,
    StorageZoneRemoved,
    TableJoined,
)
from protocols.dht.interface import Kind, Operation, Outcome, Status, Whereabouts
from protocols.dht.machine import Dht

if TYPE_CHECKING:
    from nodes.event_stream import EventStream
    from nodes.node import Node
    from overlay.protocol import Event

__all__ = ["KeyWatch", "OperationRefused", "OutcomeUnknown", "PeerTable", "TableError"]

Key: TypeAlias = bytes | str
"""Any bytes; text is its UTF-8."""

DhtEvent: TypeAlias = (
    TableJoined | StorageZoneAdded | StorageZoneRemoved | RebalancingProgressed | MajorityLost
)
DHT_EVENTS: tuple[type[Event], ...] = (
    *(TableJoined, StorageZoneAdded, StorageZoneRemoved, RebalancingProgressed, MajorityLost),
)
ASK_AGAIN = 0.1  # s after a refusal, while the table is awaited
WINDOW = 512  # operations of one `get_many` or `put_many` that are under way at a time

# Deterministic, so that `replace(old, new)` finds a mapping equal whatever its order.
_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.Decoder().decode
_DONE = Status.DONE


class PeerTable:
    """Each operation takes effect at one moment between its call and its return, or raises.

    Values are anything that MessagePack can say but None, which stands for "no value".
    OperationRefused: nothing was done. OutcomeUnknown: nobody can tell. LocalProtocolError: the
    call itself is wrong, or this node has no right to it. A call that is cancelled, or left by a
    timeout, may still take effect.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._open = 0  # operations that wait for their answer
        self._submit: Callable[..., None] = self._submit_first

    # -- reading ------------------------------------------------------------------------------

    async def get(self, key: Key, *, stale_ok: bool = False) -> Any:
        """The value, or None; with `stale_ok` perhaps an older one, from the nearest replica."""
        done = await self._do(Operation(Kind.GET, packed_key(key), b"", b"", 0.0, stale_ok))
        value = done.value
        return value if value is None else _decode(value)

    async def contains(self, key: Key, *, stale_ok: bool = False) -> bool:
        """Whether the key has a value."""
        operation = Operation(Kind.CONTAINS, packed_key(key), b"", b"", 0.0, stale_ok)
        return (await self._do(operation)).applied

    # -- writing ------------------------------------------------------------------------------

    async def put(self, key: Key, value: Any, *, ttl: float = 0.0) -> bool:
        """Insert or replace; True. After `ttl` seconds, if given, the key has no value again."""
        operation = Operation(Kind.PUT, packed_key(key), packed(value), b"", ttl)
        return (await self._do(operation)).applied

    async def put_and_retrieve(self, key: Key, value: Any, *, ttl: float = 0.0) -> Any:
        """Insert or replace; the value before, or None."""
        operation = Operation(Kind.PUT_AND_RETRIEVE, packed_key(key), packed(value), b"", ttl)
        return _unpacked((await self._do(operation)).value)

    async def put_if_absent(self, key: Key, value: Any, *, ttl: float = 0.0) -> bool:
        """Insert, unless the key has a value; whether it was inserted."""
        operation = Operation(Kind.PUT_IF_ABSENT, packed_key(key), packed(value), b"", ttl)
        return (await self._do(operation)).applied

    @overload
    async def replace(self, key: Key, value: Any, /, *, ttl: float = ...) -> Any: ...

    @overload
    async def replace(self, key: Key, old: Any, new: Any, /, *, ttl: float = ...) -> bool: ...

    async def replace(self, key: Key, *values: Any, ttl: float = 0.0) -> Any:
        """With one value: replace what is there, if anything is; the value before, or None.

        With two, old and new: replace if the value is the old one; whether it was.
        """
        match values:
            case (value,):
                operation = Operation(Kind.REPLACE, packed_key(key), packed(value), b"", ttl)
                return _unpacked((await self._do(operation)).value)
            case (old, new):
                what = (packed_key(key), packed(new), packed(old))
                return (await self._do(Operation(Kind.REPLACE_VALUE, *what, ttl))).applied
            case _:
                raise TypeError("replace takes a key and a value, or a key, an old and a new value")

    @overload
    async def remove(self, key: Key, /) -> bool: ...

    @overload
    async def remove(self, key: Key, value: Any, /) -> bool: ...

    async def remove(self, key: Key, *value: Any) -> bool:
        """Remove the key, or only if it has that value; whether it was removed."""
        if len(value) > 1:
            raise TypeError("remove takes a key, and the value that it must have")
        if value:
            operation = Operation(Kind.REMOVE_VALUE, packed_key(key), b"", packed(value[0]))
        else:
            operation = Operation(Kind.REMOVE, packed_key(key))
        return (await self._do(operation)).applied

    # -- many at once -------------------------------------------------------------------------

    async def get_many(self, keys: Iterable[Key], *, stale_ok: bool = False) -> list[Any]:
        """Their values in order, as if by `get` for each: the fastest way."""
        get = Kind.GET
        outcomes = await self._do_all(
            [Operation(get, packed_key(key), b"", b"", 0.0, stale_ok) for key in keys]
        )
        return [_unpacked(outcome.value) for outcome in outcomes]

    async def put_many(self, values: Mapping[Any, Any], *, ttl: float = 0.0) -> None:
        """As if by `put` for each; if some fail, all others are done before the first error."""
        put = Kind.PUT
        await self._do_all(
            [Operation(put, packed_key(k), packed(v), b"", ttl) for k, v in values.items()]
        )

    # -- more ---------------------------------------------------------------------------------

    def watch(self, key: Key) -> KeyWatch:
        """The value now and whenever it is another: an async iterator; close it, or use `with`.

        A reader that is slower than the changes gets the last one.
        """
        return KeyWatch(self._node, packed_key(key), _unpacked)

    def where(self, key: Key) -> Whereabouts:
        """Where the key lives, as far as this node knows without asking."""
        return self._machine.where(packed_key(key))

    def watch_events(self) -> EventStream[DhtEvent]:
        """Hear what happens to the table, as `watch_members` does of the zone."""
        return self._node.events(*DHT_EVENTS)

    async def accept_loss(self) -> int:
        """Give up replicas that are gone for good, where this node can reach no majority.

        What only they had is lost, and so is what they accepted since if they were merely out of
        reach. Returns for how many shards; run it on each server that survived.
        """
        await trio.lowlevel.checkpoint()
        return self._node.call(self._machine.accept_loss)

    async def ready(self) -> None:
        """Wait until the table answers this node, however long it takes to be founded."""
        while True:
            try:
                await self.contains(b"")
            except OperationRefused:
                await trio.sleep(ASK_AGAIN)
            else:
                return

    @property
    def _machine(self) -> Dht:
        return self._node.protocol(Dht)

    # -- how ----------------------------------------------------------------------------------

    async def _do(self, operation: Operation) -> Outcome:
        waiting = _Waiting()
        # While others wait for answers this one leaves with the next tick's frame; alone, at once.
        self._submit(operation, waiting.answer, self._open > 0)
        self._open += 1
        try:
            await wait_task_rescheduled(waiting.abort)
        finally:
            self._open -= 1
        outcome = waiting.outcome
        if outcome[0] is not _DONE:
            raise failure(operation, outcome)
        return outcome

    async def _do_all(self, operations: Sequence[Operation]) -> list[Outcome]:
        batch = _Batch(operations, self._submit)
        self._open += 1
        try:
            batch.begin()
            while batch.left:
                await batch.progress()
        finally:
            batch.abandon()
            self._open -= 1
        for operation, outcome in zip(operations, batch.outcomes, strict=True):
            if outcome[0] is not _DONE:
                raise failure(operation, outcome)
        await trio.lowlevel.checkpoint()
        return batch.outcomes

    def _submit_first(self, operation: Operation, answer: Any, later: bool) -> None:
        """The node runs by now: from now on without looking the machine up."""
        submit = self._machine.submit
        call = self._node.driver.call

        def submitting(operation: Operation, answer: Any, later: bool) -> None:
            # A task that waits for nothing else does not wait for a flush to come, either.
            call(submit, operation, answer, gap=inf if later else 0.0)

        self._submit = submitting
        submitting(operation, answer, later)


class _Waiting:
    """One task that waits for one outcome."""

    __slots__ = ("_task", "outcome")

    def __init__(self) -> None:
        self._task: trio.lowlevel.Task | None = current_task()
        self.outcome: Outcome  # set before the task goes on

    def answer(self, outcome: Outcome) -> None:
        """It is there; whoever was cancelled is not interested any more."""
        if self._task is not None:
            self.outcome = outcome
            reschedule(self._task)
            self._task = None

    def abort(self, _raise_cancel: Any) -> Abort:
        """Wait no more."""
        self._task = None
        return Abort.SUCCEEDED


class _Batch:
    """Many operations of one task: a window of them is under way, and one wake-up tells of many."""

    def __init__(self, operations: Sequence[Operation], submit: Callable[..., None]) -> None:
        self.left = len(operations)
        self.outcomes: list[Any] = [None] * len(operations)
        self._operations = operations
        self._submit = submit
        self._next = 0
        self._waiting: _Waiting | None = None

    def begin(self) -> None:
        """Submit the first ones."""
        self._more(min(WINDOW, len(self._operations)))

    def _more(self, upto: int) -> None:
        while self._next < upto:
            number = self._next
            self._next += 1

            def answer(outcome: Outcome, number: int = number) -> None:
                self._answered(number, outcome)

            try:
                self._submit(self._operations[number], answer, True)
            except LocalProtocolError as error:
                self._answered(number, Outcome(Status.REFUSED, reason=str(error)))

    def _answered(self, number: int, outcome: Outcome) -> None:
        self.outcomes[number] = outcome
        self.left -= 1
        if self._waiting is not None:
            self._waiting.answer(outcome)
            self._waiting = None

    async def progress(self) -> None:
        """Wait for some answers, and fill the window again."""
        under_way = self._next - (len(self._operations) - self.left)
        if under_way:
            self._waiting = _Waiting()
            await wait_task_rescheduled(self._waiting.abort)
        done = len(self._operations) - self.left
        self._more(min(len(self._operations), done + WINDOW))

    def abandon(self) -> None:
        """The task is gone: what is answered still is of no interest."""
        self._waiting = None


def packed_key(key: Key) -> bytes:
    """The key as it travels."""
    if key.__class__ is bytes:
        return key
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, bytes | bytearray | memoryview):
        return bytes(key)
    raise LocalProtocolError(f"a key is bytes or text, not {type(key).__name__}")


def packed(value: Any) -> bytes:
    """The value as it is kept."""
    if value is None:
        raise LocalProtocolError("None stands for no value: remove the key instead")
    try:
        return _encode(value)
    except (TypeError, OverflowError, msgspec.MsgspecError) as error:
        raise LocalProtocolError(f"MessagePack cannot say it: {error}") from None


def _unpacked(value: bytes | None) -> Any:
    return None if value is None else _decode(value)
