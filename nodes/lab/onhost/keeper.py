"""A small supervisor: one process for a host's folder, which starts its peers and restarts them.

It is told by files: `peers/NAME.json` says how to start one, and a new generation in it means a
restart; `kept/NAME.json` is its answer. SIGHUP: read again. SIGTERM: stop all, and end. What it
starts ends with it, so that nobody runs unkept.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from nodes.lab.onhost.folder import Folder, read_all
from nodes.lab.onhost.kept import Kept
from nodes.lab.onhost.logs import last_lines
from nodes.lab.onhost.trouble import Trouble

LOCK = "keeper.lock"  # held as long as a keeper lives; it holds its pid
LOOK_EVERY = 0.25  # s; a child's end wakes it at once
GONE_SECONDS = 20.0


def keeper_pid(folder: Folder) -> int:
    """The keeper of that folder; 0 when there is none."""
    path = folder.path / LOCK
    try:
        with path.open("r") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(lock.read() or 0)
    except (OSError, ValueError):
        pass
    return 0


class Keeper:
    """The supervisor's own process."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.kept: dict[str, Kept] = {}
        self.stopping = False
        self.reread = True

    def run(self) -> None:
        """Keep peers until told to stop."""
        with (self.folder.path / LOCK).open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return  # another one was quicker
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            signals = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
            for number in signals:
                signal.signal(number, self._on_signal)
            signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # they come only while we wait
            while not (self.stopping and not any(one.pid for one in self.kept.values())):
                self.step(time.monotonic())
                self._wait()

    def _on_signal(self, number: int, frame: object) -> None:
        """Be there: a signal without a handler would not wake `sigtimedwait`'s caller."""

    def _wait(self) -> None:
        told = signal.sigtimedwait(
            (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGCHLD), LOOK_EVERY
        )
        if told is not None:
            self.stopping |= told.si_signo in (signal.SIGTERM, signal.SIGINT)
            self.reread |= told.si_signo == signal.SIGHUP

    def step(self, now: float) -> None:
        """Do what is due: bury, start, stop."""
        if self.reread:
            self.reread = False
            self._take(self.folder.specs())
        for name, one in list(self.kept.items()):
            one.step(now, stopping=self.stopping)
            if one.is_over:
                del self.kept[name]
                (self.folder.kept / f"{name}.json").unlink(missing_ok=True)

    def _take(self, specs: dict[str, dict[str, Any]]) -> None:
        for name, spec in specs.items():
            if name in self.kept:
                self.kept[name].take(spec)
            else:
                self.kept[name] = Kept(self.folder, name, spec)
        for name, one in self.kept.items():
            if name not in specs:
                one.leave()


class KeeperSide:
    """What the operator's commands do with the keeper: start it, tell it, end it."""

    kind = "keeper"

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def states(self) -> dict[str, dict[str, Any]]:
        """As the keeper wrote them; without a keeper nobody runs."""
        told = read_all(self.folder.kept)
        if not keeper_pid(self.folder):
            told = {name: {**state, "pid": 0} for name, state in told.items()}
        return told

    def refresh(self) -> None:
        """Start the keeper, or make it read its files again."""
        pid = keeper_pid(self.folder)
        if pid:
            os.kill(pid, signal.SIGHUP)
            return
        for stale in self.folder.kept.glob("*.json"):
            stale.unlink()
        archive = Path(sys.argv[0]).absolute()  # this agent: the keeper is a part of it
        words = [sys.executable, str(archive), "keep", str(self.folder.path)]
        with (self.folder.logs / "keeper.log").open("ab") as log:
            subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder.path,
                start_new_session=True,  # it outlives this login
            )

    def stop(self) -> None:
        """End the keeper with all that it keeps."""
        pid = keeper_pid(self.folder)
        if not pid:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + GONE_SECONDS
        while keeper_pid(self.folder):
            if time.monotonic() > deadline:
                raise Trouble(f"its keeper (pid {pid}) does not stop", f"kill -9 {pid} there")
            time.sleep(0.05)

    def log(self, name: str, lines: int) -> list[str]:
        """The end of its log file."""
        return last_lines(self.folder.logs / f"{name}.log", lines)
