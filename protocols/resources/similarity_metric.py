"""How similar requests are (§5.1): the share that covers one another, as one equivalent block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt

from overlay.predicates import Constraint, ConstraintIndex


def similarity(total: int, blocks: Iterable[int]) -> float:
    """sqrt(Σ aᵢ²) / n for n requests with blocks of these sizes.

    The printed formula divides under the root, and would give 2.09 where the paper's own example
    (n = 30; 4, 5, 4, 3, 4, 7) gives 0.38.
    """
    sizes = [size for size in blocks if size > 1]
    if total < sum(sizes):
        raise ValueError(f"blocks of {sum(sizes)} requests among {total}")
    return sqrt(sum(size * size for size in sizes)) / total if total else 0.0


def blocks_of(requests: Sequence[Constraint]) -> list[int]:
    """The sizes of the connected covering networks among requests, without isolated ones."""
    parent = list(range(len(requests)))

    def root(one: int) -> int:
        while parent[one] != one:
            parent[one] = one = parent[parent[one]]
        return one

    index: ConstraintIndex[int] = ConstraintIndex()
    for number, constraint in enumerate(requests):
        index.add(number, constraint)
    for number, constraint in enumerate(requests):
        for cover in index.covering(constraint):
            parent[root(cover)] = root(number)
    sizes: dict[int, int] = {}
    for number in range(len(requests)):
        sizes[root(number)] = sizes.get(root(number), 0) + 1
    return [size for size in sizes.values() if size > 1]


def similarity_of(requests: Sequence[Constraint]) -> float:
    """The similarity of a workload."""
    return similarity(len(requests), blocks_of(requests))
