"""Real peers with shifted clocks: how far apart their overlay times are, exactly.

All processes read one clock of the machine and add a shift of their own (`net.clock_offset`), so
that `shift + offset` of each is known and must be the same for all.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.connections import free_ports
from nodes.control import ControlError, ask, sockets_of
from nodes.peer_options import PeerOptions
from nodes.spawning import peer_command, peer_environment
from overlay.security.authority import Authority
from overlay.security.rights import Rights

ZONE = "bench"
SHIFTS = (0.0, 0.4, -0.3, 0.25)  # s
PATIENCE = 60.0
AFTER = 5.0  # s from agreement on a root to the measurement
LOOKS = 20


def real_errors(size: int) -> list[float]:
    """Errors against the root, in seconds, of `size` secure peers; several looks at each."""
    shifts = {f"peer-{number}": SHIFTS[number] for number in range(size)}
    with tempfile.TemporaryDirectory(prefix="overlay-bench-") as place, ExitStack() as stack:
        folder = Path(place)
        _start(stack, folder, shifts)
        _await(folder, shifts)
        time.sleep(AFTER)
        errors = []
        for _ in range(LOOKS):
            time.sleep(0.2)
            told = _ask_all(folder, shifts)
            assert told is not None, "they ran a moment ago"
            placed = {name: one["offset"] + shifts[name] for name, one in told.items()}
            roots = {one["root"] for one in told.values()}
            assert len(roots) == 1, f"roots {roots}"
            (root,) = roots
            errors += [abs(placed[name] - placed[root]) for name in placed if name != root]
    return errors


def _start(stack: ExitStack, folder: Path, shifts: dict[str, float]) -> None:
    keys, runtime = folder / "keys", folder / "run"
    runtime.mkdir(mode=0o700)
    authority = Authority.create(keys, "bench")
    (port,) = free_ports(1)
    for number, (name, shift) in enumerate(shifts.items()):
        authority.issue(name, Rights(zones=(ZONE,)), 1).save(keys)
        options = PeerOptions(
            name=name,
            zone=ZONE,
            profile="local",
            keys=str(keys),
            bind=(f"127.0.0.1:{0 if number else port}",),
            seed=(f"127.0.0.1:{port}",) if number else (),
            set=(f"net.clock_offset={shift}",),
        )
        process = subprocess.Popen(
            peer_command(options),
            env=peer_environment(XDG_RUNTIME_DIR=str(runtime)),
            stdout=subprocess.DEVNULL,
        )
        stack.callback(process.wait)
        stack.callback(process.kill)


def _await(folder: Path, shifts: dict[str, float]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        told = _ask_all(folder, shifts)
        standings = [(one["synchronised"], one["root"]) for one in (told or {}).values()]
        if len({*standings}) == 1 and standings[0][0]:
            return
        time.sleep(0.1)
    raise TimeoutError(f"{len(shifts)} peers agreed on no time within {PATIENCE:g} s")


def _ask_all(folder: Path, shifts: dict[str, float]) -> dict[str, dict[str, Any]] | None:
    answers = {}
    for name in shifts:
        try:
            (path,) = sockets_of(folder / "run" / "zmq-overlay", name)
            answers[name] = ask(path, "time")
        except (ControlError, ValueError):
            return None
    return answers
