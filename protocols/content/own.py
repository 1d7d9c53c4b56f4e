"""What this node itself advertises."""

from __future__ import annotations

from overlay.ids import NodeId
from overlay.predicates import Constraint
from protocols.content.interface import Advertised, EntryId


class OwnAdvertisement:
    """One advertisement of this node, and how far it has published."""

    __slots__ = ("constraint", "epoch", "model", "note", "sequence", "whole")

    def __init__(
        self, constraint: Constraint, model: str, whole: bool, note: bytes, epoch: int
    ) -> None:
        self.constraint = constraint
        self.model = model
        self.whole = whole
        self.note = note
        self.epoch = epoch
        self.sequence = 0  # goes on in the next epoch

    def says(self, constraint: Constraint, model: str, whole: bool, note: bytes) -> bool:
        """Whether it is advertised like this already."""
        return (self.constraint, self.model, self.whole, self.note) == (
            constraint,
            model,
            whole,
            note,
        )

    def offer(self, entry: EntryId, me: NodeId) -> Advertised:
        """The row of this node's own table."""
        return Advertised(entry, self.epoch, self.constraint, self.model, self.whole, self.note, me)
