"""Who in the zone may want a topic: read from the members' attributes, kept up to date."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

from overlay.errors import LocalProtocolError
from overlay.ids import FULL_SPACE, NodeId, Vid, vid_of
from overlay.patterns import ANY, ONE, check_pattern, covers
from protocols.membership.interface import MembershipView, Value
from protocols.topics.bloom import FilterSlice, read_slice
from protocols.topics.interest import BLOOM_KEYS, PATTERNS
from protocols.topics.names import hash_of, word_of
from protocols.topology.interface import TOPICS, interests

REMEMBERED_AUDIENCES = 256  # 100 simulated nodes with 99 subscribers each: 22 MB
REMEMBERED_WANTS = 4096  # simulated nodes share what they read of one member

V = TypeVar("V", bound=Hashable)


class _Level(Generic[V]):
    """A node of the trie: what follows it, and the values of patterns that end here."""

    __slots__ = ("is_open", "next", "values")

    def __init__(self, *, is_open: bool) -> None:
        self.is_open = is_open  # it is `**`: stays for any number of levels
        self.next: dict[str, _Level[V]] = {}
        self.values: dict[V, int] = {}  # when each was added


class PatternIndex(Generic[V]):
    """Values by pattern; finds those whose pattern covers a topic without trying each pattern."""

    def __init__(self) -> None:
        self._root: _Level[V] = _Level(is_open=False)
        self._added = 0
        self._held = 0

    def __len__(self) -> int:
        """How many pairs of a pattern and a value there are."""
        return self._held

    def add(self, pattern: str, value: V) -> bool:
        """Put a value under a pattern; false when it was there. A bad pattern is the caller's."""
        level = self._root
        for word in check_pattern(pattern).split("/"):
            following = level.next.get(word)
            if following is None:
                following = level.next[word] = _Level(is_open=word == ANY)
            level = following
        if value in level.values:
            return False
        level.values[value] = self._added
        self._added += 1
        self._held += 1
        return True

    def remove(self, pattern: str, value: V) -> bool:
        """Take a value from under a pattern; false when it was not there."""
        path = [self._root]
        words = pattern.split("/")
        for word in words:
            following = path[-1].next.get(word)
            if following is None:
                return False
            path.append(following)
        if path[-1].values.pop(value, None) is None:
            return False
        self._held -= 1
        for before, word in zip(reversed(path[:-1]), reversed(words), strict=True):
            level = before.next[word]
            if level.next or level.values:
                break
            del before.next[word]
        return True

    def matches(self, topic: str) -> list[V]:
        """The values of all patterns that cover this topic: each once, the first added first."""
        reached: dict[_Level[V], None] = {}
        _reach(self._root, reached)
        for word in topic.split("/"):
            now, reached = reached, {}
            for level in now:
                if level.is_open:
                    _reach(level, reached)
                for step in (word, ONE):
                    following = level.next.get(step)
                    if following is not None:
                        _reach(following, reached)
            if not reached:
                return []
        found = [pair for level in reached for pair in level.values.items()]
        found.sort(key=lambda pair: pair[1])
        return list(dict.fromkeys(value for value, _ in found))


def _reach(level: _Level[V] | None, reached: dict[_Level[V], None]) -> None:
    """Be at a level, and behind every `**` that follows: it may stand for no level at all."""
    while level is not None and level not in reached:
        reached[level] = None
        level = level.next.get(ANY)


class Wants(NamedTuple):
    """What one member says to want."""

    words: frozenset[str] = frozenset()
    slices: tuple[FilterSlice, ...] = ()
    open: bool = False  # it wants more than the words: what no slice covers may be wanted, too
    patterns: tuple[str, ...] = ()
    malformed: int = 0  # attributes that say nothing, since nobody can read them

    @property
    def summarised(self) -> bool:
        """Whether words alone do not tell which topics it wants."""
        return self.open or bool(self.slices)

    def summary_allows(self, hashed: int) -> bool:
        """Whether its filter may hold a topic; yes if its part of the filter has not come yet."""
        covered = False
        for part in self.slices:
            if part.covers(hashed):
                if part.holds(hashed):
                    return True
                covered = True
        return self.open and not covered

    def allow(self, topic: str) -> bool:
        """Whether it may want a topic; no is certain."""
        return (
            word_of(topic) in self.words
            or (self.summarised and self.summary_allows(hash_of(topic)))
            or any(covers(pattern, topic) for pattern in self.patterns)
        )


NOTHING = Wants()


def read_wants(attributes: Mapping[str, Value]) -> Wants:
    """What a member's attributes say of its interest; whatever cannot be read says nothing."""
    topics, patterns = attributes.get(TOPICS), attributes.get(PATTERNS)
    blooms = tuple(attributes[key] for key in BLOOM_KEYS if key in attributes)
    if topics is None and patterns is None and not blooms:
        return NOTHING
    return _read(topics, blooms, patterns)


