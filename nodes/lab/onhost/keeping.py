"""Who keeps the peers of a host running: systemd where the user has it for good, else ours."""

from __future__ import annotations

import time
from typing import Any, Protocol

from nodes.lab.onhost.folder import Folder
from nodes.lab.onhost.trouble import Trouble

KEEPER, SYSTEMD, AUTO = "keeper", "systemd", "auto"
START_SECONDS = 30.0  # for a peer to have a process; a busy machine forks late
LOOK_EVERY = 0.05


class Keeping(Protocol):
    """What both can do; a state is {"pid", "generation", "starts", "since", "ended"}."""

    kind: str

    def states(self) -> dict[str, dict[str, Any]]:
        """What became of each peer; pid 0: it does not run."""

    def refresh(self) -> None:
        """Make what runs what the specs say: start, stop, restart where the generation is new."""

    def stop(self) -> None:
        """Stop every peer, in good order, and keep none."""

    def log(self, name: str, lines: int) -> list[str]:
        """The last lines that a peer said."""


def keeping(folder: Folder, supervise: str) -> Keeping:
    """The one that keeps them already, or else the one that the operator wants."""
    from nodes.lab.onhost.keeper import KeeperSide, keeper_pid
    from nodes.lab.onhost.units import Units, has_units, obstacle

    if has_units(folder) and not keeper_pid(folder):
        return Units(folder)
    if keeper_pid(folder) or supervise == KEEPER:
        return KeeperSide(folder)
    problem = obstacle()
    if not problem:
        return Units(folder)
    if supervise == SYSTEMD:
        raise Trouble(f"no systemd user units: {problem}", 'set supervise = "auto" in [lab]')
    return KeeperSide(folder)


def settle(there: Keeping, wanted: dict[str, int]) -> None:
    """Wait until each of these peers has a process of that generation."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        states = there.states()
        late = [name for name, number in wanted.items() if not _runs(states.get(name), number)]
        if not late:
            return
        if time.monotonic() > deadline:
            last = (there.log(late[0], 1) or ["it said nothing"])[-1]
            raise Trouble(
                f"{', '.join(late)} does not start: {last}", f"overlay lab logs {late[0]}"
            )
        time.sleep(LOOK_EVERY)


def _runs(state: dict[str, Any] | None, generation: int) -> bool:
    return state is not None and bool(state["pid"]) and state["generation"] == generation
