"""A small switch in user space: a delay line of two TAP devices for each port.

It runs in the lab's switch namespace as a program of its own, with nothing but the standard
library. What the host sends (read from its near TAP) is held back, then written to the far TAP,
which is on the network's bridge; the other way it passes at once. So each frame between two hosts
is held once. Orders come as lines of JSON on stdin, each answered by one line; the end of stdin,
also by the death of whoever holds it, ends the program, and the kernel removes its devices.
"""

from __future__ import annotations

import fcntl
import heapq
import json
import os
import random
import select
import struct
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

TUNSETIFF = 0x400454CA
IFF_TAP = 0x0002
IFF_NO_PI = 0x1000  # frames as they are, with no header of the driver
FRAME_BYTES = 65_536
READS = 64  # frames taken from one device before others get their turn
HELD_FRAMES = 20_000  # 30 MB; as in a router's queue, what comes on top is dropped and counted


class Pace(NamedTuple):
    """How long frames are held: `seconds` ± up to `jitter`; they overtake only with `reorder`.

    A share of them, `copied`, comes twice, the second as if it had been sent at that time, too.
    """

    seconds: float = 0.0
    jitter: float = 0.0
    reorder: bool = False
    copied: float = 0.0


class Held(NamedTuple):
    """A frame that waits; the number keeps those of one moment in order."""

    due: float
    number: int
    device: int
    frame: bytes


class DelayLines:
    """All delay lines of a lab; file descriptors stand for devices."""

    def __init__(self, open_tap: Callable[[str], int], rng: random.Random) -> None:
        self._open_tap = open_tap
        self._rng = rng
        self._near: dict[int, tuple[int, int]] = {}  # device of a host -> (its port, far device)
        self._far: dict[int, int] = {}  # device on the network -> device of the host
        self._paces: dict[int, Pace] = {}
        self._last_due: dict[int, float] = {}
        self._held: list[Held] = []
        self._number = 0
        self.counts = {"held": 0, "overflowed": 0, "refused": 0, "overtaking": 0, "copied": 0}

    @property
    def devices(self) -> list[int]:
        """What to listen to."""
        return [*self._near, *self._far]

    def add(self, port: int) -> None:
        """Make the two devices of a port."""
        near, far = self._open_tap(f"t{port}"), self._open_tap(f"u{port}")
        self._near[near] = (port, far)
        self._far[far] = near
        self._paces[port] = Pace()

    def set_pace(self, ports: list[int], pace: Pace) -> None:
        """Hold from now on what these ports send; frames already held keep their time."""
        for port in ports:
            self._paces[port] = pace

    def take(self, device: int, now: float) -> None:
        """Read what waits at a device: hold it, or pass it on to the host."""
        for _ in range(READS):
            try:
                frame = os.read(device, FRAME_BYTES)
            except OSError:
                return  # nothing more, or the device is not up yet
            if device in self._far:
                self._write(self._far[device], frame)
            else:
                self._hold(*self._near[device], frame, now)

    def release(self, now: float) -> float | None:
        """Let go what is due; seconds until the next, None when nothing is held."""
        while self._held and self._held[0].due <= now:
            held = heapq.heappop(self._held)
            self._write(held.device, held.frame)
        return self._held[0].due - now if self._held else None

    def _hold(self, port: int, device: int, frame: bytes, now: float) -> None:
        pace = self._paces[port]
        self._hold_once(port, pace, device, frame, now)
        if pace.copied and self._rng.random() < pace.copied:
            self.counts["copied"] += 1
            self._hold_once(port, pace, device, frame, now)

    def _hold_once(self, port: int, pace: Pace, device: int, frame: bytes, now: float) -> None:
        if len(self._held) >= HELD_FRAMES:
            self.counts["overflowed"] += 1
            return
        due = now + max(0.0, pace.seconds + self._rng.uniform(-pace.jitter, pace.jitter))
        last = self._last_due.get(port, 0.0)
        if due < last:
            if pace.reorder:
                self.counts["overtaking"] += 1
            else:
                due = last
        self._last_due[port] = max(due, last)
        self._number += 1
        self.counts["held"] += 1
        heapq.heappush(self._held, Held(due, self._number, device, frame))

    def _write(self, device: int, frame: bytes) -> None:
        try:
            os.write(device, frame)
        except OSError:
            self.counts["refused"] += 1  # its link is down, or its queue is full: as on a cable


def open_tap(name: str) -> int:
    """Make a TAP device that lives as long as this process."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return device


def obey(lines: DelayLines, order: dict[str, object]) -> dict[str, int]:
    """Carry out one order; the answer is what was counted so far."""
    match order:
        case {"add": int(port)}:
            lines.add(port)
        case {
            "pace": [float(seconds), float(jitter), bool(reorder), float(copied)],
            "ports": list(ports),
        }:
            lines.set_pace(ports, Pace(seconds, jitter, reorder, copied))
        case {"counts": True}:
            pass
        case _:
            raise ValueError(f"unknown order: {order}")
    return lines.counts


def main() -> None:
    """Switch frames and take orders until stdin ends."""
    lines = DelayLines(open_tap, random.Random())
    orders = sys.stdin.fileno()
    typed = b""
    while True:
        # select, since its time-out is in microseconds: that of poll and epoll is in milliseconds.
        wait = lines.release(time.monotonic())
        ready, _, _ = select.select([orders, *lines.devices], [], [], wait)
        now = time.monotonic()
        for device in ready:
            if device != orders:
                lines.take(device, now)
                continue
            read = os.read(orders, 65_536)
            if not read:
                return
            *complete, typed = (typed + read).split(b"\n")
            for line in complete:
                print(json.dumps(obey(lines, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
