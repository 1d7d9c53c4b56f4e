"""Beats: a leader shows its followers that it lives, and both find out where copies differ."""

from __future__ import annotations

from overlay.ids import NodeId
from protocols.dht.copying import Copier
from protocols.dht.core import Core
from protocols.dht.electing import Elector
from protocols.dht.messages import BRANCHES, MOST, Beat, Differs
from protocols.dht.shard import Shard
from protocols.dht.shelf import MASK

GROUPED = 0.1  # × compare that this node goes without looking who leads which of its shards


def mixed(shard: int, ballot: int, digest: int) -> int:
    """One shard's part in the digest of a branch."""
    return (shard * 0xC2B2AE3D27D4EB4F ^ ballot * 0x9E3779B97F4A7C15 ^ digest) & MASK


class Comparer:
    """Compares all shards of a leader and a follower by the digests of their branches."""

    def __init__(self, core: Core, copier: Copier, elector: Elector) -> None:
        self._core = core
        self._copier = copier
        self._elector = elector
        self._said: dict[int, int] = {}  # the digest of each shard in the last beat
        self._same: dict[int, dict[NodeId, None]] = {}  # who had it, too
        self._by_leader: dict[NodeId, list[Shard]] = {}  # what this node follows
        self._sorted_at = float("-inf")

    def beat(self, now: float) -> None:
        """Tell every follower the state of the shards that it follows this node in."""
        core = self._core
        trees: dict[NodeId, list[int]] = {}
        self._said, self._same = {}, {}
        for shard in core.shards.values():
            if shard.reign is None:
                continue
            part = mixed(shard.id, shard.reign.ballot, shard.shelf.digest)
            branch = shard.id % BRANCHES
            if shard.shelf.removed:
                self._said[shard.id] = shard.shelf.digest
            for member in shard.group.members:
                if member.name != core.me:
                    tree = trees.get(member.name)
                    if tree is None:
                        tree = trees[member.name] = [0] * BRANCHES
                    tree[branch] ^= part
        for name, tree in trees.items():
            core.effects.send(name, Beat(core.number, tuple(tree), core.is_full))

    def _followed(self, leader: NodeId, now: float) -> list[Shard]:
        """Looked through once for the beats of many leaders: what changed since only looks as if
        it differed, and is compared in the next beat."""
        if not 0 <= now - self._sorted_at <= GROUPED * self._core.settings.compare:
            self._sorted_at = now
            self._by_leader = {}
            for shard in self._core.shards.values():
                if shard.seated and shard.reign is None and shard.leader is not None:
                    self._by_leader.setdefault(shard.leader, []).append(shard)
        return [
            shard
            for shard in self._by_leader.get(leader, ())
            if shard.seated and shard.reign is None and shard.leader == leader
        ]

    def on_beat(self, src: NodeId, message: Beat, now: float) -> None:
        """Answer with what differs; with nothing, if nothing does."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        self._note_room(src, message.full)
        followed = self._followed(src, now)
        tree = [0] * BRANCHES
        for shard in followed:
            tree[shard.id % BRANCHES] ^= mixed(shard.id, shard.promised, shard.shelf.digest)
        differ = tuple(at for at in range(BRANCHES) if tree[at] != message.branches[at])
        items = [
            (shard.id, shard.promised, shard.shelf.digest)
            for shard in followed
            if shard.id % BRANCHES in differ
        ]
        core.say(src, Differs(core.number, differ, tuple(items[:MOST]), core.is_full))

    def _note_room(self, src: NodeId, full: bool) -> None:
        if full:
            self._core.full[src] = None
        else:
            self._core.full.pop(src, None)

    def on_differs(self, src: NodeId, message: Differs, now: float) -> None:
        """Offer what differs; who lacks a group is told it."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        self._note_room(src, message.full)
        theirs = {number: (promised, digest) for number, promised, digest in message.items}
        for number in theirs:
            shard = core.shards.get(number)
            if shard is None or shard.reign is not None:
                continue
            if shard.seated and shard.bid is None and shard.leader == core.me:
                self._elector.stand([shard], now)
            elif shard.group.place(src) < 0 or not shard.seated:
                core.tell_group(src, shard)
        differ = frozenset(message.branches)
        for number in list(self._said):
            if number % BRANCHES not in differ:
                self._forget_removed(number, src)
        if not differ:
            return
        for shard in list(core.shards.values()):
            reign = shard.reign
            if reign is None or reign.inflight or shard.id % BRANCHES not in differ:
                continue
            if shard.group.place(src) < 0:
                continue
            said = theirs.get(shard.id)
            if said is None:
                core.tell_group(src, shard)
                self._copier.offer(shard, src)
            elif said != (reign.ballot, shard.shelf.digest):
                self._copier.offer(shard, src)

    def _forget_removed(self, number: int, src: NodeId) -> None:
        """A key without a value is remembered until every member has heard of its removal: none
        of them can bring an earlier value back then."""
        shard = self._core.shards[number]
        same = self._same.setdefault(number, {})
        same[src] = None
        others = [name for name in shard.group.names() if name != self._core.me]
        reign = shard.reign
        if reign is None or reign.inflight or any(name not in same for name in others):
            return
        if shard.shelf.digest == self._said.pop(number):
            for key in list(shard.shelf.removed):
                shard.shelf.drop(key)
                self._core.vault.drop_record(number, key)
