"""How a simulated run fails: loudly, with the one line that replays it."""

from __future__ import annotations

from overlay.errors import InvariantViolation


class SimulationFailed(InvariantViolation):
    """A step broke an invariant or raised; `replay` is the command that shows it again."""

    def __init__(self, at: float, node: str, cause: str, replay: str) -> None:
        super().__init__(f"at {at:.6f} s on {node or 'the stage'}: {cause}\nreplay: {replay}")
        self.at = at
        self.node = node
        self.cause = cause
        self.replay = replay