@lru_cache(maxsize=REMEMBERED_WANTS)
def _read(topics: Value | None, blooms: tuple[Value, ...], patterns: Value | None) -> Wants:
    slices = [read_slice(text) if isinstance(text, str) else None for text in blooms]
    unread = slices.count(None)
    malformed = unread
    malformed += sum(isinstance(value, int | float) for value in (topics, patterns))
    lines: tuple[str, ...] = ()
    if isinstance(patterns, str):
        try:
            lines = tuple(map(check_pattern, patterns.split("\n")))
        except LocalProtocolError:
            malformed += 1
    return Wants(
        words=interests({TOPICS: topics}),
        slices=tuple(part for part in slices if part is not None),
        # A slice that nobody can read has come all the same, and says nothing.
        open=isinstance(topics, str) and topics.endswith(",") and not unread,
        patterns=lines,
        malformed=malformed,
    )


class InterestIndex:
    """Which other members may want a topic: never too few of those whose attributes are known.

    Whoever owns it calls `refresh` when a member joined or its INTEREST_KEYS changed, and
    `forget` when it failed or left.
    """

    def __init__(self, members: MembershipView, remembered: int = REMEMBERED_AUDIENCES) -> None:
        self._members = members
        self._remembered = remembered
        self._wants: dict[NodeId, Wants] = {}  # of members who say anything about it
        self._by_word: dict[str, list[NodeId]] = {}
        self._by_pattern: PatternIndex[NodeId] = PatternIndex()
        self._summarised: dict[NodeId, Wants] = {}
        self._audiences: dict[str, tuple[NodeId, ...]] = {}  # by topic, clockwise
        self.malformed = 0  # attributes read that nobody can read
        for member in members.members():
            self.refresh(member)

    def interested(self, topic: str) -> tuple[NodeId, ...]:
        """Everybody else who may want a topic, clockwise on the ring."""
        audience = self._audiences.get(topic)
        if audience is None:
            audience = self._find(topic)
            if len(self._audiences) >= self._remembered:
                del self._audiences[next(iter(self._audiences))]
            self._audiences[topic] = audience
        return audience

    def count(self, topic: str) -> int:
        """How many others may want a topic."""
        return len(self.interested(topic))

    def may_want(self, member: NodeId, topic: str) -> bool:
        """Whether another member may want a topic; no is certain, as far as its interest is known.

        Nobody else than this node asks what this node wants: of itself it says no.
        """
        return self._wants.get(member, NOTHING).allow(topic)

    def anybody_in(self, start: Vid, upto: Vid, topic: str) -> bool:
        """Whether anybody else from `start` clockwise up to, not including, `upto` may want it.

        Nobody is there if the two are equal.
        """
        audience = self.interested(topic)
        if not audience:
            return False
        first = audience[bisect_left(audience, start, key=vid_of) % len(audience)]
        return FULL_SPACE.distance(start, vid_of(first)) < FULL_SPACE.distance(start, upto)

    def refresh(self, member: NodeId) -> None:
        """Read a member's attributes again; whoever is not present is forgotten."""
        if member == self._members.me:
            return
        wants = NOTHING
        if member in self._members:
            wants = read_wants(self._members.attributes(member))
        self._replace(member, wants)

    def forget(self, member: NodeId) -> None:
        """A member is gone, and wants nothing."""
        self._replace(member, NOTHING)

    def _replace(self, member: NodeId, wants: Wants) -> None:
        before = self._wants.get(member, NOTHING)
        if before == wants:
            return
        self.malformed += wants.malformed
        for word in before.words - wants.words:
            sharing = self._by_word[word]
            sharing.remove(member)
            if not sharing:
                del self._by_word[word]
        for word in wants.words - before.words:
            self._by_word.setdefault(word, []).append(member)
        if before.patterns != wants.patterns:
            for pattern in before.patterns:
                self._by_pattern.remove(pattern, member)
            for pattern in wants.patterns:
                self._by_pattern.add(pattern, member)
        _put(self._summarised, member, wants if wants.summarised else NOTHING)
        _put(self._wants, member, wants)
        self._drop_stale(member, before, wants)

    def _drop_stale(self, member: NodeId, before: Wants, wants: Wants) -> None:
        """Forget just the audiences that the member enters or leaves."""
        words = before.words ^ wants.words
        only_words = (before.slices, before.open, before.patterns) == (
            wants.slices,
            wants.open,
            wants.patterns,
        )
        for topic, audience in list(self._audiences.items()):
            if only_words and word_of(topic) not in words:
                continue
            at = bisect_left(audience, vid_of(member), key=vid_of)
            was_in = at < len(audience) and audience[at] == member
            if was_in != wants.allow(topic):
                del self._audiences[topic]

    def _find(self, topic: str) -> tuple[NodeId, ...]:
        found = dict.fromkeys(self._by_word.get(word_of(topic), ()))
        if len(self._by_pattern):
            found |= dict.fromkeys(self._by_pattern.matches(topic))
        hashed = hash_of(topic)
        for member, wants in self._summarised.items():
            if member not in found and wants.summary_allows(hashed):
                found[member] = None
        return tuple(sorted(found, key=vid_of))


def _put(table: dict[NodeId, Wants], member: NodeId, wants: Wants) -> None:
    if wants is NOTHING or wants == NOTHING:
        table.pop(member, None)
    else:
        table[member] = wants
