"""What a command did to a lab, for the table and for `--json`."""

from __future__ import annotations

from typing import Any

import msgspec

from nodes.lab.fleet import Fleet


class Outcome(msgspec.Struct, kw_only=True):
    """Peers by name, hosts by name."""

    lab: str
    peers: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)  # as they see the lab
    started: list[str] = msgspec.field(default_factory=list)
    restarted: list[str] = msgspec.field(default_factory=list)
    removed: list[str] = msgspec.field(default_factory=list)
    older: list[str] = msgspec.field(default_factory=list)  # run another build than this one
    failures: dict[str, str] = msgspec.field(default_factory=dict)  # by host: reason and fix
    warnings: dict[str, str] = msgspec.field(default_factory=dict)

    def take(self, fleet: Fleet) -> None:
        """Note which hosts failed, in the inventory's order."""
        order = [host.name for host in fleet.inventory.hosts]
        for target, told in ((self.failures, fleet.failures), (self.warnings, fleet.warnings)):
            known = sorted(told, key=lambda name: order.index(name) if name in order else -1)
            target.update({name: str(told[name]) for name in known})
