"""How parts of the machine follow the states of members."""

from __future__ import annotations

from protocols.membership.records import Record


class Watcher:
    """A part of the machine that follows the states of members."""

    def member_present(self, record: Record, now: float) -> None:
        """It joined, came back or restarted."""

    def member_suspected(self, record: Record, now: float) -> None:
        """It is suspected, or by more accusers than before."""

    def member_cleared(self, record: Record, now: float) -> None:
        """It refuted."""

    def member_gone(self, record: Record, now: float) -> None:
        """It is dead or left."""

    def member_doubted(self, claim: Record, fresh: bool, now: float) -> None:
        """A peer holds it to be dead, by a fresh verdict or from memory; here it is present."""
