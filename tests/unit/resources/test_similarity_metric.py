"""The measure of §5.1, with its example."""

import pytest

from overlay.predicates import Constraint
from protocols.resources.similarity_metric import blocks_of, similarity, similarity_of


def test_the_example_of_the_paper() -> None:
    assert round(similarity(30, [4, 5, 4, 3, 4, 7]), 2) == 0.38


def test_bounds_of_the_paper() -> None:
    """Larger than any block alone would give, smaller than all of them as one."""
    blocks = [4, 5, 4, 3, 4, 7]
    assert 7 / 30 < similarity(30, blocks) < sum(blocks) / 30
    assert similarity(30, [30]) == 1.0
    assert similarity(30, []) == similarity(0, []) == 0.0
    with pytest.raises(ValueError, match="among 3"):
        similarity(3, [4])


def test_blocks_are_connected_by_covering() -> None:
    wanted = ["a > 1", "a > 2", "a > 3, b = 1", "c = 1", "c = 1, d > 5", "e = 1", "f = 1"]
    requests = [Constraint.parse(text) for text in wanted]
    assert sorted(blocks_of(requests)) == [2, 3]
    assert similarity_of(requests) == pytest.approx((4 + 9) ** 0.5 / 7)
