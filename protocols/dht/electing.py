"""Who leads a shard: the first member that is alive asks for promises, and reads what is newer."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from overlay.ids import NodeId
from protocols.dht.accepting import Acceptor
from protocols.dht.core import BATCH_BYTES, BATCH_ITEMS, Core
from protocols.dht.groups import Group, Members, next_ballot
from protocols.dht.leading import Leader
from protocols.dht.messages import (
    Candidacy,
    Handover,
    Prepare,
    Promise,
    Promised,
    Pull,
    Pulled,
    Row,
)
from protocols.dht.shard import Shard
from protocols.dht.shelf import Record, expiry, leaf_of, parts_of

Won = Callable[[Shard, Group | None, float], None]


class Bid:
    """One try to lead a shard."""

    __slots__ = ("ballot", "differ", "promises", "pulling", "rows", "sent_at", "voters")

    def __init__(self, ballot: int, now: float) -> None:
        self.ballot = ballot
        self.sent_at = now
        self.promises: dict[NodeId, Promised] = {}
        self.voters: tuple[NodeId, ...] = ()  # the majority, once it is there
        self.pulling: dict[NodeId, dict[int, tuple[Row, ...]]] = {}  # parts that came
        self.differ: dict[NodeId, tuple[int, ...]] = {}
        self.rows: dict[NodeId, dict[bytes, Row]] = {}


class Elector:
    """Stands for elections; `won` hears of each that this node won, and of a group that the
    voters know to have been proposed."""

    def __init__(self, core: Core, acceptor: Acceptor, leader: Leader, won: Won) -> None:
        self._core = core
        self._acceptor = acceptor
        self._leader = leader
        self._won = won
        self._bids: dict[int, Shard] = {}
        self.ballots: dict[tuple[int, int], None] = {}  # (shard, ballot) of this process

    def __len__(self) -> int:
        return len(self._bids)

    # -- standing ---------------------------------------------------------------------------------

    def review(self, now: float) -> None:
        """Stand for every shard that nobody leads and that is this node's turn."""
        wanted = [
            shard
            for shard in self._core.shards.values()
            if shard.seated and shard.reign is None and shard.bid is None and self._turn(shard, now)
        ]
        if wanted:
            self.stand(wanted, now)

    def _turn(self, shard: Shard, now: float) -> bool:
        core = self._core
        group, leader = shard.group, shard.leader
        if leader is not None and leader != core.me:
            member = group.members[group.place(leader)]
            last = max(shard.idle_since, core.heard.get(leader, 0.0))
            if core.reachable(member, now) and now - last < core.settings.silence:
                return False
        for rank, member in enumerate(group.members):
            if member.name == core.me:
                return True
            waited = now - shard.idle_since
            if core.reachable(member, now) and waited < core.settings.silence * (rank + 1):
                return False
        return False

    def stand(self, shards: Iterable[Shard], now: float) -> None:
        """Ask the groups of these shards for their promises."""
        core = self._core
        asked = []
        for shard in shards:
            place = shard.group.place(core.me)
            ballot = next_ballot(shard.promised, shard.group.version, place)
            self._acceptor.promise(shard, ballot)
            shard.bid = bid = Bid(ballot, now)
            shard.idle_since = now
            self._bids[shard.id] = shard
            self.ballots[shard.id, ballot] = None
            bid.promises[core.me] = Promised(
                shard.id,
                ballot,
                ballot,
                shard.shelf.digest,
                shard.next_ballot,
                shard.next_group,
            )
            asked.append(shard)
        self._prepare(asked)
        for shard in asked:
            core.vault.after(self._count, shard, now)

    def _prepare(self, shards: Iterable[Shard]) -> None:
        """One message for each peer, whatever the number of shards."""
        core = self._core
        letters: dict[NodeId, list[tuple[Members, int, int]]] = {}
        for shard in shards:
            bid = shard.bid
            if bid is None or bid.voters:
                continue
            members = shard.group.members
            for member in members:
                if member.name not in bid.promises:
                    letters.setdefault(member.name, []).append((members, shard.id, bid.ballot))
        for peer, items in letters.items():
            for start in range(0, len(items), BATCH_ITEMS):
                groups: dict[Members, int] = {}
                wanted = tuple(
                    Candidacy(shard, ballot, groups.setdefault(members, len(groups)))
                    for members, shard, ballot in items[start : start + BATCH_ITEMS]
                )
                core.say(peer, Prepare(core.number, tuple(groups), wanted))

    def withdraw(self, shard: Shard) -> None:
        """Somebody else leads, or wants to with a higher ballot."""
        shard.bid = None
        self._bids.pop(shard.id, None)

    def resend(self, now: float) -> None:
        """Ask again who did not answer; for a while, then others may try."""
        due = now - self._core.settings.retry
        late = [
            one for one in self._bids.values() if one.bid is not None and one.bid.sent_at <= due
        ]
        for shard in late:
            bid = shard.bid
            assert bid is not None
            bid.sent_at = now
            for name in bid.pulling:
                self._pull(shard, bid, name)
        self._prepare(late)

    # -- promises ---------------------------------------------------------------------------------

    def on_promise(self, src: NodeId, message: Promise, now: float) -> None:
        """Count; with a majority read what differs, or begin."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        for item in message.items:
            shard = core.shards.get(item.shard)
            bid = None if shard is None else shard.bid
            if shard is None or bid is None or item.ballot != bid.ballot:
                core.counts.late += 1
                continue
            if shard.group.place(src) < 0:
                raise core.not_in_group(src, item.shard)
            if item.promised > bid.ballot:
                # Whoever has it may go on; if nothing comes of it, the silence ends.
                self.withdraw(shard)
                self._acceptor.promise(shard, item.promised)
                shard.idle_since = now - core.rng.random() * core.settings.silence / 2
                continue
            bid.promises[src] = item
            self._count(shard, now)

    def _count(self, shard: Shard, now: float) -> None:
        bid = shard.bid
        if bid is None or bid.voters or not shard.group.is_majority(bid.promises):
            return
        bid.voters = tuple(bid.promises)
        mine = shard.shelf.digest
        for name, item in bid.promises.items():
            if item.digest != mine and name != self._core.me:
                bid.pulling[name] = {}
                self._pull(shard, bid, name)
        if not bid.pulling:
            self._win(shard, bid, now)

    def _pull(self, shard: Shard, bid: Bid, name: NodeId) -> None:
        tree = shard.shelf.tree()
        self._core.effects.send(name, Pull(self._core.number, shard.id, bid.ballot, tree))

    # -- what the majority has --------------------------------------------------------------------

    def on_pull(self, src: NodeId, message: Pull, now: float) -> None:
        """Send what differs to whom this member promised."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        shard = core.shard(message.shard, now)
        if not shard.owns(src, message.ballot):
            raise core.not_in_group(src, message.shard)
        if not shard.seated or shard.promised != message.ballot:
            core.counts.late += 1
            return
        shard.idle_since = now
        differ = shard.shelf.differing(message.leaves)
        rows = [shard.shelf.row(key, now) for key in shard.shelf.keys_in(differ)]
        parts = parts_of(rows, BATCH_BYTES, BATCH_ITEMS)
        for at, part in enumerate(parts):
            answer = Pulled(core.number, shard.id, message.ballot, differ, part, at, len(parts))
            core.effects.send(src, answer)

    def on_pulled(self, src: NodeId, message: Pulled, now: float) -> None:
        """When all came, decide what is in doubt."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        shard = core.shards.get(message.shard)
        bid = None if shard is None else shard.bid
        if shard is None or bid is None or bid.ballot != message.ballot or src not in bid.pulling:
            core.counts.late += 1
            return
        parts = bid.pulling[src]
        parts[message.part] = message.rows
        if len(parts) < message.parts:
            return
        del bid.pulling[src]
        bid.differ[src] = message.differ
        bid.rows[src] = {row.key: row for rows in parts.values() for row in rows}
        if not bid.pulling:
            self._win(shard, bid, now)

    def _win(self, shard: Shard, bid: Bid, now: float) -> None:
        """Lead. What all voters have alike, a majority accepted: only the rest is in doubt."""
        doubtful: dict[bytes, Record] = {}
        for name, differ in bid.differ.items():
            theirs = bid.rows[name]
            for key in {**theirs, **dict.fromkeys(shard.shelf.keys_in(differ))}:
                if leaf_of(key) not in differ:
                    continue
                mine, row = shard.shelf.records.get(key), theirs.get(key)
                if row and mine and (row.ballot, row.sequence) == mine.stamp:
                    continue
                best = doubtful.get(key, mine)
                if row is not None and (best is None or (row.ballot, row.sequence) > best.stamp):
                    best = Record(row.value, row.ballot, row.sequence, expiry(row.ttl, now))
                assert best is not None
                doubtful[key] = best
        proposed = [
            (item.next_ballot, item.next_group)
            for name, item in bid.promises.items()
            if name in bid.voters and item.next_group is not None
        ]
        following = max(proposed, key=lambda one: one[0])[1] if proposed else None
        self._bids.pop(shard.id, None)
        self._leader.begin(shard, bid.ballot, doubtful.items(), now)
        self._won(shard, following, now)

    # -- handing over -----------------------------------------------------------------------------

    def on_handover(self, src: NodeId, message: Handover, now: float) -> None:
        """Lead what another member stopped to lead in favour of this one."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        wanted = []
        for number, ballot in message.items:
            shard = core.shard(number, now)
            if not shard.owns(src, ballot):
                raise core.not_in_group(src, number)
            if shard.seated and shard.reign is None and shard.bid is None:
                self._acceptor.promise(shard, ballot)
                wanted.append(shard)
        self.stand(wanted, now)

    def reset(self) -> None:
        """This node left the table."""
        self._bids.clear()
        self.ballots.clear()
