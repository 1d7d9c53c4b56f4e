"""What the operator must know of a host before anything is changed on it."""

import hashlib
import importlib.util
import os
import platform
import shutil
import socket
import sys
import sysconfig
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from nodes.lab.onhost.folder import Folder
from nodes.lab.onhost.keeping import keeping

COMPLETE = "complete"  # the file that says: this environment was made to its end


def facts(folder: Folder, ports: dict[str, int], supervise: str) -> dict[str, Any]:
    """Python, clock, disk, ports (by the peer that wants it), and what is here already."""
    there = keeping(folder, supervise)
    states = there.states()
    running = {name for name, state in states.items() if state["pid"]}
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "platform": sysconfig.get_platform(),
        "libc": list(platform.libc_ver()),
        "venv": importlib.util.find_spec("venv") is not None,
        "free": free_bytes(folder.path),
        "addresses": _addresses(),
        "taken": {name: who for name, port in ports.items() if name not in running
                  and (who := holder(port))},
        "envs": [path.parent.name for path in sorted(folder.envs.glob(f"*/{COMPLETE}"))],
        "supervised": there.kind,
        "specs": folder.specs(),
        "running": sorted(running),
        "keys": {path.parent.name: digest(path) for path in folder.keys.glob("*/certificate.pem")},
        "revoked": sorted({digest(path) for path in folder.keys.glob("*/revoked.pem")}),
        "time": time.time(),  # last: as near as can be to the moment at which the answer is read
    }  # fmt: skip


def free_bytes(path: Path) -> int:
    """What this user may still write below a path that may not exist yet."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def holder(port: int) -> str:
    """Who holds a port that a peer wants, TCP and UDP; empty when it is free."""
    for kind, table in ((socket.SOCK_STREAM, "tcp"), (socket.SOCK_DGRAM, "udp")):
        with socket.socket(socket.AF_INET, kind) as trial:
            if kind == socket.SOCK_STREAM:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as ZeroMQ does
            try:
                trial.bind(("0.0.0.0", port))
            except OSError as error:
                return _owner(port, table) or error.strerror or "another program"
    return ""


def _owner(port: int, table: str) -> str:
    """The program behind a port, as far as this user may see it."""
    inodes = set()
    for name in (table, f"{table}6"):
        with suppress(OSError):
            for line in Path("/proc/net", name).read_text().splitlines()[1:]:
                fields = line.split()
                if int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(os.readlink(link) in inodes for link in (process / "fd").iterdir()):
                return f"{(process / 'comm').read_text().strip()} (pid {process.name})"
    return "another program" if inodes else ""


def _addresses() -> list[str]:
    """The address at which the operator reached this host, by ssh's own word."""
    words = os.environ.get("SSH_CONNECTION", "").split()
    return words[2:3]
