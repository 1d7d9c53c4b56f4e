"""A network for one measurement: loopback alone, so that nobody else is heard or counted."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

NEW_USER, NEW_NETWORK = 0x1000_0000, 0x4000_0000  # flags of unshare, which Python 3.11 lacks
LOOPBACK = "lo"


def enter() -> str:
    """Move this process and those it will start there; why not, or nothing when it was done.

    There is no way back: call it in a process that is made for one measurement.
    """
    user, group = os.geteuid(), os.getegid()
    flags = NEW_NETWORK if user == 0 else NEW_NETWORK | NEW_USER
    system = ctypes.CDLL(None, use_errno=True)
    if system.unshare(flags):
        return f"no network namespace: {os.strerror(ctypes.get_errno())}"
    try:
        if user:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {user} 1")
            Path("/proc/self/gid_map").write_text(f"0 {group} 1")
        for words in (
            f"link set {LOOPBACK} up multicast on",
            f"route add 224.0.0.0/4 dev {LOOPBACK}",
        ):
            subprocess.run(["ip", *words.split()], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no loopback in a network namespace: {error}"
    return ""


def bytes_on_loopback() -> int:
    """What passed since the network was made, with all headers: of everybody in it, together."""
    rows = Path("/proc/self/net/dev").read_text().splitlines()
    fields = next(row for row in rows if row.strip().startswith(f"{LOOPBACK}:")).split()
    return int(fields[9])
