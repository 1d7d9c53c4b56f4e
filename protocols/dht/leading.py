"""The leader: operations of a shard one after the other, one round trip to the group for many."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from overlay.ids import NodeId
from protocols.dht.accepting import Acceptor
from protocols.dht.applying import apply
from protocols.dht.core import BATCH_BYTES, BATCH_ITEMS, Core
from protocols.dht.groups import Group, Member
from protocols.dht.interface import READS, Status
from protocols.dht.messages import BUSY, MOVED, Accept, Accepted, Entry, Op, Result
from protocols.dht.shard import Shard
from protocols.dht.shelf import Record, expiry, ttl_left


class Asker(NamedTuple):
    """Who waits for the result of an operation."""

    name: NodeId
    session: int
    id: int


Tell: TypeAlias = Callable[[Asker, Result], None]
Committed: TypeAlias = Callable[[Shard, bytes, Record], None]


@lru_cache(maxsize=1 << 16)
def crew_of(members: tuple[Member, ...]) -> str:
    """Who belongs to a group, in whatever order: what goes to the same members goes together."""
    return ",".join(sorted(f"{one.name}/{one.life:x}" for one in members))


class Write:
    """One value of one key on its way to the group, and who waits for it."""

    __slots__ = ("before", "entry", "reign", "waiting")

    def __init__(
        self,
        reign: Reign,
        entry: Entry,
        before: Record | None,
        waiting: list[tuple[Asker, Result]],
    ) -> None:
        self.reign = reign
        self.entry = entry
        self.before = before  # the committed record
        self.waiting = waiting


class Batch:
    """Writes that go to the same members."""

    __slots__ = ("acks", "group", "writes")

    def __init__(self, group: Group, writes: list[Write]) -> None:
        self.group = group
        self.writes = writes
        self.acks: dict[NodeId, None] = {}


class Round:
    """Batches that left together: each member gets what concerns it in one message."""

    __slots__ = ("batches", "members", "sent_at", "shard")

    def __init__(self, batches: list[Batch], sent_at: float) -> None:
        self.batches = batches  # those without a quorum yet
        self.members = {name: None for batch in batches for name in batch.group.names()}
        self.shard = batches[0].writes[0].entry.shard
        self.sent_at = sent_at


class Reign:
    """One shard led with one ballot."""

    __slots__ = (
        "ballot", "begun_at", "closed", "crew", "frozen", "inflight", "over", "queued",
        "recovering", "sequence", "shard",
    )  # fmt: skip

    def __init__(self, shard: Shard, ballot: int, now: float) -> None:
        self.shard = shard
        self.ballot = ballot
        self.crew = crew_of(shard.group.members)
        self.begun_at = now
        self.sequence = 0
        self.recovering = 0  # records that must be proposed again before it may serve
        self.frozen = False  # its group is being changed: operations wait
        self.closed = False  # it only finishes a change of group that another leader began
        self.over = False
        self.inflight: dict[bytes, Write] = {}
        self.queued: dict[bytes, list[tuple[Asker, Op]]] = {}

    def committed(self, key: bytes) -> Record | None:
        """The last record that the group is known to have."""
        write = self.inflight.get(key)
        return self.shard.shelf.records.get(key) if write is None else write.before


class Leader:
    """Everything that this node leads.

    `tell` answers an asker, `committed` hears of each new value, `drained` of a frozen reign
    that has nothing under way any more.
    """

    def __init__(
        self,
        core: Core,
        acceptor: Acceptor,
        tell: Tell,
        committed: Committed,
        drained: Callable[[Shard, float], None],
    ) -> None:
        self._core = core
        self._acceptor = acceptor
        self._tell = tell
        self._on_committed = committed
        self._drained = drained
        self._touched: dict[tuple[int, bytes], Reign] = {}
        self._fresh: dict[str, list[Write]] = {}  # by the members of their group
        self._rounds: dict[int, Round] = {}

    def __len__(self) -> int:
        return len(self._rounds)

    # -- reigns -----------------------------------------------------------------------------------

    def begin(
        self, shard: Shard, ballot: int, doubtful: Iterable[tuple[bytes, Record]], now: float
    ) -> Reign:
        """Lead a shard; what not all of the majority have is proposed again first."""
        core = self._core
        core.counts.elected += 1
        reign = shard.reign = Reign(shard, ballot, now)
        shard.bid = None
        for key, record in doubtful:
            core.counts.recovered += 1
            reign.recovering += 1
            self._write(reign, key, record.value, record.expires, [], now)
        return reign

    def end(self, shard: Shard, now: float) -> None:
        """Somebody else leads, or another group does: nobody is left waiting."""
        reign = shard.reign
        if reign is None:
            return
        shard.reign = None
        reign.over = True
        self._core.counts.deposed += 1
        for write in reign.inflight.values():
            for asker, result in write.waiting:
                self._tell(asker, Result(result.id, Status.UNKNOWN, reason="the leader changed"))
        for queue in reign.queued.values():
            for asker, op in queue:
                self._tell(asker, Result(op.id, MOVED))
        reign.inflight.clear()
        reign.queued.clear()

    # -- operations -------------------------------------------------------------------------------

    def execute(self, asker: Asker, op: Op, shard: Shard, now: float) -> None:
        """Do an operation that came with this reign's ballot; its result follows, or comes now."""
        reign = shard.reign
        assert reign is not None
        if reign.recovering or reign.closed or shard.sealed:
            self._tell(asker, Result(op.id, BUSY))
            return
        key = op.key
        if op.kind in READS:
            record = reign.committed(key)
            if record is None or not record.expires or record.expires > now:
                self._core.counts.served += 1
                value = None if record is None else record.value
                effect = apply(op.kind, value, b"", b"")
                self._tell(asker, Result(op.id, Status.DONE, effect.applied, effect.answer))
                return
        elif self._refuses(asker, op, shard, now):
            return
        reign.queued.setdefault(key, []).append((asker, op))
        self._touch(reign, key)

    def _refuses(self, asker: Asker, op: Op, shard: Shard, now: float) -> bool:
        core = self._core
        settings = core.settings
        reason = ""
        if len(op.key) > settings.key_bytes or len(op.value) > settings.value_bytes:
            reason = f"past the limits of {core.me}: {settings.key_bytes} bytes of key,"
            reason += f" {settings.value_bytes} of value"
        elif op.value and core.stored + len(op.key) + len(op.value) > settings.node_bytes:
            core.counts.full += 1
            reason = f"{core.me} is full: dht.node_bytes = {settings.node_bytes}"
        elif op.value and any(name in core.full for name in shard.group.names()):
            core.counts.full += 1
            reason = f"a replica of shard {shard.id} is full"
        else:
            present = self._present(shard, now)
            if not shard.group.is_majority(present):
                reason = f"no majority of shard {shard.id} can be reached"
            elif not shard.group.suffices(present, settings.quorum):
                reason = f"too few replicas, or zones, of shard {shard.id} can be reached"
        if reason:
            self._tell(asker, Result(op.id, Status.REFUSED, reason=reason))
        return bool(reason)

    def _present(self, shard: Shard, now: float) -> dict[NodeId, None]:
        core = self._core
        return {one.name: None for one in shard.group.members if core.reachable(one, now)}

    def _touch(self, reign: Reign, key: bytes) -> None:
        self._touched[reign.shard.id, key] = reign
        self._core.effects.at_tick_end(self.flush)

    def thaw(self, reign: Reign) -> None:
        """Go on with what waited while the group was to be changed."""
        reign.frozen = False
        for key in reign.queued:
            self._touch(reign, key)

    def flush(self, now: float) -> None:
        """Fold what waits for each key into one write, and send all of them."""
        if self._touched:
            touched, self._touched = self._touched, {}
            for (_, key), reign in touched.items():
                if reign.over or reign.frozen or key in reign.inflight:
                    continue
                queue = reign.queued.pop(key, None)
                if queue:
                    self._fold(reign, key, queue, now)
        self._send(now)

    def _fold(self, reign: Reign, key: bytes, queue: list[tuple[Asker, Op]], now: float) -> None:
        """Even where no condition holds something is written: it proves who leads."""
        record = reign.shard.shelf.records.get(key)
        value = None if record is None else record.value
        expires = 0.0 if record is None else record.expires
        if expires and expires <= now:
            self._core.counts.expired += 1
            value, expires = None, 0.0
        waiting: list[tuple[Asker, Result]] = []
        for asker, op in queue:
            effect = apply(op.kind, value, op.value, op.expected)
            value = effect.after
            if effect.wrote:
                expires = expiry(op.ttl, now)
            waiting.append((asker, Result(op.id, Status.DONE, effect.applied, effect.answer)))
        self._core.counts.served += len(waiting)
        self._write(reign, key, value, expires if value is not None else 0.0, waiting, now)

    def expire(self, now: float) -> None:
        """Remove the values whose time is over, as any other write does."""
        for shard in self._core.shards.values():
            reign = shard.reign
            if reign is None or reign.frozen or reign.recovering or not shard.shelf.expiring:
                continue
            due = [key for key, at in shard.shelf.expiring.items() if at <= now]
            for key in due:
                if key not in reign.inflight and key not in reign.queued:
                    self._core.counts.expired += 1
                    self._write(reign, key, None, 0.0, [], now)

    # -- writes -----------------------------------------------------------------------------------

    def _write(
        self,
        reign: Reign,
        key: bytes,
        value: bytes | None,
        expires: float,
        waiting: list[tuple[Asker, Result]],
        now: float,
    ) -> None:
        shelf = reign.shard.shelf
        before = shelf.records.get(key)
        reign.sequence += 1
        size = shelf.bytes
        record = shelf.put(key, value, reign.ballot, reign.sequence, expires)
        self._core.stored += shelf.bytes - size
        ttl = ttl_left(expires, now)
        self._core.vault.put_record(reign.shard.id, key, record, ttl)
        self._core.tracer.stored(reign.shard, key, reign.sequence)
        entry = Entry(reign.shard.id, reign.ballot, reign.sequence, key, value, ttl)
        write = reign.inflight[key] = Write(reign, entry, before, waiting)
        self._fresh.setdefault(reign.crew, []).append(write)
        self._core.effects.at_tick_end(self.flush)

    def _send(self, now: float) -> None:
        """Send what is new: to each member together, whatever groups it belongs to."""
        fresh, self._fresh = self._fresh, {}
        portion: dict[str, list[Write]] = {}
        size = count = 0
        for crew, writes in fresh.items():
            for write in writes:
                more = len(write.entry.key) + len(write.entry.value or b"")
                if count and (size + more > BATCH_BYTES or count >= BATCH_ITEMS):
                    self._begin_round(portion, now)
                    portion, size, count = {}, 0, 0
                portion.setdefault(crew, []).append(write)
                size += more
                count += 1
        if portion:
            self._begin_round(portion, now)

    def _begin_round(self, portion: dict[str, list[Write]], now: float) -> None:
        core = self._core
        number = core.next_id()
        batches = [Batch(writes[0].reign.shard.group, writes) for writes in portion.values()]
        self._rounds[number] = Round(batches, now)
        core.counts.batches += 1
        self._transmit(number, batches)
        core.vault.after(self._acknowledged, number, core.me, now)

    def _transmit(self, number: int, batches: list[Batch]) -> None:
        core = self._core
        letters: dict[NodeId, list[Entry]] = {}
        for batch in batches:
            entries = [write.entry for write in batch.writes if not write.reign.over]
            for name in batch.group.names():
                if name != core.me and name not in batch.acks:
                    letters.setdefault(name, []).extend(entries)
        if len(batches) == 1 and letters:  # the same to all: it is encoded once
            core.effects.send(list(letters), Accept(core.number, number, tuple(entries)))
            return
        for name, own in letters.items():
            core.effects.send(name, Accept(core.number, number, tuple(own)))

    def resend(self, now: float) -> None:
        """Send again what was not acknowledged for a while."""
        due = now - self._core.settings.retry
        for number, one in list(self._rounds.items()):
            if one.sent_at > due:
                continue
            for batch in one.batches:
                batch.writes = [write for write in batch.writes if not write.reign.over]
            one.batches = [batch for batch in one.batches if batch.writes]
            if not one.batches:
                del self._rounds[number]
                continue
            one.sent_at = now
            self._transmit(number, one.batches)

    def on_accepted(self, src: NodeId, message: Accepted, now: float) -> None:
        """A member has what it got of a round, or some of it."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        one = self._rounds.get(message.batch)
        if one is None:
            core.counts.late += 1
            return
        if src not in one.members:
            raise core.not_in_group(src, one.shard)
        if message.refused:
            refused = dict(message.refused)
            for batch in one.batches:
                if batch.group.place(src) >= 0:
                    self._set_apart(src, batch, refused, now)
        self._acknowledged(message.batch, src, now)

    def _set_apart(self, src: NodeId, batch: Batch, refused: dict[int, int], now: float) -> None:
        """Somebody promised more: who led is deposed. Or it is behind: it is told and tried on."""
        core = self._core
        behind: list[Write] = []
        for write in batch.writes:
            promised = refused.get(write.entry.shard)
            if promised is None or write.reign.over:
                continue
            shard = write.reign.shard
            if promised > write.reign.ballot:
                self._acceptor.step_down(shard, now)
            else:
                core.tell_group(src, shard)
                behind.append(write)
        batch.writes = [one for one in batch.writes if one.entry.shard not in refused]
        if behind:
            apart = Batch(batch.group, behind)
            apart.acks = dict(batch.acks)
            self._rounds[core.next_id()] = Round([apart], now)

    def _acknowledged(self, number: int, name: NodeId, now: float) -> None:
        one = self._rounds.get(number)
        if one is None:
            return
        left: list[Batch] = []
        done: list[Batch] = []
        for batch in one.batches:
            if batch.group.place(name) >= 0:
                batch.acks[name] = None
            (done if self._has_quorum(batch) else left).append(batch)
        one.batches = left
        if not left:
            del self._rounds[number]
        for batch in done:
            self._commit(batch, now)

    def _has_quorum(self, batch: Batch) -> bool:
        # While its own disk is slower than the others, reads here would show it too late.
        acks = batch.acks
        return self._core.me in acks and batch.group.suffices(acks, self._core.settings.quorum)

    def _commit(self, batch: Batch, now: float) -> None:
        for write in batch.writes:
            reign = write.reign
            if reign.over:
                continue
            entry = write.entry
            key = entry.key
            del reign.inflight[key]
            self._core.counts.committed += 1
            for asker, result in write.waiting:
                self._tell(asker, result)
            record = reign.shard.shelf.records.get(key)
            if record is not None:
                self._on_committed(reign.shard, key, record)
            if reign.recovering:
                reign.recovering -= 1
            if key in reign.queued:
                self._touch(reign, key)
            if not reign.inflight:
                self._drained(reign.shard, now)

    def reset(self) -> None:
        """This node left the table."""
        self._touched.clear()
        self._fresh.clear()
        self._rounds.clear()
