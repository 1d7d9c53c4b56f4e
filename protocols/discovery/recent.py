"""Which requests were handled already, in bounded memory (§4)."""

from __future__ import annotations

from collections import OrderedDict


class RecentRequests:
    """The last requests, and the highest attempt seen of each (§4: the last 1,000)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._attempts: OrderedDict[tuple[str, bytes], int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._attempts)

    def is_new(self, requester: str, request: bytes, attempt: int) -> bool:
        """Remember it; False when this attempt or a later one was seen."""
        key = (requester, request)
        seen = self._attempts.get(key, -1)
        if attempt <= seen:
            return False
        self._attempts[key] = attempt
        self._attempts.move_to_end(key)
        if len(self._attempts) > self._limit:
            self._attempts.popitem(last=False)
        return True
