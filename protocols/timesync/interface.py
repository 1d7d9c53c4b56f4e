"""What others may know of the time service: what time it is."""

from typing import Protocol


class OverlayTime(Protocol):
    """Turns times of the node's clock into overlay time."""

    def overlay_time(self, local: float) -> float:
        """Overlay time when the node's clock shows `local`: never less than it said before."""
