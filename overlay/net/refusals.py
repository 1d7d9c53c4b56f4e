"""Counts what peers sent and must not have sent, and logs it at most once a second for each."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict

from overlay.errors import RemoteProtocolError

log = logging.getLogger("overlay.refusals")

LOG_PAUSE = 1.0  # s between two lines about one peer
REMEMBERED_PEERS = 1024  # whose last line is remembered


class Refusals:
    """The counters of `overlay status`, with a patient log."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._logged: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def add(self, who: str, error: RemoteProtocolError, now: float, count: int = 1) -> None:
        """Count under the error's reason; the log line tells how many others it stands for."""
        self.counts[error.reason] += count
        last, silent = self._logged.get(who, (-LOG_PAUSE, 0))
        if now - last < LOG_PAUSE:
            self._logged[who] = (last, silent + count)
            return
        self._logged[who] = (now, 0)
        self._logged.move_to_end(who)
        if len(self._logged) > REMEMBERED_PEERS:
            self._logged.popitem(last=False)
        more = f" (and {silent} more since the last line)" if silent else ""
        log.warning("refused from %s: %s%s", who or "an unknown sender", error, more)
