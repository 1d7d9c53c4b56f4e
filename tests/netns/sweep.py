"""Removing labs: one's own at its end, and those whose process died before it could."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import suppress

from tests.netns.commands import LabError, run
from tests.netns.naming import NAMESPACES, LabName, labs, start_of
from tests.netns.waiting import until


def sweep() -> list[LabName]:
    """Remove every orphan; what another sweep removes at the same time is no error."""
    orphans = sorted(lab for lab in labs() if lab.is_orphan)
    for lab in orphans:
        remove(lab)
    return orphans


def remove(lab: LabName) -> None:
    """End the processes of a lab and delete its namespaces and its folder.

    Its links, bridges and rules live only in its namespaces, and go with them.
    """
    left = lab.namespaces()
    for namespace in left:
        end_processes(namespace)
    for namespace in left:
        try:
            run(["ip", "netns", "delete", namespace])
        except LabError:
            if (NAMESPACES / namespace).exists():
                raise
    shutil.rmtree(lab.folder, ignore_errors=True)


def end_processes(namespace: str) -> None:
    """Kill until nobody is left: a process may fork while it is being killed."""

    def nobody_left() -> bool:
        pids = [pid for pid in _pids(namespace) if start_of(pid) is not None]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    until(nobody_left, what=f"the processes in {namespace} to end")


def _pids(namespace: str) -> list[int]:
    try:
        return [int(word) for word in run(["ip", "netns", "pids", namespace]).split()]
    except LabError:
        return []  # the namespace is gone, or never became one: nobody can be in it
