"""Linearizability of a map's keys: was each operation done at one moment between call and return?

Operations are read in the order of their calls and returns. A *configuration* is one possible
past: the value now, and which of the operations under way have taken effect. Nothing takes effect
before the return of some operation demands it (Lowe's just-in-time linearization); when no
configuration allows a return, the history is wrong.

An operation whose outcome nobody knows may take effect at any moment after its call, or never. Of
two pasts that differ only in how many of these they have used up, the thriftier one can do all that
the other can; and of several that do the same (values that nobody is told any more are all the
same) the first one is used first. So the work grows with what overlaps, not with the length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from math import inf
from typing import Literal, NamedTuple, TypeAlias

import msgspec

Kind: TypeAlias = Literal[
    "get",
    "contains",
    "put",
    "put_and_retrieve",
    "put_if_absent",
    "replace",
    "replace_if",
    "remove",
    "remove_if",
]
Value: TypeAlias = Hashable
"""What a key has; None: nothing."""

MOST_CONFIGURATIONS = 100_000  # at one return; more than a bounded number of clients ever makes


class Undecided(Exception):
    """Too many operations overlap: the history may be right or wrong."""


class Operation(msgspec.Struct, eq=False):
    """One operation on one key, as its caller saw it."""

    kind: Kind
    key: bytes
    value: Value = None  # to be written
    expected: Value = None  # what `replace_if` and `remove_if` compare with
    who: str = ""  # for people
    called: float = 0.0
    returned: float = inf  # inf: its outcome is unknown
    result: Value = None

    @property
    def compared(self) -> Value:
        """What the key must have for it to take effect; None: it does not ask."""
        return self.expected if self.kind in ("replace_if", "remove_if") else None

    @property
    def known(self) -> bool:
        """Whether its caller was told the outcome."""
        return self.returned != inf

    def __str__(self) -> str:
        words = [repr(one) for one in (self.expected, self.value) if one is not None]
        told = repr(self.result) if self.known else "unknown"
        span = f"[{self.called:g}, {self.returned:g}]"
        return f"{span} {self.who} {self.kind}({', '.join(words)}) -> {told}"


class Violation(NamedTuple):
    """The first return that no order of operations explains."""

    operation: Operation
    values: tuple[Value, ...]  # that the key could have had just before
    overlapping: tuple[Operation, ...]

    def __str__(self) -> str:
        beside = "".join(f"\n    beside {one}" for one in self.overlapping)
        was = f"{self.operation.key!r} was one of {self.values!r}"
        return f"{was}, but\n    {self.operation}{beside}"


def outcome(operation: Operation, value: Value) -> tuple[Value, Value]:
    """What a key with that value has after the operation, and what its caller is told."""
    match operation.kind:
        case "get":
            return value, value
        case "contains":
            return value, value is not None
        case "put":
            return operation.value, True
        case "put_and_retrieve":
            return operation.value, value
        case "put_if_absent":
            return (operation.value, True) if value is None else (value, False)
        case "replace":
            return (value if value is None else operation.value), value
        case "replace_if":
            held = value is not None and value == operation.expected
            return (operation.value if held else value), held
        case "remove":
            return None, value is not None
        case "remove_if":
            held = value is not None and value == operation.expected
            return (None if held else value), held


class _Past(NamedTuple):
    """One configuration; numbers are places in the list of operations."""

    value: Value
    done: frozenset[int]  # known ones under way that took effect
    used: frozenset[int]  # unknown ones that did


class _Untold:
    """Stands for all values that nobody will be told, or compare with, any more."""


_UNTOLD = _Untold()


class _Telling:
    """Until when each value makes a difference."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._until: dict[Value, float] = {}
        for one in operations:
            for value in (one.compared, one.result if one.known else None):
                self._until[value] = max(one.returned, self._until.get(value, -inf))
        self._until[None] = inf
        self.now = -inf

    def face(self, value: Value) -> Value:
        """The value, if it still makes one."""
        return value if self._until.get(value, -inf) >= self.now else _UNTOLD

    def kind_of(self, operation: Operation) -> Hashable:
        """What it does: of several unknown ones that do the same it is enough to try one."""
        return operation.kind, self.face(operation.value), operation.compared


class _Pasts:
    """Configurations, without those that another one makes needless."""

    def __init__(self, telling: _Telling, pasts: Iterable[_Past] = ()) -> None:
        self._telling = telling
        self._pasts: dict[tuple[Value, frozenset[int]], list[_Past]] = {}
        self._count = 0
        for past in pasts:
            self.add(past)

    def add(self, past: _Past) -> bool:
        """Keep it; False when there is one that can do as much."""
        kept = self._pasts.setdefault((self._telling.face(past.value), past.done), [])
        if any(one.used <= past.used for one in kept):
            return False
        better = [one for one in kept if not past.used <= one.used]
        self._count += len(better) + 1 - len(kept)
        kept[:] = [*better, past]
        if self._count > MOST_CONFIGURATIONS:
            raise Undecided(f"more than {MOST_CONFIGURATIONS} possible pasts at one moment")
        return True

    def __iter__(self) -> Iterator[_Past]:
        for kept in self._pasts.values():
            yield from kept

    def __bool__(self) -> bool:
        return bool(self._pasts)


