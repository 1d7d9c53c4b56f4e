"""Sounding a tree: a wave of questions from the publisher's broker, and of answers back to it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from overlay.ids import NodeId
from overlay.protocol import Effects
from protocols.content.interface import Branch, EntryId, MobileContent
from protocols.mobility.config import MobilitySettings
from protocols.mobility.counts import MobilityCounts
from protocols.mobility.messages import Sound, Sounded

WAVE = "wave"  # and its key: who has not answered is asked again

Key: TypeAlias = tuple[int, EntryId, NodeId]  # number, advertisement, and who asked
Done: TypeAlias = Callable[[bool, float], None]  # (complete, now)


class Wave:
    """One question that passes here."""

    __slots__ = ("answered", "asked", "complete", "deadline", "done", "flush", "is_over", "tree")

    def __init__(self, tree: EntryId, flush: bool, deadline: float, done: Done | None) -> None:
        self.tree = tree
        self.flush = flush
        self.deadline = deadline
        self.done = done  # of the broker that began it
        self.asked: dict[NodeId, Branch] = {}  # and did not answer
        self.answered: dict[NodeId, None] = {}
        self.complete = True
        self.is_over = False


class Sounding:
    """All waves that pass this broker, and which branches are known to stand."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: MobilitySettings,
        content: MobileContent,
        counts: MobilityCounts,
    ) -> None:
        self._me = me
        self._effects = effects
        self._rng = rng
        self._config = config
        self._content = content
        self._counts = counts
        self._waves: dict[Key, Wave] = {}
        self._stand: dict[EntryId, dict[NodeId, Branch]] = {}

    def __len__(self) -> int:
        return len(self._waves)

    # -- the wave -------------------------------------------------------------------------------

    def begin(self, entry: EntryId, done: Done, now: float, *, flush: bool = False) -> None:
        """Ask the whole tree of an advertisement of this broker's own publisher."""
        key = (self._rng.getrandbits(61), entry, self._me)
        self._enter(key, Wave("", flush, now + self._config.patience, done), now)

    def on_sound(self, src: NodeId, msg: Sound, now: float) -> None:
        """Ask the branches behind this broker."""
        if not self._content.moving.has_read(src, msg.series, msg.stamp):
            self._counts.unread += 1
            return
        key = (msg.number, msg.entry, src)
        wave = self._waves.get(key)
        if wave is not None:
            if wave.is_over:
                self._answer(key, wave)
            return
        if not self._content.moving.hangs_on(msg.entry, msg.tree, src):
            self._effects.send(
                src, Sounded(msg.entry, msg.number, *self._content.told(src), apart=True)
            )
            return
        self._enter(key, Wave(msg.tree, msg.flush, now + self._config.patience, None), now)

    def on_sounded(self, src: NodeId, msg: Sounded, now: float) -> None:
        """A branch answers."""
        if not self._content.moving.has_read(src, msg.series, msg.stamp):
            self._counts.unread += 1
            return
        for key, wave in list(self._waves.items()):
            if key[:2] == (msg.number, msg.entry) and src in wave.asked:
                branch = wave.asked.pop(src)
                wave.answered[src] = None
                wave.complete &= msg.complete
                if msg.complete and not msg.apart:
                    self._stand.setdefault(msg.entry, {})[src] = branch
                self._look(key, wave, now)

    def on_timer(self, key: Key, now: float) -> None:
        """Ask again, or give up."""
        wave = self._waves.get(key)
        if wave is None:
            return
        if wave.is_over:
            del self._waves[key]
        elif now >= wave.deadline:
            wave.complete = False
            wave.asked.clear()
            self._end(key, wave, now)
        else:
            self._ask(key, wave, now)

    def _enter(self, key: Key, wave: Wave, now: float) -> None:
        self._counts.waves += 1
        if len(self._waves) >= self._config.max_waves:
            self._counts.not_sounded += 1
            if wave.done is not None:
                wave.done(False, now)
            return
        self._waves[key] = wave
        self._ask(key, wave, now)

    def _ask(self, key: Key, wave: Wave, now: float) -> None:
        """Ask every branch that has not answered, and forget those that are none any more."""
        number, entry, src = key
        self._effects.set_timer((WAVE, key), now + self._config.retry)
        if self._content.moving.holds(entry):
            return  # publications that came before the question have not been handed on
        branches = self._content.moving.branches(entry, wave.tree, src, wanting=wave.flush)
        known = self._stand.get(entry, {})
        wave.asked = {
            branch.peer: branch
            for branch in branches
            if branch.peer not in wave.answered and (wave.flush or known.get(branch.peer) != branch)
        }
        for peer, branch in wave.asked.items():
            series, stamp = self._content.told(peer)
            self._effects.send(peer, Sound(entry, number, wave.flush, series, stamp, branch.tree))
        self._look(key, wave, now)

    def _look(self, key: Key, wave: Wave, now: float) -> None:
        if not wave.asked and not wave.is_over:
            self._end(key, wave, now)

    def _end(self, key: Key, wave: Wave, now: float) -> None:
        wave.is_over = True
        if wave.done is not None:
            self._forget(key)
            wave.done(wave.complete, now)
        else:  # the answer may be lost: then the question comes again
            self._answer(key, wave)
            self._effects.set_timer((WAVE, key), max(wave.deadline, now))

    def _answer(self, key: Key, wave: Wave) -> None:
        number, entry, src = key
        series, stamp = self._content.told(src)
        self._effects.send(src, Sounded(entry, number, series, stamp, complete=wave.complete))

    def _forget(self, key: Key) -> None:
        if self._waves.pop(key, None) is not None:
            self._effects.cancel_timer((WAVE, key))

    # -- what ends or changes -------------------------------------------------------------------

    def gone(self, peer: NodeId, now: float) -> None:
        """A neighbour is lost: nobody waits for it, and it stands no more."""
        for branches in self._stand.values():
            branches.pop(peer, None)
        for key, wave in list(self._waves.items()):
            if key[2] == peer:
                self._forget(key)
            elif wave.asked.pop(peer, None) is not None:
                self._look(key, wave, now)

    def changed(self, entry: EntryId) -> None:
        """An advertisement is known by another way, or no more: it is asked anew."""
        self._stand.pop(entry, None)
