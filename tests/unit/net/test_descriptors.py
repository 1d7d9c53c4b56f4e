"""The epoll set of a node, and the limit of descriptors of its process."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator

import pytest

from overlay.net.descriptors import MANY, Descriptors, allow_many


@pytest.fixture
def pipes() -> Iterator[list[tuple[int, int]]]:
    made = [os.pipe() for _ in range(3)]
    yield made
    for ends in made:
        for fd in ends:
            os.close(fd)


def test_who_is_readable_is_called_with_the_time(pipes: list[tuple[int, int]]) -> None:
    found = Descriptors()
    called: list[tuple[int, float]] = []
    for number, (reading, _) in enumerate(pipes):
        found.watch(reading, lambda now, number=number: called.append((number, now)))  # type: ignore[misc]
    found.poll(1.0)
    os.write(pipes[2][1], b"x")
    found.poll(2.0)
    found.unwatch([pipes[2][0]])
    found.poll(3.0)
    found.close()
    assert called == [(2, 2.0)]


def test_one_that_another_took_away_in_the_same_round_is_not_called(
    pipes: list[tuple[int, int]],
) -> None:
    found = Descriptors()
    called: list[int] = []

    def take_away(own: int, other: int) -> None:
        called.append(own)
        found.unwatch([other])

    (one, write_one), (two, write_two), _ = pipes
    found.watch(one, lambda now: take_away(one, two))
    found.watch(two, lambda now: take_away(two, one))
    os.write(write_one, b"x")
    os.write(write_two, b"x")
    found.poll(1.0)
    found.close()
    assert len(called) == 1


@pytest.mark.parametrize(
    ("soft", "hard", "raised"),
    [
        (1024, 4096, 4096),
        (1024, resource.RLIM_INFINITY, MANY),
        (1024, 1 << 20, MANY),
        (1 << 17, 1 << 20, None),
        (4096, 4096, None),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None),
    ],
)
def test_the_limit_of_descriptors_is_raised_where_it_may_be(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, raised: int | None
) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr("resource.getrlimit", lambda what: (soft, hard))
    monkeypatch.setattr("resource.setrlimit", lambda what, limits: told.append(limits))
    allow_many()
    assert told == ([] if raised is None else [(raised, hard)])


def test_where_it_may_not_be_raised_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(what: int, limits: tuple[int, int]) -> None:
        raise OSError("not permitted")

    monkeypatch.setattr("resource.getrlimit", lambda what: (1024, 4096))
    monkeypatch.setattr("resource.setrlimit", forbid)
    allow_many()
