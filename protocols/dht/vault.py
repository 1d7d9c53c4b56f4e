"""What must be on disk before it is said: records, promises and groups, in the order of writing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from overlay.protocol import Effects
from protocols.dht.groups import Group
from protocols.dht.messages import TableKnown
from protocols.dht.shelf import Record

SELF = b"s"
TABLE = b"t"
SHARD = b"p"  # + shard
RECORD = b"r"  # + shard + key


class KeptShard(msgspec.Struct, frozen=True, array_like=True):
    """A shard's promises on disk."""

    group: Group
    promised: int
    next_ballot: int
    next_group: Group | None


class KeptRecord(msgspec.Struct, frozen=True, array_like=True):
    """A record on disk; `left` is the time that was left to it when it was written, in ms."""

    value: bytes | None
    ballot: int
    sequence: int
    left: int


class Vault:
    """In memory (not `durable`) it keeps nothing, and nothing waits for it."""

    def __init__(self, effects: Effects, *, durable: bool) -> None:
        self._effects = effects
        self.durable = durable
        self._written = 0
        self._kept = 0
        self._waiting: deque[tuple[int, Callable[..., None], tuple[Any, ...]]] = deque()
        self._encode = msgspec.msgpack.Encoder().encode

    def after(self, callback: Callable[..., None], *args: Any) -> None:
        """Call as soon as everything that was written until now is on disk: perhaps at once."""
        if self._kept >= self._written:
            callback(*args)
        else:
            self._waiting.append((self._written, callback, args))

    def on_stored(self, token: int) -> None:
        """That write is on disk, and so are all before it."""
        self._kept = token
        waiting = self._waiting
        while waiting and waiting[0][0] <= token:
            _, callback, args = waiting.popleft()
            callback(*args)

    def _put(self, key: bytes, value: bytes | None) -> None:
        if self.durable:
            self._written += 1
            self._effects.store(key, value, self._written)

    def put_self(self, life: int) -> None:
        """Who this node is in its groups."""
        self._put(SELF, life.to_bytes(8, "big"))

    def put_table(self, table: TableKnown) -> None:
        """Which table it belongs to."""
        if self.durable:
            self._put(TABLE, self._encode(table))

    def put_shard(
        self, shard: int, group: Group, promised: int, next_ballot: int, next_group: Group | None
    ) -> None:
        """What it promised and accepted about a group."""
        if self.durable:
            kept = KeptShard(group, promised, next_ballot, next_group)
            self._put(SHARD + shard.to_bytes(4, "big"), self._encode(kept))

    def drop_shard(self, shard: int) -> None:
        """A shard of a table that this node left."""
        self._put(SHARD + shard.to_bytes(4, "big"), None)

    def drop_table(self) -> None:
        """It belongs to none."""
        self._put(TABLE, None)

    def put_record(self, shard: int, key: bytes, record: Record, left: int) -> None:
        """A record that it accepted."""
        if self.durable:
            kept = KeptRecord(record.value, record.ballot, record.sequence, left)
            self._put(RECORD + shard.to_bytes(4, "big") + key, self._encode(kept))

    def drop_record(self, shard: int, key: bytes) -> None:
        """A record that it keeps no more."""
        self._put(RECORD + shard.to_bytes(4, "big") + key, None)


class Found(msgspec.Struct):
    """What an earlier life left."""

    life: int = 0
    table: TableKnown | None = None
    shards: dict[int, KeptShard] = msgspec.field(default_factory=dict)
    records: list[tuple[int, bytes, KeptRecord]] = msgspec.field(default_factory=list)


def read_kept(kept: Mapping[bytes, bytes]) -> Found:
    """Read what `Vault` wrote; what cannot be read raises, since a promise would be broken."""
    found = Found()
    for key, value in kept.items():
        if key == SELF:
            found.life = int.from_bytes(value, "big")
        elif key == TABLE:
            found.table = msgspec.msgpack.decode(value, type=TableKnown)
        elif key[:1] == SHARD:
            shard = msgspec.msgpack.decode(value, type=KeptShard)
            found.shards[int.from_bytes(key[1:5], "big")] = shard
        elif key[:1] == RECORD:
            record = msgspec.msgpack.decode(value, type=KeptRecord)
            found.records.append((int.from_bytes(key[1:5], "big"), key[5:], record))
    return found
