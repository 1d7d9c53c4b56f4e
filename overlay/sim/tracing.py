"""Traces of a simulated run: the rows of all nodes, and what the simulator did to them.

Recording changes nothing in a run: the same seed has the same trace hash with and without.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from overlay.host import DRIVER, Host
from overlay.protocol import NODE_SCOPE, Message, Scope
from overlay.sim.faults import Rule
from overlay.traces.config import TraceSettings, check_run
from overlay.traces.rows import NodeTraces, Place, RowBuffer
from overlay.traces.schema import pyarrow
from overlay.traces.spool import recover
from overlay.traces.writer import TraceWriter
from overlay.tracing import Kind, Level, Trace
from overlay.tracing.kinds import FAULT_BEGAN, FAULT_ENDED, STARTED

if TYPE_CHECKING:
    from overlay.sim.node import SimNode
    from overlay.sim.simulator import Simulator

BUFFER = 80_000  # rows; a quarter of them is written at once
DETAIL = 200  # characters of a rule

_encoded = msgspec.msgpack.Encoder().encode
_NOWHERE = Place("", 0, "")


def no_pause(_seconds: float) -> None:
    """There is no other thread to let run."""


class SimTraces:
    """Writes what all nodes of a simulator record; set it before the first node starts."""

    def __init__(
        self,
        sim: Simulator,
        folder: Path,
        *,
        run: str,
        level: Level = Level.ALL,
        settings: TraceSettings | None = None,
    ) -> None:
        pyarrow()
        recover(folder)  # what an earlier run of the same name left in mid-file
        settings = settings or TraceSettings(rotate_every=3600, rotate_rows=1_000_000)
        self.level = level
        self._sample = settings.sample
        self._sim = sim
        self._buffer = RowBuffer(BUFFER, self.flush)
        self._writer = TraceWriter(
            folder, settings, run=check_run(run), recorder=run, life=int(sim.now) + 1
        )
        self._world = NodeTraces(
            self._buffer, Host("", _no_effects, ""), _NOWHERE, self._now, level=level
        )
        self._world.begin()

    def _now(self) -> float:
        return self._sim.now

    @property
    def rows(self) -> int:
        """How many were recorded."""
        return self._buffer.taken

    def started(self, node: SimNode, host: Host) -> None:
        """Record a life from here on."""
        place = Place(node.name, node.life, _zone_of(node, host))
        sim = self._sim
        traces = NodeTraces(
            self._buffer,
            host,
            place,
            lambda: sim.clock_of(node),
            level=self.level,
            sample=self._sample,
        )
        host.record(self.level, traces)
        traces.take(DRIVER, NODE_SCOPE, Trace(STARTED))

    def happened(self, node: SimNode, kind: Kind, detail: str = "") -> None:
        """Record what the simulator did to a node that runs."""
        if node.host is not None and node.host.traces is not None:
            node.host.traces.take(DRIVER, NODE_SCOPE, Trace(kind, detail=detail))

    def fault(self, rule: Rule, *, begins: bool) -> None:
        """Record that the network is bent, or no longer."""
        kind = FAULT_BEGAN if begins else FAULT_ENDED
        self._world.take(DRIVER, NODE_SCOPE, Trace(kind, detail=repr(rule)[:DETAIL]))

    def passed(self, kind: Kind, at: SimNode, peer: str, sections: list[Any]) -> None:
        """Record a frame or a datagram: a row for each type of message in it."""
        traces = at.host.traces if at.host is not None else None
        if traces is None:
            return
        for place in range(0, len(sections), 2):
            scope: Scope = sections[place]
            counts: dict[type[Message], list[int]] = {}
            for msg in sections[place + 1]:
                entry = counts.setdefault(type(msg), [0, 0])
                entry[0] += 1
                entry[1] += len(_encoded(msg))
            for what, (count, size) in counts.items():
                row = Trace(kind, peer, count=count, bytes=size, message=what.__name__)
                traces.take(protocol_of(what), scope, row)

    def flush(self) -> None:
        """Write what was recorded so far."""
        while rows := self._buffer.fetch(BUFFER):
            self._writer.write(rows, no_pause)
        if self._writer.is_due:
            self._writer.rotate()

    def close(self) -> list[Path]:
        """Write the rest; all files of this run."""
        self.flush()
        self._writer.rotate()
        return list(self._writer.files)


def protocol_of(what: type[Message]) -> str:
    """Whose message that is, by where it is defined: `protocols.topics.messages`."""
    words = what.__module__.split(".")
    return words[1] if words[0] == "protocols" else DRIVER


def _zone_of(node: SimNode, host: Host) -> str:
    """The base zone: what the stage calls its network, else the first scope that it runs in."""
    scopes = (instance.scope for instance in host.instances if instance.scope)
    return host.surroundings.zone or node.lan or next(scopes, "")


def _no_effects(_host: Host, _instance: Any) -> Any:
    raise AssertionError("the world runs no protocol")
