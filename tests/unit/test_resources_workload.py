"""The workloads of the paper's evaluation are what they say."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from bench.resources_workload import requests, resources, schedule
from overlay.predicates import ConstraintIndex, determines, matches
from protocols.resources.similarity_metric import blocks_of, similarity_of


@pytest.mark.parametrize("wanted", [0.1, 0.5, 1.0])
def test_a_workload_has_the_similarity_asked_for(wanted: float) -> None:
    rng = Random(1)
    made = resources(rng, 300, 20, "balanced")
    present = [one.values(rng) for one in made]
    asked = requests(Random(2), 400, wanted, present)
    assert similarity_of(asked) == pytest.approx(wanted)
    assert blocks_of(asked) == [round(400 * wanted)]
    valid = sum(any(matches(item, one) for item in present) for one in asked)
    assert valid == round(400 * wanted)


def test_requests_follow_as_many_advertisements_whatever_their_similarity() -> None:
    rng = Random(1)
    made = resources(rng, 1000, 20, "balanced")
    present = [one.values(rng) for one in made]
    index: ConstraintIndex[str] = ConstraintIndex()
    for one in made:
        index.add(one.name, one.description)
    means = []
    for similarity in (0.1, 1.0):
        asked = requests(Random(2), 300, similarity, present)
        means.append(sum(len(index.intersecting(one)) for one in asked) / len(asked))
    assert means[0] == pytest.approx(means[1], rel=0.1)


def test_resources_are_spread_and_have_what_they_advertise() -> None:
    rng = Random(3)
    balanced = Counter(one.broker for one in resources(rng, 1000, 20, "balanced"))
    assert set(balanced.values()) == {50}
    made = resources(rng, 1000, 20, "geometric")
    geometric = Counter(one.broker for one in made)
    assert 280 < geometric[0] < 390
    assert geometric[0] > geometric[1] > geometric[3] > geometric[8]
    assert all(determines(one.description, one.values(rng)) for one in made)
    assert all(2 <= len(one.limits) <= 5 for one in made)


def test_requests_are_spread_in_space_and_time() -> None:
    made = resources(Random(4), 10, 20, "balanced")
    wanted = [one.description for one in made] * 100
    zipf = schedule(Random(5), wanted, 20, space="zipf", time="gaussian", duration=8.0)
    places = Counter(one.broker for one in zipf)
    assert places[0] > 3 * places[9] > 0
    times = [one.at for one in zipf]
    assert times == sorted(times)
    assert sum(3.0 < at < 5.0 for at in times) > 600
    even = schedule(Random(5), wanted, 20, space="uniform", time="uniform", duration=8.0)
    assert sum(3.0 < one.at < 5.0 for one in even) < 320
