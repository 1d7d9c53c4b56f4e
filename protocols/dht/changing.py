"""Replacing a shard's group: copy, stop, copy the rest, have the old group decide, activate."""

from __future__ import annotations

from enum import IntEnum

from overlay.ids import NodeId
from protocols.dht.accepting import Acceptor
from protocols.dht.copying import Copier
from protocols.dht.core import Core, interned
from protocols.dht.groups import Group, Member
from protocols.dht.leading import Leader
from protocols.dht.messages import Activate, Activated, Choice, Decide, Decided
from protocols.dht.shard import Shard

TELLINGS = 40  # times that a member is told of its group before it is left to ask
PATIENCE = 4  # × silence that copying may take without progress


class Phase(IntEnum):
    """How far a change is."""

    WARM = 0  # new members are copied to while the shard is in use
    DRAIN = 1  # no more writes; those under way end
    SYNC = 2  # all members get the last of it
    DECIDE = 3  # the old group may have decided: there is no way back


class Change:
    """One shard on its way to its next group."""

    __slots__ = ("decided", "group", "phase", "progress_at", "recovered", "sent_at", "synced")

    def __init__(self, group: Group, now: float, *, recovered: bool) -> None:
        self.group = group
        self.recovered = recovered  # it was proposed by an earlier leader, and may be decided
        self.phase = Phase.WARM
        self.synced: dict[NodeId, None] = {}
        self.decided: dict[NodeId, None] = {}
        self.sent_at = self.progress_at = now


class Farewell:
    """Those who must still hear of a group that this node let begin."""

    __slots__ = ("group", "missing", "sent_at", "tellings")

    def __init__(self, group: Group, missing: dict[NodeId, None], now: float) -> None:
        self.group = group
        self.missing = missing
        self.sent_at = now
        self.tellings = 1


