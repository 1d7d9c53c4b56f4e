"""The wheels of a lab, made before its hosts are cut off from everybody, and its hosts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from nodes.lab import wheels
from nodes.lab.operator import LabError, cache_folder
from tests.netns.lab import Lab
from tests.netns.rights import in_ci, require
from tests.netns.ssh_hosts import ROOT, SshHosts, obstacle

Hosts = Callable[..., SshHosts]
MAKE = "from tests.netns.lab_fixture import make_wheels; print(make_wheels(), end='')"


@cache
def make_wheels(requirement: str = "zmq-overlay") -> str:
    """Build the wheelhouse of this tree; why it cannot be, or nothing."""
    here = wheels.Target(f"{sys.version_info.major}.{sys.version_info.minor}", "cp", ())
    try:
        wheels.wheelhouse(cache_folder(), wheels.own_wheel(cache_folder()), here, requirement)
    except LabError as error:
        return str(error)
    return ""


def make_wheels_of(tree: Path) -> None:
    """The same for another copy of the sources."""
    environment = {**os.environ, "PYTHONPATH": f"{tree}:{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", MAKE],
        env=environment,
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stdout, done.stdout


@pytest.fixture
def ssh_hosts(lab: Lab) -> Hosts:
    """Make hosts with sshd; skipped, or failed in CI, where the tools or the wheels are missing."""
    require(obstacle() or make_wheels(), ci=in_ci())

    def make(*names: str) -> SshHosts:
        return SshHosts(lab, names)

    return make
