"""A client of plain NTP (RFC 5905): asks servers of the user, hands on the four timestamps.

It stands outside of the pure time service: an NTP server speaks its own format, from its own port,
and nobody signs it. What it says is one voice among others'.
"""

from __future__ import annotations

import logging
import math
import secrets
import struct
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import trio
from trio import socket

from overlay.errors import RemoteProtocolError
from overlay.logs import about
from overlay.net.addresses import parse_endpoint

log = logging.getLogger("overlay.net")

PACKET = struct.Struct("!BBbbII4sQQQQ")  # 48 bytes; extensions and digests are not used
VERSION = 4
CLIENT, SERVER = 3, 4
ALARM = 3  # leap indicator: the server's own clock is not set
LAST_STRATUM = 15
UNIX_EPOCH = 2_208_988_800  # s from 1900, where NTP begins
ERA = 1 << 32
BURST = 8
BURST_EVERY = 1.0  # s: half of what ntpd leaves, so that four samples are there within 4 s
POLL_FIRST, POLL_LONGEST = 16.0, 64.0  # s; the longest is what ntpd begins with
TIMEOUT = 1.0  # s
PATIENT = 1024.0  # s before a server that said "less" is asked again


class NtpAnswer(NamedTuple):
    """One exchange with a server."""

    asked: float  # by our clock
    received: float  # by the server's, Unix seconds
    sent: float
    heard: float  # by ours
    error: float  # its root delay / 2 and root dispersion
    stratum: int


class NtpReply(NamedTuple):
    """What a server's packet says."""

    received: float
    sent: float
    error: float
    stratum: int


class KissOfDeath(Exception):
    """The server wants to be asked less often, or not at all."""


def write_request(nonce: int) -> bytes:
    """A question; the transmit timestamp is a random number, which only the server can repeat."""
    return PACKET.pack(VERSION << 3 | CLIENT, 0, 0, 0, 0, 0, b"", 0, 0, 0, nonce)


def read_reply(data: bytes, nonce: int, now: float) -> NtpReply:
    """Check an answer; RemoteProtocolError says why it is none."""
    if len(data) < PACKET.size:
        raise RemoteProtocolError("ntp-malformed", f"{len(data)} bytes")
    head, stratum, _, _, delay, dispersion, reference, _, origin, received, sent = (
        PACKET.unpack_from(data)
    )
    if head & 7 != SERVER or not 1 <= head >> 3 & 7 <= VERSION:
        raise RemoteProtocolError("ntp-malformed", f"it starts with {head:#x}")
    if origin != nonce:
        raise RemoteProtocolError("ntp-not-asked", "the origin timestamp is not ours")
    if stratum == 0:
        raise KissOfDeath(reference.decode("ascii", "replace"))
    if head >> 6 == ALARM or stratum > LAST_STRATUM or not sent:
        raise RemoteProtocolError("ntp-unsynchronised", f"stratum {stratum}")
    error = (delay / 2 + dispersion) / (1 << 16)
    return NtpReply(unix_time(received, now), unix_time(sent, now), error, stratum)


def unix_time(stamp: int, near: float) -> float:
    """64 bits of NTP as Unix seconds, in the era that is nearest to a clock."""
    seconds = stamp / ERA - UNIX_EPOCH
    return seconds + ERA * math.floor((near - seconds) / ERA + 0.5)


def ntp_time(seconds: float) -> int:
    """Unix seconds as 64 bits of NTP."""
    return int((seconds + UNIX_EPOCH) * ERA) % (1 << 64)


class NtpClient:
    """Asks each server in a task of its own, more and more seldom."""

    def __init__(
        self,
        servers: tuple[str, ...],
        clock: Callable[[], float],
        answered: Callable[[str, NtpAnswer], None],
        missed: Callable[[str], None],
        *,
        burst_every: float = BURST_EVERY,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._servers = servers
        self._clock = clock
        self._answered = answered
        self._missed = missed
        self._burst_every = burst_every

    async def run(self) -> None:
        """Ask until cancelled; no server, and no lack of one, ends it."""
        async with trio.open_nursery() as nursery:
            for server in self._servers:
                nursery.start_soon(self._ask_on, server)

    async def _ask_on(self, server: str) -> None:
        complained = False
        pause = self._burst_every
        polls = 0
        while True:
            polls += 1
            try:
                answer = await self._ask(server)
            except KissOfDeath as kiss:
                self.counts["ntp kisses of death"] += 1
                log.warning(
                    "NTP server %s says %s: asking it less",
                    server,
                    kiss,
                    extra=about("ntp-refused", "time", server=server),
                )
                pause = PATIENT
                self._missed(server)
            except (OSError, RemoteProtocolError) as error:
                self.counts["ntp failures"] += 1
                if not complained:
                    log.warning(
                        "NTP server %s: %s",
                        server,
                        error,
                        extra=about("ntp-silent", "time", server=server),
                    )
                complained = True
                self._missed(server)
            else:
                complained = False
                self.counts["ntp answers"] += 1
                self._answered(server, answer)
            if pause < PATIENT and polls >= BURST:
                pause = min(POLL_LONGEST, max(POLL_FIRST, 1.1 * pause))
            await trio.sleep(pause)

    async def _ask(self, server: str) -> NtpAnswer:
        place = parse_endpoint(server)
        found = await socket.getaddrinfo(place.host, place.port, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as asking:
            await asking.connect(address)  # so that only its answers, and its refusals, arrive
            nonce = secrets.randbits(64)
            asked = self._clock()
            await asking.send(write_request(nonce))
            with trio.move_on_after(TIMEOUT):
                while True:
                    data = await asking.recv(1024)
                    heard = self._clock()
                    try:
                        reply = read_reply(data, nonce, heard)
                    except RemoteProtocolError as error:
                        self.counts[error.reason] += 1
                        if error.reason == "ntp-not-asked":
                            continue  # the answer to an earlier question, or a guess
                        raise
                    return NtpAnswer(asked, *reply[:2], heard, *reply[2:])
        raise TimeoutError(110, f"no answer within {TIMEOUT:g} s")