def check_key(operations: Iterable[Operation], initial: Value = None) -> Violation | None:
    """The first thing that is wrong with the operations on one key, or None."""
    listed = [one for one in operations if one.known or one.kind not in ("get", "contains")]
    listed.sort(key=lambda one: one.called)
    telling = _Telling(listed)
    moments = sorted(
        # At one moment calls come before returns: those operations overlap.
        [(one.called, 0, number) for number, one in enumerate(listed)]
        + [(one.returned, 1, number) for number, one in enumerate(listed) if one.known]
    )
    pasts = _Pasts(telling, [_Past(initial, frozenset(), frozenset())])
    under_way: dict[int, Operation] = {}
    for telling.now, returns, number in moments:
        if not returns:
            under_way[number] = listed[number]
            continue
        pasts = _Pasts(telling, (_thrifty(past, under_way, telling) for past in pasts))
        after = _Pasts(
            telling,
            (
                _Past(past.value, past.done - {number}, past.used)
                for past in _with_effect(number, pasts, under_way, telling)
            ),
        )
        del under_way[number]
        if not after:
            values = dict.fromkeys(past.value for past in pasts)
            return Violation(listed[number], tuple(values), tuple(under_way.values()))
        pasts = after
    return None


def _thrifty(past: _Past, under_way: dict[int, Operation], telling: _Telling) -> _Past:
    """The same with the first of each kind used up: which one it was makes no difference."""
    if not past.used:
        return past
    counts = Counter(telling.kind_of(under_way[number]) for number in past.used)
    used = []
    for number, operation in under_way.items():
        if not operation.known and counts[kind := telling.kind_of(operation)] > 0:
            counts[kind] -= 1
            used.append(number)
    return past._replace(used=frozenset(used))


def _with_effect(
    number: int, pasts: _Pasts, under_way: dict[int, Operation], telling: _Telling
) -> Iterator[_Past]:
    """All pasts in which that operation took effect, however many others did just before."""
    seen, front = _Pasts(telling, pasts), list(pasts)
    kinds = {
        other: telling.kind_of(operation) if not operation.known else other
        for other, operation in under_way.items()
    }
    while front:  # each round lets one more take effect, so that frugal pasts come first
        further: list[_Past] = []
        for past in front:
            if number in past.done:
                yield past
                continue
            left = {kinds[n]: n for n in reversed(under_way) if n not in past.used | past.done}
            for other in left.values():
                grown = _took_effect(past, other, under_way[other])
                if grown is not None and seen.add(grown):
                    further.append(grown)
        front = further


def _took_effect(past: _Past, number: int, operation: Operation) -> _Past | None:
    """That operation as the next one; None when it would do nothing, or answered otherwise."""
    value, result = outcome(operation, past.value)
    if not operation.known:
        return None if value == past.value else _Past(value, past.done, past.used | {number})
    if type(result) is not type(operation.result) or result != operation.result:
        return None
    return _Past(value, past.done | {number}, past.used)


class History:
    """Records what clients call and are told, in one process; its serial numbers are the time."""

    def __init__(self) -> None:
        self.refused = 0
        self._operations: dict[Operation, None] = {}
        self._moment = 0

    def _now(self) -> int:
        self._moment += 1
        return self._moment

    def call(
        self,
        kind: Kind,
        key: bytes,
        value: Value = None,
        *,
        expected: Value = None,
        who: str = "",
    ) -> Operation:
        """A client calls; until it returns its outcome is unknown."""
        called = Operation(kind, key, value, expected, who, self._now())
        self._operations[called] = None
        return called

    def returned(self, operation: Operation, result: Value) -> None:
        """The client was told."""
        operation.result = result
        operation.returned = self._now()

    def refuse(self, operation: Operation) -> None:
        """The client was told that nothing was done: as if it had never called."""
        del self._operations[operation]
        self.refused += 1

    @property
    def operations(self) -> list[Operation]:
        """All but the refused ones, by call."""
        return list(self._operations)

    def violations(self) -> list[Violation]:
        """One for each key that is not linearizable."""
        return violations(self._operations)

    def check(self) -> None:
        """AssertionError unless each key is linearizable."""
        found = self.violations()
        assert not found, f"{len(found)} keys are not linearizable: {found[0]}"


def violations(operations: Iterable[Operation]) -> list[Violation]:
    """One for each key whose operations no order explains."""
    by_key: dict[bytes, list[Operation]] = {}
    for operation in operations:
        by_key.setdefault(operation.key, []).append(operation)
    checked = (check_key(of_key) for of_key in by_key.values())
    return [violation for violation in checked if violation is not None]
