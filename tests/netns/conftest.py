"""The fixtures that most tests of this folder start from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from overlay.security.authority import Authority
from overlay.security.rights import Rights
from tests.netns.lab import Lab
from tests.netns.lab_fixture import ssh_hosts as ssh_hosts
from tests.netns.rights import in_ci, obstacle, require

PEERS = "abcdef"  # the hosts of a lab whose peers have keys


@pytest.fixture
def rights() -> None:
    """Skip, or fail in CI, where no lab can be built."""
    require(obstacle(), ci=in_ci())


@pytest.fixture
def lab(rights: None) -> Iterator[Lab]:
    """An empty lab, removed after the test whatever happens."""
    with Lab() as built:
        yield built


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A keys folder with an authority and a certificate for each of PEERS."""
    return _issue(tmp_path_factory.mktemp("keys"), "default")


@pytest.fixture(scope="session")
def zone_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, good for any zone."""
    return _issue(tmp_path_factory.mktemp("zone-keys"), "*")


def _issue(folder: Path, zone: str) -> Path:
    authority = Authority.create(folder, "overlay")
    for name in PEERS:
        authority.issue(name, Rights(zones=(zone,))).save(folder)
    return folder
