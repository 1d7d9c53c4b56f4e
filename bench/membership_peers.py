"""The script of real peers once more, for what others offer: without keys, each as it comes.

They run after ours, in the same network. Each size once: it shows what they are like, and takes
minutes, since some need half a minute to see that a peer is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.membership_script import add_failures, add_idle, formation
from bench.peer_processes import EndedError, NeverHappenedError, Processes
from bench.peers.contender import Contender
from bench.peers.pyre import PyrePeers
from bench.peers.serf import SerfPeers
from bench.peers.zenoh import ZenohPeers
from bench.report import Options, Report

CONTENDERS: dict[str, type[Contender]] = {
    contender.name: contender for contender in (PyrePeers, ZenohPeers, SerfPeers)
}


def add_peers(
    report: Report, options: Options, folder: Path, sizes: Sequence[int], seeds: int
) -> None:
    """Run each that was asked for; one that is missing, or that fails, is a note."""
    for name in options.peers:
        contender = CONTENDERS[name]()
        if how := contender.missing():
            report.notes.append(f"{name} is skipped, since it is not installed: {how}")
            continue
        for size in sizes:
            with Processes(contender, folder / f"{name}-{size}", size, seeds) as zone:
                try:
                    _follow_script(report, zone, name, options)
                except (NeverHappenedError, EndedError) as error:
                    report.notes.append(f"{name}, n = {size}: {error}")


def _follow_script(report: Report, zone: Processes, name: str, options: Options) -> None:
    whose = f"{name}: "
    zone.start()
    case = f"{whose}complete views after the last is ready, n = {zone.size}"
    report.add(case, "s", [formation(zone)])
    add_idle(report, zone, quick=options.quick, whose=whose)
    add_failures(report, zone, whose)
