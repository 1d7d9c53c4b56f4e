"""Membership: what it costs, how fast it learns, whom it removes by mistake, and real processes.

In the simulator members have the settings of a LAN (0.5 to 1.5 ms one way). All members of a zone
start at once and know three of them. Bytes are those of the encoded frames that arrive, without
the headers of ZeroMQ and TCP. `small` (10 and 50 peers), `real` (100, with bars) and `busy` (100,
while all cores are taken) start a process for each peer on loopback, with keys. The whole takes
most of an hour; `--only` picks sections. `--peers` puts pyre, zenoh and Serf beside small and real.
"""

from __future__ import annotations

from bench.membership_cost import report_cost
from bench.membership_detection import report_detection
from bench.membership_mistakes import report_mistakes
from bench.membership_peers import CONTENDERS
from bench.membership_real import report_busy, report_real, report_small
from bench.membership_scale import report_scale
from bench.report import Options, Report, Section, run_sections

NAME = "membership"

SECTIONS: dict[str, Section] = {
    "cost": report_cost,
    "detection": report_detection,
    "mistakes": report_mistakes,
    "scale": report_scale,
    "small": report_small,
    "real": report_real,
    "busy": report_busy,
}

PEERS = tuple(CONTENDERS)


def run(options: Options) -> Report:
    """Measure everything, or the sections that were asked for."""
    return run_sections(NAME, SECTIONS, options)
