"""Traces of a running node: switched on and off while it runs, and told through the control socket.

A node that does not record imports neither pyarrow nor the recorder, and has no thread for it.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

import overlay
from overlay.errors import LocalProtocolError
from overlay.host import DRIVER
from overlay.protocol import NODE_SCOPE
from overlay.traces.config import TraceSettings, run_of
from overlay.tracing import LEVEL_NAMES, Level, Trace
from overlay.tracing.kinds import STARTED, STOPPED

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodes.node import Node
    from overlay.traces.recorder import Recorder

STOP_SECONDS = 1.0  # for the last file: what is not done then is done by the next recorder
ON = "on"  # the level of the settings, or the first one


class Tracing:
    """The recorder of one node, once there is one."""

    def __init__(self, node: Node) -> None:
        self.settings = node.config.section(TraceSettings)
        self.level = Level.OFF
        self.sample = self.settings.sample
        self.failure = ""  # why tracing ended by itself
        self.on_file: Callable[[Path], None] | None = None  # called on the recorder's thread
        self._node = node
        self._recorder: Recorder | None = None
        self._folder = self.settings.folder
        self._token: trio.lowlevel.TrioToken
        node.control.register("trace", self.control)

    # -- life ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """The node is about to start: record it from its first step, if the settings say so."""
        self._token = trio.lowlevel.current_trio_token()
        if self.settings.level != "off":
            self.set_level(Level[self.settings.level.upper()])
            self._mark(Trace(STARTED, detail=_version()))

    async def end(self) -> None:
        """The node has stopped: finish its file, for a bounded time."""
        recorder = self._recorder
        if recorder is None:
            return
        self._mark(Trace(STOPPED))
        self._node.driver.record(Level.OFF, None)
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(recorder.stop, STOP_SECONDS)

    def _mark(self, record: Trace) -> None:
        traces = self._node.driver.host.traces
        if traces is not None:
            traces.take(DRIVER, NODE_SCOPE, record)

    # -- use ----------------------------------------------------------------------------------

    @property
    def recorder(self) -> Recorder | None:
        """Who writes; None as long as nothing was ever recorded."""
        return self._recorder

    def set_level(self, level: Level, sample: int | None = None) -> None:
        """Record so much from now on; ConfigError where pyarrow is missing."""
        self.sample = sample or self.sample
        driver = self._node.driver
        if level is Level.OFF:
            driver.record(level, None)
            if self._recorder is not None:
                self._recorder.rotate_soon()
        else:
            recorder = self._running()
            from overlay.traces.rows import NodeTraces, Place
            from overlay.traces.writer import life_of

            place = Place(self._node.name, life_of(driver.started_at), self._node.zone)
            traces = NodeTraces(
                recorder.buffer, driver.host, place, driver.now, level=level, sample=self.sample
            )
            driver.record(level, traces)
            traces.begin()
            self.failure = ""
        self.level = level

    def _running(self) -> Recorder:
        if self._recorder is not None and not self._recorder.failure:
            return self._recorder
        from overlay.traces.recorder import Recorder
        from overlay.traces.writer import life_of

        settings = self.settings
        recorder = Recorder(
            Path(self._folder).expanduser(),
            settings,
            run=settings.run or run_of(self._node.overlay),
            recorder=self._node.name,
            life=life_of(self._node.driver.now()),
            on_failure=self._on_failure,
        )
        recorder.on_file = self.on_file
        recorder.start()
        self._recorder = recorder
        return recorder

    def _on_failure(self, reason: str) -> None:
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._failed, reason)

    def _failed(self, reason: str) -> None:
        self.failure = reason
        self.level = Level.OFF
        self._node.driver.record(Level.OFF, None)

    # -- the control socket -------------------------------------------------------------------

    def control(
        self, level: str = "", sample: int = 0, folder: str = "", rotate: bool = False
    ) -> dict[str, Any]:
        """Set what is given, and tell how it is now; `rotate`: finish the file, and go on."""
        if level == ON:
            level = self.settings.level if self.settings.level != "off" else "delivery"
        if level and level not in LEVEL_NAMES:
            raise LocalProtocolError(f"level {level!r}: one of {', '.join(LEVEL_NAMES)}")
        if sample < 0 or sample > 1_000_000:
            raise LocalProtocolError(f"sample {sample}: from 1 (everything) to 1,000,000")
        if folder and folder != self._folder:
            if self._recorder is not None:
                raise LocalProtocolError(f"this node records to {self._folder} as long as it runs")
            self._folder = folder
        if level or sample:
            self.set_level(Level[level.upper()] if level else self.level, sample or None)
        if rotate and self._recorder is not None:
            self._recorder.rotate_soon()
        return self.facts()

    def facts(self) -> dict[str, Any]:
        """What `overlay trace status` shows."""
        told: dict[str, Any] = {
            "node": self._node.name,
            "level": self.level.name.lower(),
            "sample": self.sample,
            "folder": str(Path(self._folder).expanduser()),
            "failure": self.failure,
        }
        if self._recorder is not None:
            from overlay.traces.recorder import facts

            told |= facts(self._recorder.status)
        return told


def _version() -> str:
    try:
        return overlay.__version__
    except PackageNotFoundError:  # a clone that is not installed has none
        return ""
