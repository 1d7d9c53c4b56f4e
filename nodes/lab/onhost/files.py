"""Files that come to a host and go from it, as tar streams."""

from __future__ import annotations

import sys
import tarfile
import time
from pathlib import Path, PurePosixPath
from typing import IO

from nodes.lab.onhost.control import ask
from nodes.lab.onhost.folder import Folder, write_bytes
from nodes.lab.onhost.keeping import keeping
from nodes.lab.onhost.trouble import Trouble

SPOOL = "_spool"
ROTATED_SECONDS = 10.0


def unpack(folder: Folder, stream: IO[bytes]) -> int:
    """Write a tar's files below the folder, each whole or not at all; how many."""
    count = 0
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for entry in archive:
            path = PurePosixPath(entry.name)
            if not entry.isfile() or path.is_absolute() or ".." in path.parts:
                raise Trouble(f"{entry.name} does not belong into a lab", "report it: a bug")
            content = archive.extractfile(entry)
            assert content is not None
            place = folder.path / path
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_bytes(place, content.read(), entry.mode & 0o777)
            count += 1
    return count


def finished_traces(folder: Folder, supervise: str) -> list[dict[str, object]]:
    """The finished trace files of this host; peers that record finish theirs first."""
    states = keeping(folder, supervise).states()
    asked = {}
    for name, state in states.items():
        try:
            told = ask(name, state["pid"], "trace", rotate=True)
        except (OSError, ValueError):
            continue  # not running, or of an older build: what it finished is taken
        if told["level"] != "off":
            asked[name] = (state["pid"], told.get("files", 0))
    deadline = time.monotonic() + ROTATED_SECONDS
    while asked and time.monotonic() < deadline:
        for name, (pid, _) in list(asked.items()):
            if not _is_rotating(name, pid):
                del asked[name]
        time.sleep(0.1)
    return [
        {"path": path.relative_to(folder.traces).as_posix(), "bytes": path.stat().st_size}
        for path in sorted(folder.traces.rglob("*.parquet"))
        if SPOOL not in path.parts
    ]


def _is_rotating(name: str, pid: int) -> bool:
    try:
        return bool(ask(name, pid, "trace").get("rotating"))
    except (OSError, ValueError):
        return False


def pack_traces(folder: Folder, paths: list[str]) -> None:
    """Write these files to stdout as a tar."""
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
        for path in paths:
            place = folder.traces / path
            if place.resolve().is_relative_to(folder.traces.resolve()) and place.is_file():
                archive.add(place, arcname=str(Path(path)))
