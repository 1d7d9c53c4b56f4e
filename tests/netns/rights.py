"""What the lab needs of the machine; without it tests are skipped, and where CI=true they fail."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.netns.commands import LabError, tool

TOOLS = {"ip": "iproute2", "nft": "nftables", "ping": "iputils-ping"}


@cache
def obstacle() -> str:
    """Why no lab can be built here, with what would help; empty when one was built."""
    if sys.platform != "linux":
        return "network namespaces are Linux's: run these tests there"
    if os.geteuid() != 0:
        return "network namespaces need root: run these tests as root"
    for name, package in TOOLS.items():
        try:
            tool(name)
        except LabError as error:
            return f"{error}: install {package}"
    if not Path("/dev/net/tun").exists():
        return "/dev/net/tun is missing: load the module tun, or pass the device to the container"
    return _trial()


def require(reason: str, *, ci: bool) -> None:
    """Skip the test for that reason, or fail it in CI, where nobody would notice a skip."""
    if not reason:
        return
    if ci:
        pytest.fail(f"no network namespaces in CI: {reason}")
    pytest.skip(reason)


def in_ci() -> bool:
    """True when the environment says so."""
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def _trial() -> str:
    """Root in a container may still lack the rights: only building a lab shows it."""
    from tests.netns.lab import Lab

    try:
        with Lab() as lab:
            a, b = lab.hosts("a", "b")
            lab.delay(0.001)
            a.run(["ping", "-n", "-c", "1", "-W", "10", b.address])
    except (LabError, OSError, AssertionError) as error:
        return f"no lab can be built here: {error}: give the container NET_ADMIN and SYS_ADMIN"
    return ""
