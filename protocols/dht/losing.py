"""Going on without a majority that will not come back: only ever on a person's word.

Two of three replicas that lost their memory end a shard: nobody can tell what they acknowledged,
so it refuses. A person who knows that they are gone for good may say so to a survivor, which then
lets a group of those that it can reach begin, with what they have. What only the lost ones had is
lost; if they are back all the same (they were only out of reach), they give way and forget theirs.
"""

from __future__ import annotations

from protocols.dht.accepting import Acceptor
from protocols.dht.core import Core, interned
from protocols.dht.groups import VERSION_BITS, Group
from protocols.dht.messages import Activate

AHEAD = 4096  # versions: past all that members out of reach can have decided among themselves


class Losses:
    """Nothing in the protocol calls it: a command does."""

    def __init__(self, core: Core, acceptor: Acceptor) -> None:
        self._core = core
        self._acceptor = acceptor

    def accept(self, now: float) -> int:
        """Go on with the members in reach wherever they are no majority; how many shards."""
        core = self._core
        accepted = 0
        for shard in list(core.shards.values()):
            old = shard.group
            present = [one for one in old.members if core.reachable(one, now)]
            if not shard.seated or old.is_majority([one.name for one in present]):
                continue
            # Each survivor would choose another version: of two commands at once one wins.
            version = old.version + AHEAD + old.place(core.me)
            if version >= 1 << VERSION_BITS:
                continue
            accepted += 1
            core.counts.forced += 1
            group = Group(version, interned(tuple(present)))
            self._acceptor.adopt(shard, group, now)
            others = [name for name in old.names() if name != core.me]
            core.say_all(others, Activate(core.number, ((shard.id, shard.group),)))
        return accepted
