"""A process in a host, whose lines can be waited for."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Condition, Thread
from typing import IO

from tests.netns.commands import inside, tool
from tests.netns.waiting import WITHIN

KEPT_LINES = 10_000  # of each process; older ones are dropped and counted
SHOWN_LINES = 30  # in the message of a failed wait


class HostProcess:
    """A running command: `pid` is its own, and stdout and stderr are read into `lines`."""

    def __init__(
        self, namespace: str, words: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> None:
        self.words = list(words)
        self.lines_dropped = 0
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._changed = Condition()
        ip, *rest = inside(namespace, words)
        self._popen = subprocess.Popen(
            [tool(ip), *rest],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=dict(environment),
            cwd=folder,
        )
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        self._readers = [
            Thread(target=self._read, args=[stream], daemon=True)
            for stream in (self._popen.stdout, self._popen.stderr)
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        """The command's process id, seen from outside of the lab."""
        return self._popen.pid

    @property
    def lines(self) -> list[str]:
        """What it has printed so far, on both streams."""
        with self._changed:
            return list(self._lines)

    @property
    def is_running(self) -> bool:
        """False once it has ended."""
        return self._popen.poll() is None

    def line(self, pattern: str, *, within: float = WITHIN) -> re.Match[str]:
        """Wait for a line in which the pattern is found, and return the first match."""
        wanted = re.compile(pattern)
        deadline = time.monotonic() + within
        with self._changed:
            while True:
                ended = not any(reader.is_alive() for reader in self._readers)
                for line in self._lines:
                    if match := wanted.search(line):
                        return match
                left = deadline - time.monotonic()
                if ended or left <= 0:
                    why = "it ended" if ended else f"none within {within:g} s"
                    raise AssertionError(f"no line with {pattern!r} ({why}) from {self}")
                # A reader that ends tells nobody, so the wait is also bounded from within.
                self._changed.wait(min(left, 0.2))

    def signal(self, number: int) -> None:
        """Send it a signal; harmless when it has ended."""
        self._popen.send_signal(number)

    def pause(self) -> None:
        """Freeze it, as a machine that hangs."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it without warning, and wait until it is gone."""
        self._popen.kill()
        self.wait()

    def wait(self, *, within: float = WITHIN) -> int:
        """Wait for its end; its exit code, or minus the signal that ended it."""
        try:
            code = self._popen.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"did not end within {within:g} s: {self}") from None
        for reader in self._readers:
            reader.join(within)  # a child of it may hold the pipe open still
        return code

    def close(self) -> None:
        """End it if it runs, and give back its pipes."""
        if self.is_running:
            self.kill()
        for reader in self._readers:
            reader.join(WITHIN)

    def __repr__(self) -> str:
        tail = "".join(f"\n    {line}" for line in self.lines[-SHOWN_LINES:])
        state = "running" if self.is_running else f"ended with {self._popen.returncode}"
        return f"`{' '.join(self.words)}` ({state}), which printed:{tail or ' nothing'}"

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                with self._changed:
                    self.lines_dropped += len(self._lines) == KEPT_LINES
                    self._lines.append(line.rstrip("\n"))
                    self._changed.notify_all()
