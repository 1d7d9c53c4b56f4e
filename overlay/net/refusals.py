"""Counts what peers sent and must not have sent, and logs it at most once a second for each."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict

from overlay.errors import RemoteProtocolError
from overlay.logs import about

log = logging.getLogger("overlay.refusals")

HARMLESS = (
    "unknown-scope",  # a peer of another zone knocks, or an instance has just stopped
    "datagram-wrong-overlay",  # beacons of another overlay on the same LAN
)
LOG_PAUSE = 1.0  # s between two lines about one peer
LINES = 20  # in that time about all peers: addresses are cheap to forge
REMEMBERED_PEERS = 1024  # whose last line is remembered
LINE_CHARACTERS = 300  # of what a peer may have had a hand in
REASONS = 1024  # counted one by one; they come from our code, so there are far fewer
OTHER = "other"


class Refusals:
    """The counters of `overlay status`, with a patient log."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._logged: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._began = -LOG_PAUSE  # when the first of the lines that count was written
        self._lines = 0
        self._unsaid = 0  # refusals about which there was no line to spare

    def add(self, who: str, error: RemoteProtocolError, now: float, count: int = 1) -> None:
        """Count under the error's reason; the log line tells how many others it stands for."""
        known = error.reason in self.counts or len(self.counts) < REASONS
        self.counts[error.reason if known else OTHER] += count
        last, silent = self._logged.get(who, (-LOG_PAUSE, 0))
        if now - last < LOG_PAUSE:
            self._logged[who] = (last, silent + count)
            return
        if now - self._began >= LOG_PAUSE:
            self._began, self._lines = now, 0
        if self._lines >= LINES:
            self._unsaid += count
            return
        self._lines += 1
        self._logged[who] = (now, 0)
        self._logged.move_to_end(who)
        if len(self._logged) > REMEMBERED_PEERS:
            self._logged.popitem(last=False)
        more = f" (and {silent} more since the last line)" if silent else ""
        if self._unsaid:
            more += f" (and {self._unsaid} of others)"
            self._unsaid = 0
        level = logging.INFO if error.reason in HARMLESS else logging.WARNING
        sender = _plain(who) or "an unknown sender"
        protocol = error.protocol or "net"
        told = about("refused", protocol, peer=_plain(who), reason=error.reason, others=silent)
        log.log(level, "refused from %s: %s%s", sender, _plain(error), more, extra=told)


def _plain(text: object) -> str:
    """One short line, whatever a peer wrote into it."""
    line = str(text)
    short = line[:LINE_CHARACTERS] + ("…" if len(line) > LINE_CHARACTERS else "")
    return "".join(char if char.isprintable() else "?" for char in short)
