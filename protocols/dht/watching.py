"""Watching keys: the leader of a key tells who asked of each value that it commits."""

from __future__ import annotations

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from protocols.dht.core import Core
from protocols.dht.interface import READ, Hear
from protocols.dht.messages import Changed, Route, Watch
from protocols.dht.placement import shard_of
from protocols.dht.routes import Routes
from protocols.dht.shard import Shard
from protocols.dht.shelf import Record

RENEW = "renew"
OUTLASTS = 3  # renewals that a leader waits for before it forgets a watcher
NEVER = (0, 0)


class Own:
    """A watch of this node's application."""

    __slots__ = ("hear", "key", "known", "told", "value")

    def __init__(self, key: bytes, hear: Hear) -> None:
        self.key = key
        self.hear = hear
        self.known = NEVER  # the stamp of what was told last
        self.value: bytes | None = None
        self.told = False


class Watches:
    """Both sides: what this node watches, and who watches what it leads."""

    def __init__(self, core: Core, routes: Routes) -> None:
        self._core = core
        self._routes = routes
        self._own: dict[int, Own] = {}
        self._others: dict[bytes, dict[tuple[NodeId, int], float]] = {}  # until when
        self._count = 0

    def __len__(self) -> int:
        return len(self._own) + self._count

    # -- this node's ------------------------------------------------------------------------------

    def watch(self, key: bytes, hear: Hear, now: float) -> int:
        """Begin; the value that the key has now is the first one told."""
        core = self._core
        if len(key) > core.settings.key_bytes:
            raise LocalProtocolError(
                f"a key of {len(key)} bytes: dht.key_bytes is {core.settings.key_bytes}"
            )
        if len(self._own) >= core.settings.max_watches:
            raise LocalProtocolError(f"{len(self._own)} watches: dht.max_watches")
        if core.may is not None and not core.may(core.me, READ):
            raise LocalProtocolError(f"the certificate of {core.me} does not allow to read")
        number = core.next_id()
        self._own[number] = Own(key, hear)
        self.renew(now)
        return number

    def unwatch(self, number: int, now: float) -> None:
        """End; harmless when it has ended."""
        own = self._own.pop(number, None)
        if own is not None:
            self._send(number, own, now, ends=True)

    def renew(self, now: float) -> None:
        """Tell the leaders, whoever they are now, what this node watches."""
        core = self._core
        if self._own:
            core.timers.set(RENEW, now + core.settings.watch_renew)
            for number, own in list(self._own.items()):
                self._send(number, own, now)

    def on_way(self, shard: int, now: float) -> None:
        """Who leads a shard is known: those who watch it need not wait for their turn."""
        bits = self._core.bits
        for number, own in list(self._own.items()):
            if shard_of(own.key, bits) == shard:
                self._send(number, own, now)

    def _send(self, number: int, own: Own, now: float, *, ends: bool = False) -> None:
        core = self._core
        if core.table is None:
            return
        shard = shard_of(own.key, core.bits)
        way = self._routes.find(shard, now)
        if way is None:
            if not ends:
                self._routes.ask(shard, now)
            return
        message = Watch(core.number, number, shard, own.key, *own.known, ends)
        if way.leader == core.me:
            self.on_watch(core.me, message, now)
        else:
            core.effects.send(way.leader, message)

    def on_changed(self, src: NodeId, message: Changed, now: float) -> None:
        """Tell the application, unless it knows."""
        self._core.heard[src] = now
        own = self._own.get(message.id)
        if own is None or own.key != message.key:
            self._core.counts.late += 1
            return
        stamp = (message.ballot, message.sequence)
        if own.told and stamp <= own.known:
            return
        news = not own.told or message.value != own.value
        own.known, own.value, own.told = stamp, message.value, True
        if news:
            own.hear(message.value)

    # -- others' ----------------------------------------------------------------------------------

    def on_watch(self, src: NodeId, message: Watch, now: float) -> None:
        """Remember who watches what this node leads, and tell what it does not know."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        shard = core.shards.get(message.shard)
        if shard is None or shard.reign is None or shard.reign.recovering:
            group = core.known_group(message.shard)
            if group is not None and src != core.me:  # it finds who leads by asking
                core.effects.send(src, Route(core.number, message.shard, group, 0))
            return
        if core.may is not None and not core.may(src, READ):
            core.counts.forbidden += 1
            return
        watcher = (src, message.id)
        watchers = self._others.setdefault(message.key, {})
        if message.ends:
            self._count -= watchers.pop(watcher, None) is not None
            return
        if watcher not in watchers:
            if self._count >= core.settings.max_watches:
                core.counts.busy += 1
                return
            self._count += 1
        watchers[watcher] = now + OUTLASTS * core.settings.watch_renew
        record = shard.reign.committed(message.key)
        if record is None or record.stamp != (message.ballot, message.sequence):
            self._tell(watcher, message.key, record)

    def _tell(self, watcher: tuple[NodeId, int], key: bytes, record: Record | None) -> None:
        name, number = watcher
        if record is None:
            message = Changed(number, key, *NEVER, None)
        else:
            message = Changed(number, key, record.ballot, record.sequence, record.value)
        if name == self._core.me:
            self.on_changed(name, message, self._core.heard.get(name, 0.0))
        else:
            self._core.effects.send(name, message)

    def on_committed(self, shard: Shard, key: bytes, record: Record) -> None:
        """A key that this node leads has another record."""
        watchers = self._others.get(key)
        if watchers:
            for watcher in list(watchers):
                self._tell(watcher, key, record)

    def forget_silent(self, now: float) -> None:
        """End the watches that nobody renewed."""
        for key, watchers in list(self._others.items()):
            for watcher, until in list(watchers.items()):
                if until <= now:
                    del watchers[watcher]
                    self._count -= 1
            if not watchers:
                del self._others[key]
