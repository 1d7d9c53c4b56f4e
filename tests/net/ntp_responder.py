"""A small NTP server (RFC 5905) on loopback, whose clock a test sets."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from trio import socket

from overlay.net.ntp import PACKET, ntp_time


class NtpResponder:
    """Answers client packets by its own clock; `kiss` makes it refuse."""

    def __init__(self, ahead: float) -> None:
        self.ahead = ahead
        self.stratum = 1
        self.kiss = b""
        self.guess = False  # sends an answer with a wrong origin before the right one
        self.asked = 0
        self.address = ""

    async def serve(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            await taken.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{taken.getsockname()[1]}"
            task_status.started()
            while True:
                data, sender = await taken.recvfrom(1024)
                received = time.time() + self.ahead
                self.asked += 1
                head, *_, origin = PACKET.unpack(data)
                assert head == 4 << 3 | 3, "no client packet of version 4"
                if self.guess:
                    await taken.sendto(self._reply(origin ^ 1, received + 99), sender)
                await taken.sendto(self._reply(origin, received), sender)

    def _reply(self, origin: int, received: float) -> bytes:
        stratum = 0 if self.kiss else self.stratum
        reference = self.kiss or b"TEST"
        sent = ntp_time(time.time() + self.ahead)
        times = (ntp_time(received), origin, ntp_time(received), sent)
        return PACKET.pack(4 << 3 | 4, stratum, 6, -20, 64, 64, reference, *times)


@asynccontextmanager
async def ntp_servers(*ahead: float) -> AsyncIterator[list[NtpResponder]]:
    """Servers whose clocks are so many seconds ahead of this machine's."""
    async with trio.open_nursery() as nursery:
        servers = [NtpResponder(seconds) for seconds in ahead]
        for server in servers:
            await nursery.start(server.serve)
        yield servers
        nursery.cancel_scope.cancel()
