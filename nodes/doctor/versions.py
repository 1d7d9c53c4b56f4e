"""Python, the packages that this one needs, and the ZeroMQ library below them."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata

import zmq

from nodes.doctor.case import Case
from nodes.doctor.finding import Finding, skipped, well, wrong

DISTRIBUTION = "zmq-overlay"
OLDEST_PYTHON = (3, 11)
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)[^>]*>=(?P<least>[0-9.]+)")


def check(case: Case) -> Iterator[Finding]:
    """Each package that is missing or too old; one line when all are there."""
    if sys.version_info < OLDEST_PYTHON:
        yield wrong(
            f"Python {platform.python_version()} is too old", "install Python 3.11 or newer"
        )
    try:
        needed = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        yield skipped("zmq-overlay runs from a folder and is not installed: packages not compared")
        needed = []
    bad = [problem for line in needed if (problem := _problem(line))]
    yield from bad
    if not zmq.has("curve"):
        yield wrong(
            f"libzmq {zmq.zmq_version()} was built without CURVE: no link can be encrypted",
            "install pyzmq from its wheel: pip install --force-reinstall pyzmq",
        )
    if not bad:
        yield well(
            f"Python {platform.python_version()}, pyzmq {zmq.pyzmq_version()} with libzmq"
            f" {zmq.zmq_version()}" + (", all packages as needed" if needed else "")
        )


def _problem(requirement: str) -> Finding | None:
    bare, _, marker = requirement.partition(";")
    if "extra" in marker:
        return None
    found = _REQUIREMENT.match(bare)
    if found is None:
        return None
    name, least = found["name"], found["least"]
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return wrong(f"the package {name} is missing", f"pip install '{bare.strip()}'")
    if numbers(version) < numbers(least):
        return wrong(
            f"{name} {version} is too old, {least} is needed", f"pip install '{bare.strip()}'"
        )
    return None


def numbers(version: str) -> tuple[int, ...]:
    """`1.10.2rc1` as (1, 10, 2): enough to compare with a lower bound."""
    found = (re.match(r"\d+", part) for part in version.split("."))
    return tuple(int(part[0]) for part in found if part)
