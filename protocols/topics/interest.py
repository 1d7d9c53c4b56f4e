"""Interest as attributes of a member: what this node subscribes to, in writing.

| Attribute | Value |
|---|---|
| `topics` | words of topics, separated by commas; a comma at its end: there are more of them |
| `topics.bloom`, `topics.bloom.1`, … | slices of a filter of all topics, if words do not fit |
| `patterns` | a pattern on each line; where they do not fit, wider ones that cover them |

Attributes travel one by one, in any order. So each value alone is true of all that stays subscribed
while it is valid, and a comma at the end with no slice for a topic means that the topic may well be
wanted: the slice is still on its way.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from sys import intern

from overlay.errors import LocalProtocolError
from overlay.patterns import ANY, MAX_BYTES, ONE, check_pattern, check_topic
from protocols.topics.bloom import MAX_SLICES, CountingFilter, Shape, shape_for
from protocols.topics.names import WORD_CHARACTERS, hash_of, word_of
from protocols.topology.interface import TOPICS

PATTERNS = "patterns"
BLOOM = "topics.bloom"
BLOOM_KEYS = (BLOOM, *(f"{BLOOM}.{at}" for at in range(1, MAX_SLICES)))
INTEREST_KEYS = (TOPICS, *BLOOM_KEYS, PATTERNS)
"""Every attribute that interest may use: whoever sets some of them removes the others."""

LEAST_BYTES = 16  # of a value: a word, a comma, and some room for a slice


class OwnInterest:
    """What this node subscribes to; `attributes` says it in values of `value_bytes` at most."""

    def __init__(self, value_bytes: int = 1024, slices: int = 4) -> None:
        if value_bytes < LEAST_BYTES:
            raise LocalProtocolError(f"interest in {value_bytes} bytes: at least {LEAST_BYTES}")
        if slices not in (1, 2, 4, 8, 16):
            raise LocalProtocolError(f"a filter of {slices} slices: 1, 2, 4, 8 or 16")
        self._topics = _OwnTopics(value_bytes, slices)
        self._patterns = _OwnPatterns(value_bytes)
        self._said: dict[str, str] = {}
        self.changed = False  # whether `attributes` may have news

    def __len__(self) -> int:
        """How many different topics and patterns there are."""
        return len(self._topics.counts) + len(self._patterns.counts)

    def __contains__(self, name: object) -> bool:
        """Whether there is a subscription to exactly that topic or pattern."""
        return name in self._topics.counts or name in self._patterns.counts

    def subscribe(self, name: str) -> bool:
        """Add one subscription to a topic or pattern; true when it is the first to it.

        A malformed name is a LocalProtocolError.
        """
        held: _OwnTopics | _OwnPatterns
        if ONE in name:
            held = self._patterns
            check_pattern(name)
        else:
            held = self._topics
            check_topic(name)
        count = held.counts.get(name, 0)
        held.counts[intern(name)] = count + 1  # simulated nodes share the name
        if count:
            return False
        held.added(name)
        self.changed = True
        return True

    def unsubscribe(self, name: str) -> bool:
        """End one subscription; true when it was the last to that topic or pattern."""
        held = self._patterns if ONE in name else self._topics
        count = held.counts.get(name, 0)
        if not count:
            raise LocalProtocolError(f"nobody here subscribed to {name!a}")
        if count > 1:
            held.counts[name] = count - 1
            return False
        del held.counts[name]
        held.removed(name)
        self.changed = True
        return True

    def attributes(self) -> dict[str, str]:
        """What this node's attributes have to say now; keys of INTEREST_KEYS not in it must go."""
        if self.changed:
            self._said = self._topics.attributes() | self._patterns.attributes()
            self.changed = False
        return dict(self._said)


