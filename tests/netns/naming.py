"""Names of labs: they carry who made them, so that anybody can tell which ones are orphans."""

from __future__ import annotations

import itertools
import os
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

NAMESPACES = Path("/run/netns")
SWITCH = "switch"  # the namespace of the bridges
_PATTERN = re.compile(r"ovl-([0-9a-f]{8})-(\d+)-(\d+)-(\d+)")
_numbers = itertools.count(1)


class LabName(NamedTuple):
    """`ovl-BOOT-PID-START-NUMBER`: a pid alone may be used again, its start time may not."""

    boot: str
    pid: int
    started: int  # clock ticks since the boot, as /proc tells
    number: int

    def __str__(self) -> str:
        return f"ovl-{self.boot}-{self.pid}-{self.started}-{self.number}"

    @property
    def is_orphan(self) -> bool:
        """True when the process that made the lab is gone."""
        return self.boot != boot() or start_of(self.pid) != self.started

    def namespace(self, host: str) -> str:
        """The namespace of one of its hosts, or of its switch."""
        return f"{self}.{host}"

    def namespaces(self) -> list[str]:
        """Those of its namespaces that exist."""
        return [name for name in namespaces() if parse(name) == self]

    @property
    def folder(self) -> Path:
        """Where its hosts keep files; short, since unix sockets live below it."""
        return Path(tempfile.gettempdir(), str(self))


def next_name() -> LabName:
    """A name that no other lab has, in this process or another."""
    pid = os.getpid()
    return LabName(boot(), pid, start_of(pid) or 0, next(_numbers))


def parse(text: str) -> LabName | None:
    """The lab that a namespace or folder belongs to; None when it is not a lab's."""
    found = _PATTERN.fullmatch(text.partition(".")[0])
    if found is None:
        return None
    boot_id, *numbers = found.groups()
    pid, started, number = map(int, numbers)
    return LabName(boot_id, pid, started, number)


def namespaces() -> list[str]:
    """Every named network namespace of this machine."""
    return sorted(os.listdir(NAMESPACES)) if NAMESPACES.is_dir() else []


def labs() -> set[LabName]:
    """Every lab that has left a trace on this machine, alive or not."""
    folders = [path.name for path in Path(tempfile.gettempdir()).glob("ovl-*")]
    return {lab for text in (*namespaces(), *folders) if (lab := parse(text))}


def boot() -> str:
    """What tells this boot from others: after a restart pids and start times repeat."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]


def start_of(pid: int) -> int | None:
    """When a process started; None when it is gone, or dead and not yet buried."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()  # the command's name may hold blanks and brackets
    return None if fields[0] in "ZX" else int(fields[19])
