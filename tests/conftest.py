"""What all tests share: Hypothesis profiles, which layers may be rerun, and golden files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent
# Peers of other tests, and of other people, must not be found by accident. What tests beacons turns
# them on again, with a port of its own.
os.environ["OVERLAY_SET"] = "beacon.enabled=false"
RERUNS = {"net": 2, "netns": 3}
"""Real sockets on a shared machine can miss a deadline; everything else is deterministic."""

# A loaded machine is no reason to fail: pytest-timeout bounds a test, Hypothesis counts examples.
_LOADED = (HealthCheck.too_slow,)
settings.register_profile(
    "ci", derandomize=True, max_examples=50, deadline=None, suppress_health_check=_LOADED
)
settings.register_profile(
    "long", max_examples=2_000, deadline=None, print_blob=True, suppress_health_check=_LOADED
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite` makes golden files what the code says now."""
    parser.addoption("--rewrite", action="store_true", help="rewrite golden files, do not compare")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by folder what uses sockets, and let only that be rerun."""
    for item in items:
        layer = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
        if layer in RERUNS:
            item.add_marker(layer)
            item.add_marker(pytest.mark.flaky(reruns=RERUNS[layer]))
        if "golden" in getattr(item, "fixturenames", ()):
            item.add_marker("golden")


Golden = Callable[[str, str], None]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """`golden(name, text)` compares with `golden/<name>` beside the test."""
    folder = request.path.parent / "golden"
    rewrite = bool(request.config.getoption("--rewrite"))

    def compare(name: str, text: str) -> None:
        path = folder / name
        if rewrite:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.is_file():
            pytest.fail(f"{path.relative_to(TESTS.parent)} is not there: make rewrite, and read it")
        else:
            assert text == path.read_text(encoding="utf-8"), "if meant: make rewrite, read the diff"

    return compare