class Changer:
    """All changes that this node makes as a leader."""

    def __init__(self, core: Core, acceptor: Acceptor, leader: Leader) -> None:
        self._core = core
        self._acceptor = acceptor
        self._leader = leader
        self.copier: Copier  # set once: it calls back
        self.changes: dict[int, Change] = {}
        self._farewells: dict[int, Farewell] = {}

    def __len__(self) -> int:
        return len(self.changes) + len(self._farewells)

    def begin(self, shard: Shard, members: tuple[Member, ...], now: float) -> None:
        """Replace the group of a shard that this node leads."""
        group = Group(shard.group.version + 1, interned(members))
        self._core.meet(group)
        self.changes[shard.id] = change = Change(group, now, recovered=False)
        if len(shard.shelf):
            self._offer(shard, change, now)
            self._look(shard, change, now)
        else:
            self._freeze(shard, change, now)

    def recover(self, shard: Shard, group: Group, now: float) -> None:
        """Finish what an earlier leader proposed: it may be decided, so nothing else can be."""
        assert shard.reign is not None
        shard.reign.closed = True
        self._core.meet(group)
        self.changes[shard.id] = change = Change(group, now, recovered=True)
        self._freeze(shard, change, now)

    def forget(self, shard: Shard) -> None:
        """This node does not lead it any more."""
        self.changes.pop(shard.id, None)

    def abort(self, shard: Shard) -> None:
        """Stay with the old group; nobody was asked to decide yet."""
        self._core.counts.aborted += 1
        del self.changes[shard.id]
        if shard.reign is not None:
            self._leader.thaw(shard.reign)

    # -- copying ----------------------------------------------------------------------------------

    def _others(self, change: Change) -> list[NodeId]:
        return [name for name in change.group.names() if name != self._core.me]

    def _offer(self, shard: Shard, change: Change, now: float) -> None:
        change.sent_at = now
        for name in self._others(change):
            if name not in change.synced:
                self.copier.offer(shard, name)

    def on_same(self, shard: Shard, name: NodeId, now: float) -> None:
        """A member has everything."""
        change = self.changes.get(shard.id)
        if change is not None and change.phase in (Phase.WARM, Phase.SYNC):
            change.synced[name] = None
            change.progress_at = now
            self._look(shard, change, now)

    def _look(self, shard: Shard, change: Change, now: float) -> None:
        """Go on if enough have everything: all, or of a group that may be decided a majority."""
        others = self._others(change)
        have = [name for name in others if name in change.synced]
        if change.recovered:
            done = change.group.is_majority([*have, self._core.me])
        else:
            done = len(have) == len(others)
        if not done:
            return
        if change.phase is Phase.WARM:
            self._freeze(shard, change, now)
        elif change.phase is Phase.SYNC:
            self._decide(shard, change, now)

    def _freeze(self, shard: Shard, change: Change, now: float) -> None:
        reign = shard.reign
        assert reign is not None
        reign.frozen = True
        change.phase = Phase.DRAIN
        change.synced.clear()
        if not reign.inflight:
            self.on_drained(shard, now)

    def on_drained(self, shard: Shard, now: float) -> None:
        """Nothing is under way any more: what this node has now is all there is."""
        change = self.changes.get(shard.id)
        if change is not None and change.phase is Phase.DRAIN:
            change.phase = Phase.SYNC
            change.progress_at = now
            self._offer(shard, change, now)
            self._look(shard, change, now)

    # -- deciding ---------------------------------------------------------------------------------

    def _decide(self, shard: Shard, change: Change, now: float) -> None:
        assert shard.reign is not None
        change.phase = Phase.DECIDE
        self._acceptor.choose(shard, shard.reign.ballot, change.group)
        self._ask(shard, change, now)
        self._core.vault.after(self._count, shard, change, self._core.me, now)

    def _ask(self, shard: Shard, change: Change, now: float) -> None:
        core = self._core
        assert shard.reign is not None
        change.sent_at = now
        missing = [
            name for name in shard.group.names() if name != core.me and name not in change.decided
        ]
        if missing:
            choice = Choice(shard.id, shard.reign.ballot, change.group)
            core.say_all(missing, Decide(core.number, (choice,)))

    def on_decided(self, src: NodeId, message: Decided, now: float) -> None:
        """Count; with a majority of the old group the new one begins."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        for number, ballot in message.kept:
            shard, change = core.shards.get(number), self.changes.get(number)
            if (
                shard is None
                or change is None
                or shard.reign is None
                or shard.reign.ballot != ballot
                or change.phase is not Phase.DECIDE
            ):
                core.counts.late += 1
            elif shard.group.place(src) < 0:
                raise core.not_in_group(src, number)
            else:
                self._count(shard, change, src, now)
        for number, promised in message.refused:
            shard = core.shards.get(number)
            if shard is not None and shard.reign is not None and promised > shard.reign.ballot:
                self._acceptor.step_down(shard, now)

    def _count(self, shard: Shard, change: Change, name: NodeId, now: float) -> None:
        core = self._core
        if self.changes.get(shard.id) is not change:
            return
        change.decided[name] = None
        if not shard.group.is_majority(change.decided):
            return
        core.counts.changed += 1
        names = dict.fromkeys((*shard.group.names(), *change.group.names()))
        names.pop(core.me, None)
        del self.changes[shard.id]
        self._farewells[shard.id] = Farewell(change.group, names, now)
        self._acceptor.adopt(shard, change.group, now)
        if names:
            core.say_all(list(names), Activate(core.number, ((shard.id, change.group),)))

    def on_activated(self, src: NodeId, message: Activated, now: float) -> None:
        """It knows."""
        if not self._core.check_table(src, message.table, now):
            return
        for number, version in message.items:
            farewell = self._farewells.get(number)
            if farewell is not None and version >= farewell.group.version:
                farewell.missing.pop(src, None)
                if not farewell.missing:
                    del self._farewells[number]

    # -- what is due ------------------------------------------------------------------------------

    def resend(self, now: float) -> None:
        """Ask again; give up where a new member is gone."""
        core = self._core
        due = now - core.settings.retry
        for number, change in list(self.changes.items()):
            shard = core.shards[number]
            if change.phase is Phase.DECIDE:
                if change.sent_at <= due:
                    self._ask(shard, change, now)
                continue
            if not change.recovered and self._hopeless(change, now):
                self.abort(shard)
            elif change.sent_at <= due and change.phase is not Phase.DRAIN:
                self._offer(shard, change, now)
                self._look(shard, change, now)
        for number, farewell in list(self._farewells.items()):
            if farewell.sent_at > due:
                continue
            farewell.sent_at = now
            farewell.tellings += 1
            if farewell.tellings > TELLINGS:
                del self._farewells[number]
                continue
            group = farewell.group
            core.say_all(list(farewell.missing), Activate(core.number, ((number, group),)))

    def _hopeless(self, change: Change, now: float) -> bool:
        core = self._core
        if now - change.progress_at > PATIENCE * core.settings.silence:
            return True
        return any(not core.reachable(member, now) for member in change.group.members)

    def reset(self) -> None:
        """This node left the table."""
        self.changes.clear()
        self._farewells.clear()
