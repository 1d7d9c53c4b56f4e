"""Bringing a member to its leader's state: leaves that differ are offered, wanted and copied."""

from __future__ import annotations

from collections.abc import Callable

from overlay.ids import NodeId
from protocols.dht.accepting import Acceptor
from protocols.dht.core import BATCH_BYTES, BATCH_ITEMS, Core
from protocols.dht.groups import version_of
from protocols.dht.messages import Copy, Offer, Row, Want
from protocols.dht.shard import Shard
from protocols.dht.shelf import expiry, parts_of

MOST_PENDING = 4096  # copies in parts that are under way to this node


class Copier:
    """`same` hears that a member has what this node, its leader, has."""

    def __init__(
        self, core: Core, acceptor: Acceptor, same: Callable[[Shard, NodeId, float], None]
    ) -> None:
        self._core = core
        self._acceptor = acceptor
        self._same = same
        self._coming: dict[tuple[NodeId, int], tuple[tuple[int, int], dict[int, Copy]]] = {}

    # -- the leader -------------------------------------------------------------------------------

    def offer(self, shard: Shard, to: NodeId) -> None:
        """Let a member, or one who shall become one, compare itself."""
        assert shard.reign is not None
        core = self._core
        core.effects.send(to, Offer(core.number, shard.id, shard.reign.ballot, shard.shelf.tree()))

    def on_want(self, src: NodeId, message: Want, now: float) -> None:
        """Copy what it lacks, or note that it lacks nothing."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        shard = core.shards.get(message.shard)
        if shard is None or shard.reign is None or shard.reign.ballot != message.ballot:
            core.counts.late += 1
            return
        if message.digest == shard.shelf.digest:
            self._same(shard, src, now)
        elif message.leaves:
            self._copy(shard, src, message.leaves, now)
        else:
            self.offer(shard, src)

    def _copy(self, shard: Shard, to: NodeId, leaves: tuple[int, ...], now: float) -> None:
        core, reign = self._core, shard.reign
        assert reign is not None
        rows = [shard.shelf.row(key, now) for key in shard.shelf.keys_in(leaves)]
        core.counts.copied += len(rows)
        core.counts.copied_bytes += sum(len(row.key) + len(row.value or b"") for row in rows)
        parts = parts_of(rows, BATCH_BYTES, BATCH_ITEMS)
        for at, part in enumerate(parts):
            copy = Copy(
                core.number,
                shard.id,
                reign.ballot,
                reign.sequence,
                leaves,
                part,
                at,
                len(parts),
            )
            core.effects.send(to, copy)

    # -- the member -------------------------------------------------------------------------------

    def on_offer(self, src: NodeId, message: Offer, now: float) -> None:
        """Say which leaves differ."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        shard = core.shard(message.shard, now)
        if self._obeys(src, shard, message.ballot, now):
            differ = shard.shelf.differing(message.leaves)
            core.say(src, Want(core.number, shard.id, message.ballot, differ, shard.shelf.digest))

    def _obeys(self, src: NodeId, shard: Shard, ballot: int, now: float) -> bool:
        """A member takes copies under the ballot that it promised; who is no member yet takes
        them from the leader of the latest group."""
        core = self._core
        version = version_of(ballot)
        if version < shard.group.version:
            core.tell_group(src, shard)
            return False
        if version == shard.group.version and not shard.owns(src, ballot):
            raise core.not_in_group(src, shard.id)
        if version > shard.group.version and shard.seated:
            core.tell_group(src, shard)  # an old one: who knows better answers with the present one
            return False
        return not shard.seated or self._acceptor.follows(src, shard, ballot, now)

    def on_copy(self, src: NodeId, message: Copy, now: float) -> None:
        """When all parts of a copy are there, make those leaves what the leader says."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        shard = core.shard(message.shard, now)
        if not self._obeys(src, shard, message.ballot, now):
            return
        state = (message.ballot, message.upto)
        coming, parts = self._coming.pop((src, shard.id), (state, {}))
        if coming != state:
            parts = {}
        parts[message.part] = message
        if len(parts) < message.parts:
            if len(self._coming) >= MOST_PENDING:
                del self._coming[next(iter(self._coming))]
            self._coming[src, shard.id] = (state, parts)
            return
        rows = {row.key: row for part in parts.values() for row in part.rows}
        self._make_equal(shard, message, rows, now)
        core.say(src, Want(core.number, shard.id, message.ballot, (), shard.shelf.digest))

    def _make_equal(self, shard: Shard, message: Copy, rows: dict[bytes, Row], now: float) -> None:
        """What the leader lacks was never accepted by a majority, or is a removal that everybody
        has; only what it wrote after it made this copy is newer."""
        core, shelf = self._core, shard.shelf

        def newer(key: bytes) -> bool:
            own = shelf.records[key]
            return own.ballot == message.ballot and own.sequence > message.upto

        shard.floor = max(shard.floor, (message.ballot, message.upto))
        for key in shelf.keys_in(message.leaves):
            if key not in rows and not newer(key):
                shelf.drop(key)
                core.vault.drop_record(shard.id, key)
        for key, row in rows.items():
            own = shelf.records.get(key)
            if own is not None and ((row.ballot, row.sequence) == own.stamp or newer(key)):
                continue
            expires = expiry(row.ttl, now)
            record = shelf.put(key, row.value, row.ballot, row.sequence, expires)
            core.vault.put_record(shard.id, key, record, row.ttl)

    def reset(self) -> None:
        """This node left the table."""
        self._coming.clear()
