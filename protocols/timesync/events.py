"""What the time service tells siblings and the application."""

from collections.abc import Iterable

from overlay.ids import NodeId
from overlay.protocol import Event
from overlay.tracing import Trace
from overlay.tracing.kinds import CLOCK_SET


class TimeSynchronised(Event, frozen=True):
    """Overlay time is known now, or comes from another root."""

    root: NodeId
    offset: float  # s that the node's clock lacks
    error: float  # s, at most

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(CLOCK_SET, self.root, value=self.offset, duration=self.error),)


class FalsetickerFound(Event, frozen=True):
    """The others outvoted this source; it counts again when it agrees."""

    source: str
    off_by: float  # s from what they agreed on
