"""Whether this machine's clock is right: by the kernel, NTP servers, and the overlay's own time."""

from __future__ import annotations

import ctypes
import secrets
import socket
import time
from collections.abc import Iterator

from nodes.doctor.case import Case, Running
from nodes.doctor.finding import Finding, hint, skipped, well, wrong
from overlay.errors import OverlayError
from overlay.net.addresses import parse_endpoint
from overlay.net.ntp import KissOfDeath, read_reply, write_request
from protocols.timesync import TimeSettings

OFF = 1.0  # s that people notice in logs and traces
REFUSED = 30.0  # s: nodes with keys do not believe each other's datagrams any more
WITHIN = 1.0  # s for an answer of an NTP server
SETTLED = 20.0  # s after which a zone knows its time
STA_UNSYNC = 0x0040  # <linux/timex.h>
FIX = "set the clock: `timedatectl set-ntp true`, or install chrony"


def check(case: Case) -> Iterator[Finding]:
    """The kernel's word, then everybody's who can compare."""
    yield _kernel()
    for server in case.config.section(TimeSettings).ntp:
        yield _asked(server)
    for one in case.heard:
        if one.ahead is not None and abs(one.ahead) > REFUSED:
            yield wrong(
                f"the clock of {one.name} at {one.host} is {_seconds(one.ahead)} ours:"
                " what either sends by datagram is refused by the other",
                f"{FIX}; on the machine whose clock is off",
            )
    for node in case.nodes:
        yield from _overlay_time(node)


def _kernel() -> Finding:
    synchronised = kernel_is_synchronised()
    if synchronised is None:
        return skipped("the kernel does not tell whether its clock is synchronised")
    if synchronised:
        return well("the kernel says that this machine's clock is synchronised")
    return hint("nothing keeps this machine's clock: the kernel calls it unsynchronised", FIX)


def kernel_is_synchronised() -> bool | None:
    """What `timedatectl` shows as synchronised; None where the kernel does not tell."""
    try:
        timex = (ctypes.c_byte * 512)()  # struct timex is 208 bytes; modes = 0 only reads
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.adjtimex(timex) < 0:
            return None
    except (OSError, AttributeError):
        return None
    # modes, offset, freq, maxerror, esterror, status: an int, then longs, which are aligned
    at = 5 * ctypes.sizeof(ctypes.c_long)
    status = ctypes.c_int.from_buffer(timex, at).value
    return not status & STA_UNSYNC


def _asked(server: str) -> Finding:
    try:
        endpoint = parse_endpoint(server)
        ahead = ask_ntp(endpoint.host, endpoint.port)
    except (OSError, OverlayError, KissOfDeath) as error:
        reason = str(error) or "no answer"
        return wrong(
            f"the NTP server {server} does not tell the time: {reason}",
            "choose one that answers (time.ntp), or let UDP port 123 through",
        )
    if abs(ahead) > OFF:
        return wrong(f"this clock is {_seconds(-ahead)} the NTP server {server}", FIX)
    return well(f"the NTP server {server} agrees to {abs(ahead) * 1000:.1f} ms")


def ask_ntp(host: str, port: int) -> float:
    """Seconds that a server's clock is ahead of ours; OSError when it is silent."""
    nonce = secrets.randbits(64)
    with socket.socket(
        socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM
    ) as udp:
        udp.settimeout(WITHIN)
        udp.connect((host, port))
        asked = time.time()
        udp.send(write_request(nonce))
        reply = read_reply(udp.recv(512), nonce, asked)
        heard = time.time()
    return ((reply.received - asked) + (reply.sent - heard)) / 2


def _overlay_time(node: Running) -> Iterator[Finding]:
    told = node.time
    if told is None:
        return
    if not told["synchronised"]:
        if node.status["driver"]["uptime"] > SETTLED:
            yield wrong(
                f"{node.name} does not know overlay time, {SETTLED:g} s after its start",
                "see who answers with `overlay time`; UDP between the members may be blocked",
            )
        return
    offset, error = told["offset"], told["error"]
    if abs(offset) > OFF + error:
        yield wrong(
            f"the clock of this machine is {_seconds(-offset)} overlay time"
            f" (as {node.name} knows it, ± {error:.3f} s)",
            FIX,
        )
    else:
        yield well(f"{node.name}: overlay time is known to ± {error * 1000:.1f} ms")
    false = [one["source"] for one in told["sources"] if one["state"] == "falseticker"]
    if false:
        yield wrong(
            f"{node.name} has outvoted {', '.join(false)}: their clocks are off",
            f"{FIX}; on those machines",
        )


def _seconds(ahead: float) -> str:
    return f"{abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'}"
