"""The acceptor: what a member of a group promises, keeps and confirms, and to whom."""

from __future__ import annotations

from collections.abc import Callable

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from protocols.dht.core import Core, interned
from protocols.dht.groups import Group, place_of, version_of
from protocols.dht.messages import (
    Accept,
    Accepted,
    Activate,
    Activated,
    Candidacy,
    Confirm,
    Confirmed,
    Decide,
    Decided,
    Entry,
    Prepare,
    Promise,
    Promised,
)
from protocols.dht.shard import Shard
from protocols.dht.shelf import expiry

Told = Callable[[Shard, float], None]


class Acceptor:
    """Never leads: `depose` ends what this node does as a leader, `adopted` tells of a group."""

    def __init__(self, core: Core, depose: Told, adopted: Told) -> None:
        self._core = core
        self._depose = depose
        self._adopted = adopted

    # -- groups -----------------------------------------------------------------------------------

    def adopt(self, shard: Shard, group: Group, now: float) -> bool:
        """Take a group that was decided; false when this node knew it, or a later one."""
        if group.version <= shard.group.version:
            return False
        core = self._core
        self._depose(shard, now)
        shard.group = Group(group.version, interned(group.members))
        shard.seated = core.is_me(group)
        shard.next_ballot, shard.next_group = 0, None
        shard.idle_since = now
        core.meet(group)
        if not shard.seated:
            for key in shard.shelf.records:
                core.vault.drop_record(shard.id, key)
            shard.shelf.clear()
        core.keep(shard)
        self._adopted(shard, now)
        return True

    def on_activate(self, src: NodeId, message: Activate, now: float) -> None:
        """A group was decided; believed from a member of it, or of the one before."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        known = []
        for number, group in message.items:
            shard = core.shard(number, now)
            if group.version > shard.group.version:
                if group.place(src) < 0 and shard.group.place(src) < 0 and src not in core.lives:
                    raise core.not_in_group(src, number)
                self.adopt(shard, group, now)
            if shard.group.version > group.version:
                core.tell_group(src, shard)
            known.append((number, group.version))
        core.say(src, Activated(core.number, tuple(known)))

    def step_down(self, shard: Shard, now: float) -> None:
        """Lead no more, and ask for no promises."""
        self._depose(shard, now)

    def promise(self, shard: Shard, ballot: int) -> None:
        """Accept nothing below that ballot from now on."""
        if ballot > shard.promised:
            shard.promised = ballot
            self._core.keep(shard)

    # -- candidates -------------------------------------------------------------------------------

    def on_prepare(self, src: NodeId, message: Prepare, now: float) -> None:
        """Promise to whoever has the highest ballot."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        answers = []
        for item in message.items:
            if item.members >= len(message.groups):
                raise RemoteProtocolError("dht-bad-index", f"Prepare from {src}")
            shard = core.shard(item.shard, now)
            version = version_of(item.ballot)
            if version > shard.group.version:
                group = Group(version, message.groups[item.members])
                place = place_of(item.ballot)
                if place >= len(group.members) or group.members[place].name != src:
                    raise core.not_in_group(src, item.shard)
                self.adopt(shard, group, now)
            elif version < shard.group.version:
                core.tell_group(src, shard)
                continue
            if not shard.owns(src, item.ballot):
                raise core.not_in_group(src, item.shard)
            if shard.seated:
                answers.append(self._answer(shard, item, now))
        if answers:
            core.say(src, Promise(core.number, tuple(answers)))

    def _answer(self, shard: Shard, item: Candidacy, now: float) -> Promised:
        if item.ballot > shard.promised:
            self._depose(shard, now)
            self.promise(shard, item.ballot)
        if item.ballot >= shard.promised:
            shard.idle_since = now
        return Promised(
            shard.id,
            item.ballot,
            shard.promised,
            shard.shelf.digest,
            shard.next_ballot,
            shard.next_group,
        )

    def on_confirm(self, src: NodeId, message: Confirm, now: float) -> None:
        """Say which ballots are still promised, and may still be led with."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        yes: list[int] = []
        no: list[int] = []
        for question, number, ballot in message.asked:
            (yes if self.confirms(number, ballot) else no).append(question)
        core.send(src, Confirmed(tuple(yes), tuple(no)))

    def confirms(self, number: int, ballot: int) -> bool:
        """Whether nobody else can lead that shard without this member's knowing."""
        shard = self._core.shards.get(number)
        return shard is not None and shard.seated and shard.promised == ballot and not shard.sealed

    # -- leaders ----------------------------------------------------------------------------------

    def follows(self, src: NodeId, shard: Shard, ballot: int, now: float) -> bool:
        """Whether this member takes orders under that ballot; if so it promises it."""
        if not shard.seated or ballot < shard.promised:
            return False
        if ballot > shard.promised:
            self._depose(shard, now)
            self.promise(shard, ballot)
        shard.idle_since = now
        return True

    def on_accept(self, src: NodeId, message: Accept, now: float) -> None:
        """Keep a batch of writes."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        refused: dict[int, int] = {}
        shards = core.shards
        for entry in message.entries:
            shard = shards.get(entry.shard)
            if shard is None:
                shard = core.shard(entry.shard, now)
            if version_of(entry.ballot) < shard.group.version:
                core.tell_group(src, shard)
                refused[entry.shard] = max(shard.promised, entry.ballot + 1)
                continue
            if version_of(entry.ballot) == shard.group.version and not shard.owns(
                src, entry.ballot
            ):
                raise core.not_in_group(src, entry.shard)
            if version_of(entry.ballot) > shard.group.version or not self.follows(
                src, shard, entry.ballot, now
            ):
                refused[entry.shard] = shard.promised
                continue
            self.take(shard, entry, now)
        core.say(src, Accepted(core.number, message.batch, tuple(refused.items())))

    def take(self, shard: Shard, entry: Entry, now: float) -> None:
        """Keep one write, unless a later one of that key is here."""
        old = shard.shelf.records.get(entry.key)
        stamp = (entry.ballot, entry.sequence)
        if stamp > (shard.floor if old is None else old.stamp):
            expires = expiry(entry.ttl, now)
            shelf = shard.shelf
            size = shelf.bytes
            record = shelf.put(entry.key, entry.value, entry.ballot, entry.sequence, expires)
            self._core.stored += shelf.bytes - size
            self._core.vault.put_record(shard.id, entry.key, record, entry.ttl)
            self._core.tracer.stored(shard, entry.key, entry.sequence)

    def on_decide(self, src: NodeId, message: Decide, now: float) -> None:
        """Keep which group shall be next."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        kept, refused = [], []
        for item in message.items:
            shard = core.shard(item.shard, now)
            if version_of(item.ballot) < shard.group.version:
                core.tell_group(src, shard)
                continue
            if version_of(item.ballot) > shard.group.version:
                continue  # its leader tells the group again
            if not shard.owns(src, item.ballot):
                raise core.not_in_group(src, item.shard)
            if item.group.version != shard.group.version + 1:
                raise RemoteProtocolError("dht-bad-version", f"Decide from {src}")
            if self.follows(src, shard, item.ballot, now):
                self.choose(shard, item.ballot, item.group)
                kept.append((item.shard, item.ballot))
            else:
                refused.append((item.shard, shard.promised))
        if kept or refused:
            core.say(src, Decided(core.number, tuple(kept), tuple(refused)))

    def choose(self, shard: Shard, ballot: int, group: Group) -> None:
        """Accept the next group; it may be decided with this."""
        shard.next_ballot, shard.next_group = ballot, group
        self._core.keep(shard)
