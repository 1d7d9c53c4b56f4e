"""Anti-entropy: two members find out in which buckets their views differ, and mend just those."""

from __future__ import annotations

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from protocols.membership.core import Core, Source
from protocols.membership.messages import (
    BUCKET_BYTES,
    BUCKETS,
    MAX_SUMMARIES,
    Summary,
    Sync,
    SyncRecords,
    SyncSummary,
)
from protocols.membership.pieces import cut
from protocols.membership.records import Record, State
from protocols.membership.table import bucket_of

SYNC_TIMEOUT = "sync-timeout"
SYNC_NEXT = "sync-next"


def _rank(state: int) -> int:
    """Suspicion comes and goes within seconds: it is no difference worth mending."""
    return 0 if state <= State.SUSPECT else state


class Reconciler:
    """Starts a Sync when a peer's digest differs; soon again if that brought something."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._sequence = 0
        self._asked: NodeId | None = None  # whose SyncSummary is awaited
        self._gap = core.settings.sync_eager
        self._not_before = 0.0
        self._digest = 0  # of my view at the last Sync

    def heard(self, src: NodeId, digest: int, now: float) -> None:
        """A peer told the digest of its view."""
        if digest != self._core.table.digest and self._asked is None and now >= self._not_before:
            self._start(src, now)

    def hasten(self, now: float) -> None:
        """A partition healed, or I have just joined: go on with random peers until views agree."""
        self._gap = self._core.settings.sync_eager
        self._not_before = now
        if SYNC_NEXT not in self._core.alarms:
            self._core.alarms.set(SYNC_NEXT, self._gap)

    def on_next_alarm(self, now: float) -> None:
        """The last one found differences: perhaps another peer has more."""
        peer = self._core.partners.draw(1)
        if peer and self._asked is None:
            self._start(peer[0], now)

    def _start(self, peer: NodeId, now: float) -> None:
        core = self._core
        core.counts.syncs += 1
        self._sequence += 1
        self._asked = peer
        if core.table.digest != self._digest:
            self._gap = core.settings.sync_eager
        else:  # the last one brought nothing: perhaps one of us refuses what the other holds
            self._gap = min(core.settings.sync_lazy, 2 * self._gap)
        self._digest = core.table.digest
        self._not_before = now + self._gap
        core.alarms.set(SYNC_TIMEOUT, 4 * core.settings.indirect_timeout)
        core.effects.send(peer, Sync(self._sequence, core.table.packed_buckets()))

    def on_timeout_alarm(self) -> None:
        """It never answered: ask somebody else next time."""
        self._asked = None

    def on_sync(self, src: NodeId, sync: Sync, now: float) -> None:
        """Say what I hold where our views differ, as many buckets as fit."""
        core = self._core
        if len(sync.buckets) != BUCKETS * BUCKET_BYTES:
            raise RemoteProtocolError("wrong-bucket-count", f"{len(sync.buckets)} bytes")
        if not core.may_join(src, core.zone):
            raise RemoteProtocolError("zone-not-allowed", f"{src} in zone {core.zone!r}")
        differing = core.table.differing(sync.buckets)
        core.rng.shuffle(differing)
        grouped: dict[int, list[Summary]] = {bucket: [] for bucket in differing}
        for record in core.table.records() if differing else ():
            group = grouped.get(bucket_of(record.name))
            if group is not None:
                group.append(self._summary(record))
        buckets: list[int] = []
        members: list[Summary] = []
        for bucket, group in grouped.items():
            if len(members) + len(group) > MAX_SUMMARIES:
                break
            buckets.append(bucket)
            members.extend(group)
        core.effects.send(src, SyncSummary(sync.sequence, tuple(buckets), tuple(members)))

    def _summary(self, record: Record) -> Summary:
        held = self._core.table.attribute_set(record.name)
        return Summary(record.name, record.incarnation, record.life, int(record.state), held.digest)

    def on_summary(self, src: NodeId, summary: SyncSummary, now: float) -> None:
        """Push what the peer lacks, ask for what I lack."""
        core = self._core
        if src != self._asked or summary.sequence != self._sequence:
            return  # late or stray
        self._asked = None
        core.alarms.cancel(SYNC_TIMEOUT)
        if len(summary.members) > MAX_SUMMARIES:
            raise RemoteProtocolError("member-list-too-long", f"{len(summary.members)} members")
        push: dict[NodeId, Record] = {}
        wanted: list[NodeId] = []
        theirs = {member.name: member for member in summary.members}
        for member in summary.members:
            known = core.table.record(member.name)
            if known is None:
                if _rank(member.state) == 0:
                    wanted.append(member.name)
                continue
            they, we = _standing(member), _standing(known)
            differ = known.life != member.life or (
                known.present and self._summary(known).attributes != member.attributes
            )
            if they > we or (they == we and differ):
                wanted.append(member.name)
            if they < we or (they == we and differ):
                push[member.name] = known
        buckets = set(summary.buckets)
        for record in core.table.present():
            if record.name not in theirs and bucket_of(record.name) in buckets:
                push[record.name] = record
        if push or wanted:
            self._send(src, summary.sequence, push, tuple(wanted))
            if SYNC_NEXT not in core.alarms:
                core.alarms.set(SYNC_NEXT, self._gap)

    def _send(
        self,
        peer: NodeId,
        sequence: int,
        records: dict[NodeId, Record],
        wanted: tuple[NodeId, ...] = (),
    ) -> None:
        core = self._core
        cuts = list(cut(core.table, records.values(), core.settings)) or [((), ())]
        for news, attributes in cuts:
            core.effects.send(peer, SyncRecords(sequence, news, attributes, wanted))
            wanted = ()

    def on_records(self, src: NodeId, records: SyncRecords, now: float) -> None:
        """Answer what the peer wants, then take what it pushes, as its memory."""
        core = self._core
        if len(records.wanted) > MAX_SUMMARIES:
            raise RemoteProtocolError("member-list-too-long", f"{len(records.wanted)} names")
        found = {
            name: record
            for name in records.wanted
            if (record := core.table.record(name)) is not None
        }
        if found:
            self._send(src, records.sequence, found)
        core.learn(src, records.news, records.attributes, now, Source.MEMORY)


def _standing(member: Summary | Record) -> tuple[int, int]:
    """Which of two claims about one life wins, as `records.supersedes` but blind to suspicion."""
    return (member.incarnation, _rank(member.state))
