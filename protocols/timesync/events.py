"""What the time service tells siblings and the application."""

from overlay.ids import NodeId
from overlay.protocol import Event


class TimeSynchronised(Event, frozen=True):
    """Overlay time is known now, or comes from another root."""

    root: NodeId
    offset: float  # s that the node's clock lacks
    error: float  # s, at most


class FalsetickerFound(Event, frozen=True):
    """The others outvoted this source; it counts again when it agrees."""

    source: str
    off_by: float  # s from what they agreed on
