"""One peer in the care of the keeper: started, watched, started again with a growing pause."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from typing import Any

from nodes.lab.onhost.folder import Folder, write_json
from nodes.lab.onhost.logs import bound_log

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # s before a peer that ended is started again; doubles
STEADY = 60.0  # s: who lived so long is started at once again
PATIENCE = 5.0  # s from SIGTERM to SIGKILL; a peer promises two
BOUND_EVERY = 10.0  # s between looks at the size of a log
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)


class Kept:
    """Its process, if it has one, and what is to be done with it."""

    def __init__(self, folder: Folder, name: str, spec: dict[str, Any]) -> None:
        self.folder = folder
        self.name = name
        self.spec = spec
        self.is_over = False  # left, and gone
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._due = 0.0
        self._pause = FIRST_PAUSE
        self._kill_at: float | None = None  # it was told to stop
        self._leaving = False
        self._starts = 0
        self._ended = ""
        self._generation = -1
        self._bounded_at = 0.0

    @property
    def pid(self) -> int:
        """Of its process; 0 when it has none."""
        return self._process.pid if self._process is not None else 0

    def take(self, spec: dict[str, Any]) -> None:
        """How to start it from now on; a new generation also means: now."""
        self.spec = spec
        self._leaving = False
        if self._generation != spec["generation"]:
            self._pause, self._due = FIRST_PAUSE, 0.0
            self._end(time.monotonic())

    def leave(self) -> None:
        """Stop it, and start it no more."""
        self._leaving = True
        self._end(time.monotonic())

    def step(self, now: float, *, stopping: bool) -> None:
        """Do what is due."""
        self._bury(now)
        if stopping or self._leaving:
            self._end(now)
            self.is_over = self._leaving and self._process is None
        elif self._process is None and now >= self._due:
            self._start(now)
        if self._process is not None and self._kill_at is not None and now >= self._kill_at:
            self._process.kill()
        if now >= self._bounded_at + BOUND_EVERY:
            self._bounded_at = now
            bound_log(self.folder.logs / f"{self.name}.log")

    def _start(self, now: float) -> None:
        self._kill_at = None
        self._started_at = now
        self._generation = self.spec["generation"]
        log = (self.folder.logs / f"{self.name}.log").open("ab")
        with log:
            try:
                self._process = subprocess.Popen(
                    self.folder.command(self.spec),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self.folder.path,
                    env=os.environ | {"PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1"},
                    preexec_fn=_before_exec,
                )
            except OSError as error:
                self._ended = f"cannot be started: {error.strerror}: {error.filename}"
                self._wait_longer(now)
            else:
                self._starts += 1
                self._ended = ""
            line = self._ended or f"started, pid {self.pid}"
            log.write(f"{_moment()} keeper: {self.name} {line}\n".encode())
        self._tell()

    def _bury(self, now: float) -> None:
        if self._process is None or self._process.poll() is None:
            return
        code = self._process.returncode
        self._ended = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        asked = self._kill_at is not None
        self._process = None
        if now - self._started_at > STEADY:
            self._pause = FIRST_PAUSE
        if asked:
            self._due = 0.0
        else:
            self._wait_longer(now)
        with (self.folder.logs / f"{self.name}.log").open("ab") as log:
            pause = "" if asked else f", starts again in {self._due - now:.1f} s"
            log.write(f"{_moment()} keeper: {self.name} {self._ended}{pause}\n".encode())
        self._tell()

    def _wait_longer(self, now: float) -> None:
        self._due = now + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _end(self, now: float) -> None:
        if self._process is not None and self._kill_at is None:
            self._process.terminate()
            self._kill_at = now + PATIENCE

    def _tell(self) -> None:
        state = {
            "pid": self.pid,
            "generation": self._generation,
            "starts": self._starts,
            "since": time.time(),
            "ended": self._ended,
        }
        write_json(self.folder.kept / f"{self.name}.json", state)


def _before_exec() -> None:
    """In the child: signals as usual, and an end with the keeper, however that ends."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGTERM)


def _moment() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
