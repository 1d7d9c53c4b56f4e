"""This machine as a resource: its processors, memory, disk and load, kept up to date."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import trio

from overlay.predicates import Constraint, Predicate, Value
from protocols.resources import ResourcesSettings

if TYPE_CHECKING:
    from nodes.node import Node
    from nodes.resources import PeerResources

NAME = "machine"
GIB = 1 << 30
FREE = 0.1  # GiB: a smaller change of what is free is nobody's business
BUSY = 0.05  # of the processors


class MachineShare:
    """Registers the machine when its node starts, and updates what changes."""

    def __init__(self, node: Node, resources: PeerResources) -> None:
        self._resources = resources
        self._settings = node.config.section(ResourcesSettings)
        if self._settings.share_machine:
            node.in_background(self._keep_telling)

    async def _keep_telling(self) -> None:
        told = reading()
        self._resources.register(NAME, description(told), values=told, model="dynamic")
        while True:
            await trio.sleep(self._settings.share_every)
            now = reading()
            if now != told:
                told = now
                self._resources.update(NAME, now)


def reading() -> dict[str, Value]:
    """What this machine has now, in coarse steps; sizes in GiB, load as a share of 1."""
    import psutil  # only who shares pays for it

    memory, disk = psutil.virtual_memory(), psutil.disk_usage("/")
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "cpus": psutil.cpu_count() or 1,
        "memory": round(memory.total / GIB, 1),
        "memory_free": _in_steps(memory.available / GIB, FREE),
        "disk": round(disk.total / GIB, 1),
        "disk_free": _in_steps(disk.free / GIB, FREE),
        "load": _in_steps(psutil.cpu_percent() / 100, BUSY),
    }


def description(values: dict[str, Value]) -> Constraint:
    """What stays as it is, and the ranges of the rest."""
    fixed = ("system", "machine", "cpus")
    return Constraint.of(
        *(Predicate(name, "=", values[name]) for name in fixed),
        *(Predicate(name, ">=", 0) for name in values if name not in fixed),
    )


def _in_steps(value: float, step: float) -> float:
    return round(max(0.0, round(value / step) * step), 2)
