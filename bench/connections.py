"""Connections of other processes, seen and cut; and ports for those who start."""

from __future__ import annotations

import ctypes
import os
import socket
from pathlib import Path

ESTABLISHED = "01"  # as /proc/net/tcp writes it


def cut_connections(pid: int) -> int:
    """Close every TCP connection of a process as a broken network does; it goes on."""
    open_pidfd, take_descriptor = 434, 438  # system calls that Python 3.11 does not wrap
    system = ctypes.CDLL(None, use_errno=True).syscall
    process = system(open_pidfd, pid, 0)
    cut = 0
    try:
        for number in established(pid):
            taken = system(take_descriptor, process, number, 0)
            if taken < 0:
                raise OSError(ctypes.get_errno(), "a descriptor of another process")
            with socket.socket(fileno=taken) as connection:
                connection.shutdown(socket.SHUT_RDWR)
                cut += 1
    finally:
        os.close(process)
    return cut


def established(pid: int) -> list[int]:
    """The descriptors of a process that are TCP connections."""
    rows = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    inodes = {fields[9] for row in rows if (fields := row.split())[3] == ESTABLISHED}
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(entry)
        except FileNotFoundError:
            continue  # it was closed meanwhile
        if target.startswith("socket:[") and target[8:-1] in inodes:
            found.append(int(entry.name))
    return found


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago."""
    held = []
    for _ in range(count):
        one = socket.socket()
        one.bind(("127.0.0.1", 0))
        held.append(one)
    ports = [int(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return ports