class _OwnTopics:
    """Exact topics with the number of their subscriptions, as words or as a filter."""

    def __init__(self, value_bytes: int, slices: int) -> None:
        self.counts: dict[str, int] = {}
        self._value_bytes = value_bytes
        self._slices = slices
        self._filter: CountingFilter | None = None

    def added(self, topic: str) -> None:
        if self._filter is not None:
            self._filter.add(hash_of(topic))

    def removed(self, topic: str) -> None:
        if self._filter is not None:
            self._filter.remove(hash_of(topic))

    def attributes(self) -> dict[str, str]:
        """Words as long as all fit. Otherwise a filter, beside the words that fit.

        Those words stay, since links of common interest are chosen by them, and since a list that
        vanished before the filter arrives would leave interest unknown that was known.
        """
        each = WORD_CHARACTERS + 1
        total = len(self.counts)
        if total * each <= self._value_bytes + 1:
            self._filter = None
            return {TOPICS: ",".join(map(word_of, self.counts))} if total else {}
        words = map(word_of, islice(self.counts, self._value_bytes // each))
        slices = self._fitting(total).texts()
        return {
            TOPICS: ",".join((*words, "")),
            **dict(zip(BLOOM_KEYS, slices, strict=False)),
        }

    def _fitting(self, total: int) -> CountingFilter:
        """The filter, made anew only when it is too small or more than twice too large."""
        held = self._filter
        if held is None or not (
            self._shape(total).bytes <= held.shape.bytes <= self._shape(2 * total).bytes
        ):
            self._filter = held = CountingFilter(self._shape(total))
            for topic in self.counts:
                held.add(hash_of(topic))
        return held

    def _shape(self, total: int) -> Shape:
        return shape_for(total, self._value_bytes, self._slices)


class _OwnPatterns:
    """Patterns with the number of their subscriptions, and what is shown of them."""

    def __init__(self, value_bytes: int) -> None:
        self.counts: dict[str, int] = {}
        self._value_bytes = value_bytes
        self._bytes = 0  # of all of them, each with its newline
        self._shown: dict[str, None] = {}  # wider ones that cover all but the fresh
        self._fresh: dict[str, None] = {}
        self._leaving = 0  # so many may end before what is shown is made narrower again

    def added(self, pattern: str) -> None:
        self._bytes += len(pattern.encode()) + 1
        self._fresh[pattern] = None

    def removed(self, pattern: str) -> None:
        self._bytes -= len(pattern.encode()) + 1
        self._fresh.pop(pattern, None)
        self._leaving -= 1

    def attributes(self) -> dict[str, str]:
        """All of them as long as they fit, otherwise wider ones.

        Thousands of patterns are not looked through at each change: new ones join what is shown,
        and that is made narrower only when half of the patterns are gone.
        """
        if not self.counts:
            self._shown = {}
            self._leaving = 0
        elif self._bytes <= self._value_bytes + 1:
            self._shown = dict.fromkeys(self.counts)
            self._leaving = 0
        elif self._leaving <= 0:
            self._shown = widen(self.counts, self._value_bytes)
            self._leaving = (len(self.counts) + 1) // 2
        else:
            news = [pattern for pattern in self._fresh if not self._is_shown(pattern)]
            if news:
                self._shown = widen((*self._shown, *news), self._value_bytes)
        self._fresh = {}
        return {PATTERNS: "\n".join(self._shown)} if self._shown else {}

    def _is_shown(self, pattern: str) -> bool:
        """Whether it, or `prefix/**` of it, is shown already: all that widening makes."""
        levels = pattern.split("/")
        wider = ("/".join((*levels[:kept], ANY)) for kept in range(len(levels)))
        return pattern in self._shown or any(one in self._shown for one in wider)


def widen(patterns: Iterable[str], value_bytes: int) -> dict[str, None]:
    """Patterns that cover all of these, and fit into so many bytes with newlines between.

    The deepest levels go first: several of one prefix become `prefix/**`, those first that save
    the most. Then single ones lose their last levels; when nothing else helps, `**` covers all.
    """
    shown = dict.fromkeys(patterns)
    excess = sum(map(_cost, shown)) - value_bytes - 1
    deepest = max((pattern.count("/") for pattern in shown), default=0)
    steps = [(kept, 2) for kept in range(deepest, 0, -1)]
    steps += [(kept, 1) for kept in range(deepest, -1, -1)]
    for kept, least in steps:
        if excess <= 0:
            break
        groups: dict[str, list[str]] = {}
        for pattern in shown:
            levels = pattern.split("/", kept)
            if len(levels) > kept:
                groups.setdefault("/".join((*levels[:kept], ANY)), []).append(pattern)
        saved = {
            wide: sum(map(_cost, group)) - _cost(wide)
            for wide, group in groups.items()
            # `**` is longer than a level of one letter, and a pattern must not grow too long
            if len(group) >= least and len(wide.encode()) <= MAX_BYTES
        }
        for wide in sorted(saved, key=lambda wide: (-saved[wide], wide)):
            if excess <= 0 or saved[wide] <= 0:
                break
            for pattern in groups[wide]:
                del shown[pattern]
            shown[wide] = None
            excess -= saved[wide]
    return shown


def _cost(pattern: str) -> int:
    return len(pattern.encode()) + 1
