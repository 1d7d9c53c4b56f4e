"""Starts the ends of a topics measurement, each a process, and returns what receivers found."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread, Timer
from typing import Any, NamedTuple

from overlay.security.authority import Authority
from overlay.security.rights import Rights

END_WITHIN = 120  # s: a run that takes longer hangs
MOST_RECEIVERS = 4


class Side(NamedTuple):
    """One of the things compared."""

    name: str
    options: Mapping[str, Any]

    def but(self, **options: Any) -> Side:
        """The same with other options."""
        return Side(self.name, {**self.options, **options})


PUSH_PULL = Side("raw PUSH/PULL", {"side": "raw", "pattern": "push-pull"})
PUB_SUB = Side("raw PUB/SUB", {"side": "raw", "pattern": "pub-sub"})


def ours(name: str, mode: str, write: str, read: str) -> Side:
    """Our peers, with that reliability, by those calls."""
    return Side(name, {"side": "ours", "mode": mode, "write": write, "read": read})


class Ends:
    """Runs one publishing and some receiving ends at a time."""

    def __init__(self, keys: Path) -> None:
        self._keys = keys
        self._processes: list[subprocess.Popen[str]] = []

    def run(self, side: Side, receivers: int = 1, **options: Any) -> list[dict[str, Any]]:
        """Measure once: what each receiver found."""
        common = {"keys": str(self._keys), "curve": False, "write": "", **side.options, **options}
        own = {role: common.pop(f"of_{role}", {}) for role in ("receiver", "sender")}
        overtime = Timer(END_WITHIN, self._kill)
        overtime.start()
        try:
            takers = [
                self._start(
                    common | {"role": "receiver", "name": f"receiver-{number}"} | own["receiver"]
                )
                for number in range(receivers)
            ]
            where = [_line(taker) for taker in takers]
            told: dict[str, Any] = {
                "ports": [w["port"] for w in where],
                "raw_keys": [w["key"] for w in where],
            }
            giver = self._start(
                common | {"role": "sender", "name": "sender"} | told | own["sender"]
            )
            Thread(target=self._watch, args=(giver,), daemon=True).start()
            found = [_line(taker) for taker in takers]
            for end in (giver, *takers):
                assert end.stdin is not None
                end.stdin.close()
            if any(end.wait() for end in (giver, *takers)):
                raise RuntimeError(f"an end of {side.name} failed: see above")
            return found
        finally:
            overtime.cancel()
            self._kill()
            for end in self._processes:
                end.wait()
                for pipe in (end.stdin, end.stdout):
                    if pipe is not None:
                        pipe.close()
            self._processes.clear()

    def _start(self, options: Mapping[str, Any]) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "bench.topics_ends", json.dumps(options)]
        pipe = subprocess.PIPE
        end = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True)
        self._processes.append(end)
        return end

    def _watch(self, giver: subprocess.Popen[str]) -> None:
        """Nobody waits for messages of a publisher that failed."""
        if giver.wait():
            self._kill()

    def _kill(self) -> None:
        for end in self._processes:
            end.kill()


@contextmanager
def ends_with_keys() -> Iterator[Ends]:
    """Ends, and an authority that certified them all."""
    with tempfile.TemporaryDirectory(prefix="overlay-bench-") as folder:
        keys = Path(folder) / "keys"
        authority = Authority.create(keys, "bench")
        rights = Rights(zones=("*",), publish=("**",), subscribe=("**",))
        for name in ("sender", *(f"receiver-{number}" for number in range(MOST_RECEIVERS))):
            authority.issue(name, rights, 1).save(keys)
        yield Ends(keys)


def _line(end: subprocess.Popen[str]) -> dict[str, Any]:
    assert end.stdout is not None
    line = end.stdout.readline()
    if not line:
        raise RuntimeError(f"an end died or took over {END_WITHIN} s: see above")
    found: dict[str, Any] = json.loads(line)
    return found
