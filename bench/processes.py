"""One measurement in a process of its own, so that none warms or crowds another's memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

T = TypeVar("T")


def measure_alone(measure: Callable[..., T], *args: Any) -> T:
    """Call a module-level function in a fresh process and return what it returns."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, *args).result()


def alternate(
    measures: Mapping[str, tuple[Callable[..., float], tuple[Any, ...]]], repeats: int
) -> dict[str, list[float]]:
    """Take each measurement in turn, `repeats` times, so that all meet the same weather."""
    found: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(repeats):
        for name, (measure, args) in measures.items():
            found[name].append(measure_alone(measure, *args))
    return found
