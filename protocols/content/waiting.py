"""What a client publishes between two brokers."""

from __future__ import annotations

from overlay.errors import LocalProtocolError
from protocols.content.messages import Publication


class Waiting:
    """Publications in their order, bounded."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.kept: list[Publication] = []

    def check_room(self) -> None:
        """LocalProtocolError when one more does not fit."""
        if len(self.kept) >= self._most:
            raise LocalProtocolError(
                f"{self._most} publications wait for a broker: publish later, or raise"
                " mobility.max_held"
            )

    def put(self, msg: Publication) -> None:
        """Keep one; there is room."""
        self.kept.append(msg)
