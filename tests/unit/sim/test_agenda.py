"""The agenda yields entries in order of (time, sequence), as one heap would."""

from __future__ import annotations

from heapq import heappop, heappush
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from overlay.sim.agenda import Agenda


def drain(agenda: Agenda, limit: float) -> list[tuple[Any, ...]]:
    taken = []
    while True:
        while agenda.today and agenda.today[-1][0] <= limit:
            taken.append(agenda.today.pop())
        if not agenda.turn_page(limit):
            return taken


@given(st.integers(), st.lists(st.sampled_from([0.0, 1e-5, 1e-4, 3e-4, 0.01, 1.0]), min_size=1))
def test_it_is_a_heap(seed: int, delays: list[float]) -> None:
    rng = Random(seed)
    agenda, heap = Agenda(), list[tuple[Any, ...]]()
    now = 0.0
    for delay in delays:
        for _ in range(rng.randint(1, 5)):
            entry = (now + delay * rng.random(), agenda.next_sequence(), None)
            agenda.push(entry)
            heappush(heap, entry)
        limit = now + rng.choice((0.0, 1e-4, 0.005))
        expected = []
        while heap and heap[0][0] <= limit:
            expected.append(heappop(heap))
        assert drain(agenda, limit) == expected
        assert len(agenda) == len(heap)
        now = limit
    assert drain(agenda, 1e6) == sorted(heap)


def test_stale_entries_can_be_dropped_anywhere() -> None:
    agenda = Agenda()
    for at in (0.0, 0.00001, 0.5, 0.5, 2.0):
        agenda.push((at, agenda.next_sequence(), None))
    agenda.turn_page(0.0)
    agenda.discard(lambda entry: entry[1] % 2 == 0)
    assert [entry[1] for entry in drain(agenda, 10.0)] == [1, 3]
