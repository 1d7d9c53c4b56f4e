"""One authority for a whole run, since making keys is slow and no test changes this one."""

from __future__ import annotations

import pytest

from overlay.security.authority import Authority
from overlay.security.credentials import Credentials
from overlay.security.rights import Rights

NOW = 1_800_000_000.0
DAY = 86_400.0
RIGHTS = Rights(
    zones=("lab",), roles=("broker",), publish=("sensors/**",), subscribe=("**",), dht_read=True
)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that issues and never revokes: a test that revokes makes its own."""
    return Authority.create(tmp_path_factory.mktemp("keys"), "lab", now=NOW)


@pytest.fixture(scope="session")
def ada(authority: Authority) -> Credentials:
    return authority.issue("ada", RIGHTS, 30, now=NOW)


@pytest.fixture(scope="session")
def bob(authority: Authority) -> Credentials:
    return authority.issue("bob", RIGHTS, 30, now=NOW)


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Credentials:
    """A node called ada, of another authority whose overlay has the same name."""
    other = Authority.create(tmp_path_factory.mktemp("other"), "lab", now=NOW)
    return other.issue("ada", RIGHTS, 30, now=NOW)
