"""What all parts of the table's machine share: views, settings, shards, time, counts and disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random
from typing import Protocol

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import ContactLearned, Effects, Message, Scope
from overlay.timetable import Timetable
from protocols.dht.config import DhtSettings
from protocols.dht.counts import DhtCounts
from protocols.dht.groups import Group, Member
from protocols.dht.interface import DHT, May
from protocols.dht.layout import Layout, Terms, layout_of
from protocols.dht.messages import Activate, TableKnown
from protocols.dht.placement import Tier
from protocols.dht.posting import Post
from protocols.dht.shard import Shard
from protocols.dht.tracing import Tracer
from protocols.dht.vault import Vault
from protocols.membership.interface import MembershipView
from protocols.routing.interface import Router
from protocols.zones.interface import ZoneDirectory

FIRST_VERSION = 1
BATCH_BYTES = 60_000  # of one message: half of what a frame takes before it is closed
BATCH_ITEMS = 512
REVIEW = "review"  # the timer of the next look at the views


class Base(Protocol):
    """What the table needs of the membership of its zone; `Membership` is one."""

    @property
    def view(self) -> MembershipView:
        """The members."""

    def set_attribute(self, key: str, value: str | float | bool, now: float) -> None:
        """Set an attribute of this node."""

    def remove_attribute(self, key: str, now: float) -> None:
        """Remove one that is set."""


@lru_cache(maxsize=1 << 16)
def interned(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """One shared tuple for each group: thousands of shards have the same, and batches by it."""
    return members


class Founding:
    """The groups that a table began with: everybody computes the same."""

    def __init__(self, table: TableKnown) -> None:
        self.table = table
        self._founders = {member.name: member for member in table.founders}
        terms = Terms(table.bits, table.points, table.replicas, 1)
        self._layout = layout_of(tuple(sorted(self._founders)), terms)
        self._groups: dict[int, Group] = {}

    def group(self, shard: int) -> Group:
        """The first group of a shard."""
        found = self._groups.get(shard)
        if found is None:
            names = self._layout.names(shard, self.table.replicas)
            members = interned(tuple(self._founders[name] for name in names))
            found = self._groups[shard] = Group(FIRST_VERSION, members)
        return found


_foundings: dict[int, Founding] = {}
SHARED_FOUNDINGS = 8  # simulated nodes share one; a process has one or two


def founding_of(table: TableKnown) -> Founding:
    """Nodes of one process share what they would all compute."""
    found = _foundings.get(table.table)
    if found is None or found.table != table:
        found = _foundings[table.table] = Founding(table)
        while len(_foundings) > SHARED_FOUNDINGS:
            del _foundings[next(iter(_foundings))]
    return found


class Core:
    """One node's place in the table."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        settings: DhtSettings,
        base: Base,
        zones: ZoneDirectory | None,
        may: May | None,
        here: Callable[[], tuple[str, ...]],
        router: Router | None,
    ) -> None:
        self.me = me
        self.effects = effects
        self.rng = rng
        self.settings = settings
        self.base = base
        self.zones = zones
        self.may = may  # None: everybody may everything
        self.here = here
        self.timers = Timetable(effects)
        self.counts = DhtCounts()
        self.tracer = Tracer(me, effects)
        self.post = Post(effects, base.view, router)
        # What an application waits for; between replicas `effects.send` and `say` do.
        self.send = effects.send if router is None else self.post.send
        self.vault = Vault(effects, durable=settings.storage == "sqlite")
        self.stopped = True
        self.life = 0
        self.session = 1 + rng.getrandbits(62)  # this process, also where it is the same life
        self.table: TableKnown | None = None
        self.founding: Founding | None = None
        self.shards: dict[int, Shard] = {}
        self.tier: Tier = ()
        self.oldest = 0  # the oldest table that the delegates know of
        self.servers: tuple[NodeId, ...] = ()  # of this zone, by name
        self.lives: dict[NodeId, int] = {}
        self.shown: dict[NodeId, tuple[int, int]] = {}  # (life, table) of all who offer storage
        self.heard: dict[NodeId, float] = {}  # when a peer last said something about the table
        self.stored = 0  # bytes on this node's shelves; copies are counted with the next beat
        self.full: dict[NodeId, None] = {}  # who said that it has no room
        self._layout: Layout | None = None
        self._laid_out: tuple[tuple[NodeId, ...], Tier, int] = ((), (), 0)  # what it follows from
        self._met: dict[NodeId, tuple[str, ...]] = {}
        self._next_id = 1 + rng.getrandbits(48)

    def notice(self, now: float) -> None:
        """Take the node's clock."""
        self.timers.notice(now)
        self.post.now = now

    @property
    def zone(self) -> Scope:
        """The zone of this node."""
        return self.base.view.zone

    @property
    def serves(self) -> bool:
        """Whether this node keeps keys."""
        return self.me in self.lives

    @property
    def number(self) -> int:
        """The table's number; 0 while none is known."""
        return 0 if self.table is None else self.table.table

    @property
    def bits(self) -> int:
        """Of a key's hash that name its shard."""
        return self.settings.shard_bits if self.table is None else self.table.bits

    def next_id(self) -> int:
        """A number for one operation or batch: higher than all before of this life."""
        self._next_id += 1
        return self._next_id

    def myself(self) -> Member:
        """This node as a member of groups."""
        return Member(self.me, self.life, self.zone, self.here())

    def check_table(self, src: NodeId, table: int, now: float) -> bool:
        """Whether a message is about this node's table; whoever sent it is alive."""
        self.heard[src] = now
        if self.table is None or table != self.table.table:
            self.counts.other_table += 1
            return False
        return True

    def not_in_group(self, src: NodeId, shard: int) -> RemoteProtocolError:
        """What a message about a shard is refused with that its group did not send."""
        self.counts.strangers += 1
        return RemoteProtocolError("dht-not-responsible", f"{src} about shard {shard}")

    # -- servers ----------------------------------------------------------------------------------

    def look(self) -> bool:
        """Read who serves from the view; true when that changed."""
        view = self.base.view
        shown: dict[NodeId, tuple[int, int]] = {}
        for name in view.members():
            said = view.attributes(name).get(DHT)
            if said is not None:
                one = read_offer(said)
                if one is not None:
                    shown[name] = one
        self.shown = shown
        lives = {name: life for name, (life, table) in shown.items() if table == self.number}
        if lives == self.lives:
            return False
        self.lives = lives
        self.servers = tuple(sorted(lives))
        return True

    @property
    def layout(self) -> Layout:
        """Who keeps what in this zone, by this node's view of it."""
        seen = (self.servers, self.tier, self.number)
        if self._layout is not None and seen == self._laid_out:
            return self._layout
        settings = self.settings
        points = settings.node_points if self.table is None else self.table.points
        terms = Terms(
            *(self.bits, points, settings.replicas, settings.lateral),
            *(self.zone, self.tier, settings.slice_points),
        )
        self._laid_out, self._layout = seen, layout_of(self.servers, terms)
        return self._layout

    def server(self, name: NodeId) -> Member:
        """A server of this zone as a member of groups."""
        record = self.base.view.record(name)
        endpoints = self.here() if name == self.me or record is None else record.endpoints
        return Member(name, self.lives[name], self.zone, endpoints)

    def reachable(self, member: Member, now: float) -> bool:
        """Whether that life of that member is held to be alive."""
        if member.name == self.me:
            return member.life == self.life
        if member.zone == self.zone:
            shown = self.shown.get(member.name)
            return shown is not None and shown[0] == member.life
        return now - self.heard.setdefault(member.name, now) <= self.settings.silence

    def meet(self, group: Group) -> None:
        """Learn where members in other zones are reached."""
        for member in group.members:
            if member.zone != self.zone and self._met.get(member.name) != member.endpoints:
                self._met[member.name] = member.endpoints
                if member.endpoints:
                    self.effects.emit(ContactLearned(member.name, member.endpoints))

    def meet_asker(self, name: NodeId, endpoints: tuple[str, ...]) -> None:
        """Learn where one who asked is reached, unless the view knows."""
        if endpoints and name not in self.base.view and self._met.get(name) != endpoints:
            self._met[name] = endpoints
            self.effects.emit(ContactLearned(name, endpoints))

    # -- shards -----------------------------------------------------------------------------------

    def is_me(self, group: Group) -> bool:
        """Whether this life of this node belongs to that group."""
        return any(one.name == self.me and one.life == self.life for one in group.members)

    def shard(self, number: int, now: float) -> Shard:
        """What this node knows of a shard; at first, the group of the founding."""
        found = self.shards.get(number)
        if found is None:
            assert self.founding is not None
            group = self.founding.group(number)
            found = Shard(number, group, seated=self.is_me(group), now=now)
            self.shards[number] = found
        return found

    def known_group(self, number: int) -> Group | None:
        """The latest group of a shard that this node heard of."""
        found = self.shards.get(number)
        if found is not None:
            return found.group
        return None if self.founding is None else self.founding.group(number)

    def keep(self, shard: Shard) -> None:
        """Write down what was promised."""
        self.vault.put_shard(
            shard.id, shard.group, shard.promised, shard.next_ballot, shard.next_group
        )

    @property
    def is_full(self) -> bool:
        """Whether this node has no room for more values."""
        return self.stored > self.settings.node_bytes

    def without_majority(self, now: float) -> int:
        """How many of this node's shards cannot be read or written, by its views."""
        lost = 0
        for shard in self.shards.values():
            if shard.seated:
                present = [one.name for one in shard.group.members if self.reachable(one, now)]
                lost += not shard.group.is_majority(present)
        return lost

    def say(self, to: NodeId, message: Message) -> None:
        """Send as soon as what it claims is on disk."""
        self.vault.after(self.effects.send, to, message)

    def say_all(self, to: Sequence[NodeId], message: Message) -> None:
        """The same to several; it is encoded once."""
        self.vault.after(self.effects.send, to, message)

    def tell_group(self, to: NodeId, shard: Shard) -> None:
        """Tell who is behind which group a shard has now."""
        self.say(to, Activate(self.number, ((shard.id, shard.group),)))


def read_offer(said: object) -> tuple[int, int] | None:
    """(life, table) that a server shows as "life:table", both in hexadecimal."""
    if not isinstance(said, str) or len(said) > 40:
        return None
    life, _, table = said.partition(":")
    try:
        return (int(life, 16), int(table, 16))
    except ValueError:
        return None
