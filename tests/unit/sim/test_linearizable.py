"""The checker of histories: known-good ones pass, known-bad ones are found by their first sign."""

from __future__ import annotations

from math import inf
from random import Random

import pytest

from overlay.sim import linearizable
from overlay.sim.linearizable import History, Kind, Operation, Undecided, check_key, outcome

KEY = b"k"


def op(
    kind: Kind,
    called: float,
    returned: float = inf,
    result: object = None,
    *,
    value: object = None,
    expected: object = None,
) -> Operation:
    return Operation(kind, KEY, value, expected, "client", called, returned, result)


def put(value: str, called: float, returned: float = inf) -> Operation:
    return op("put", called, returned, True, value=value)


def get(result: str | None, called: float, returned: float) -> Operation:
    return op("get", called, returned, result)


def swap(old: str, new: str, called: float, returned: float, done: bool) -> Operation:
    return op("replace_if", called, returned, done, value=new, expected=old)


GOOD: dict[str, list[Operation]] = {
    "nothing": [],
    "one after the other": [get(None, 1, 2), put("a", 3, 4), get("a", 5, 6)],
    "a read beside a write sees the old": [put("a", 1, 2), put("b", 3, 6), get("a", 4, 5)],
    "a read beside a write sees the new": [put("a", 1, 2), put("b", 3, 6), get("b", 4, 5)],
    "two writes overlap, and readers agree": [put("a", 1, 5), put("b", 2, 4), get("a", 6, 7)],
    "an unknown write takes effect late": [
        put("a", 1, 2),
        put("b", 3),
        get("a", 4, 5),
        get("a", 6, 7),
        get("b", 8, 9),
    ],
    "an unknown write never takes effect": [put("a", 1, 2), put("b", 3), get("a", 10, 11)],
    "of two swaps one wins": [
        put("a", 1, 2),
        swap("a", "b", 3, 6, True),
        swap("a", "c", 4, 5, False),
        get("b", 7, 8),
    ],
    "an unknown removal explains an insertion": [
        put("a", 1, 2),
        op("remove", 3),
        op("put_if_absent", 4, 5, True, value="b"),
    ],
    "what was there is told": [
        op("put_and_retrieve", 1, 2, None, value="a"),
        op("put_and_retrieve", 3, 4, "a", value="b"),
        op("replace", 5, 6, "b", value="c"),
        op("remove_if", 7, 8, False, expected="b"),
        op("remove_if", 9, 10, True, expected="c"),
        op("replace", 11, 12, None, value="d"),
        op("contains", 13, 14, False),
        op("remove", 15, 16, False),
    ],
    "at one moment is beside": [put("a", 1, 2), get(None, 2, 3)],
}

BAD: dict[str, list[Operation]] = {
    "a lost write": [put("a", 1, 2), get(None, 3, 4)],
    "a stale read": [put("a", 1, 2), put("b", 3, 4), get("a", 5, 6)],
    "a value nobody wrote": [put("a", 1, 2), get("z", 3, 4)],
    "a read goes back in time": [
        put("a", 1, 2),
        put("b", 3, 10),
        get("b", 4, 5),
        get("a", 6, 7),
    ],
    "a removed key comes back": [
        put("a", 1, 2),
        op("remove", 3, 4, True),
        get("a", 5, 6),
    ],
    "two swaps win": [
        put("a", 1, 2),
        swap("a", "b", 3, 6, True),
        swap("a", "c", 4, 5, True),
    ],
    "two insertions win": [
        op("put_if_absent", 1, 4, True, value="a"),
        op("put_if_absent", 2, 3, True, value="b"),
    ],
    "an unknown write takes effect twice": [
        put("b", 1),
        get("b", 2, 3),
        put("a", 4, 5),
        get("b", 6, 7),
    ],
    "an unknown write before its call": [put("a", 1, 2), get("b", 3, 4), put("b", 5)],
    "a read that two readers saw in two orders": [
        put("a", 1, 20),
        put("b", 1, 20),
        get("a", 2, 3),
        get("b", 4, 5),
        get("a", 6, 7),
    ],
    "a true that should be a value": [
        put("a", 1, 2),
        op("put_and_retrieve", 3, 4, True, value="b"),
    ],
}


@pytest.mark.parametrize("name", GOOD)
def test_good_histories_pass(name: str) -> None:
    assert check_key(GOOD[name]) is None


@pytest.mark.parametrize("name", BAD)
def test_bad_histories_are_found(name: str) -> None:
    assert check_key(BAD[name]) is not None


def test_the_first_return_that_fits_nowhere_is_told_with_what_was_possible() -> None:
    stale = get("a", 5, 6)
    violation = check_key([put("a", 1, 2), put("b", 3, 4), put("c", 4.5), stale, get("a", 7, 8)])
    assert violation is not None
    assert violation.operation is stale
    assert violation.values == ("b",)
    assert str(violation) == (
        "b'k' was one of ('b',), but\n"
        "    [5, 6] client get() -> 'a'\n"
        "    beside [4.5, inf] client put('c') -> unknown"
    )


def test_a_history_tells_keys_apart_and_forgets_what_was_refused() -> None:
    history = History()
    history.returned(history.call("put", b"x", "a"), True)
    history.returned(history.call("get", b"y"), None)
    refused = history.call("put", b"x", "b")
    history.refuse(refused)
    history.call("put", b"x", "c")  # never heard of again
    history.returned(history.call("get", b"x"), "a")
    history.check()
    assert (len(history.operations), history.refused) == (4, 1)
    history.returned(history.call("get", b"x"), "b")  # what was refused was done
    history.returned(history.call("get", b"y"), "a")
    with pytest.raises(AssertionError, match=r"2 keys are not linearizable: b'x' was one of"):
        history.check()


def test_more_than_can_be_decided_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linearizable, "MOST_CONFIGURATIONS", 50)
    many = [put(str(number), 1, 10) for number in range(12)]
    with pytest.raises(Undecided):
        check_key([*many, get("z", 11, 12)])


def recorded(rng: Random, operations: int, clients: int) -> list[Operation]:
    """A run against a real register: each takes effect at a moment of its own choice."""
    value: object = None
    idle, done = list(range(clients)), 0
    calls: list[tuple[Operation, bool]] = []
    listed: list[Operation] = []
    moment = 0.0
    while done < operations or calls:
        moment += 1
        if idle and done < operations and rng.random() < 0.5:
            idle.pop()
            kind: Kind = rng.choice(("get", "put", "replace_if", "put_if_absent", "remove"))
            writes = kind in ("put", "replace_if", "put_if_absent")
            expected = value if kind == "replace_if" and rng.random() < 0.7 else f"v{done - 3}"
            one = op(kind, moment, value=f"v{done}" if writes else None, expected=expected)
            calls.append((one, rng.random() < 0.05))
            listed.append(one)
            done += 1
        elif calls:
            one, lost = calls.pop(rng.randrange(len(calls)))
            value, one.result = outcome(one, value)
            if not lost:  # its answer is, and its client begins again
                one.returned = moment + rng.random() * 3
            idle.append(0)
    return listed


@pytest.mark.parametrize("seed", range(10))
def test_long_histories_with_many_unknown_outcomes_are_decided(seed: int) -> None:
    rng = Random(seed)
    listed = recorded(rng, operations=400, clients=5)
    assert sum(not one.known for one in listed) >= 10
    assert check_key(listed) is None
    reads = [one for one in listed if one.kind == "get" and one.known and one.called > 100]
    rng.choice(reads).result = "v0, long overwritten"
    assert check_key(listed) is not None
