"""Whether there is room where peers write: state, traces, and their control sockets."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from nodes.doctor.case import Case
from nodes.doctor.finding import Finding, well, wrong
from nodes.folders import runtime_folder
from overlay.errors import ConfigError
from overlay.traces.config import TraceSettings

LEAST = 256 << 20  # bytes: what a day of a busy peer's state and log takes
ROOM_FOR_SOCKETS = 1 << 20


def check(case: Case) -> Iterator[Finding]:
    """One finding for each folder; the reason when a peer could not write there."""
    try:
        yield room("control sockets", runtime_folder(), ROOM_FOR_SOCKETS)
    except ConfigError as error:
        what, _, fix = str(error).rpartition(": ")
        yield wrong(what, fix)
    traces = case.config.section(TraceSettings)
    wanted = {"state": case.config.state, "traces": None}
    if traces.level != "off":
        wanted["traces"] = Path(traces.folder).expanduser()
    for label, path in wanted.items():
        if path is not None:
            yield room(label, path, max(LEAST, traces.least_free))
    for node in case.nodes:
        if node.options is None:
            continue
        told = {"state": node.options.state, "traces": node.options.trace_dir}
        for label, text in told.items():
            folder = node.path(text)
            if folder is not None:
                yield room(f"{label} of {node.name}", folder, max(LEAST, traces.least_free))


def room(label: str, folder: Path, least: int) -> Finding:
    """Whether so many bytes are free there, and may be written."""
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    if not os.access(there, os.W_OK):
        return wrong(f"{label}: {there} may not be written", f"chown or chmod {there}")
    free = shutil.disk_usage(there).free
    if free < least:
        return wrong(
            f"{label}: {_size(free)} left in {there}, a peer wants {_size(least)}",
            "remove what is not needed, or choose another folder",
        )
    return well(f"{label}: {_size(free)} left in {there}")


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
