"""The fixture that most tests of this folder start from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.netns.lab import Lab
from tests.netns.rights import in_ci, obstacle, require


@pytest.fixture
def rights() -> None:
    """Skip, or fail in CI, where no lab can be built."""
    require(obstacle(), ci=in_ci())


@pytest.fixture
def lab(rights: None) -> Iterator[Lab]:
    """An empty lab, removed after the test whatever happens."""
    with Lab() as built:
        yield built
