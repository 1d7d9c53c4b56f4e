"""Discovery: finding peers and the nearest broker, and the time that makes delays comparable.

`contact`: how soon nodes find each other by multicast. `topologies`, `choice`, `scale`, `security`:
how soon the nearest broker is found, and what that costs. `clock` simulates members whose clocks
are off by ±500 ms and drift by ±50 ppm, with 10 ms and exponential jitter (mean 5 ms) each way,
and runs real peers with shifted clocks on loopback.
"""

from __future__ import annotations

from bench.discovery_brokers import report_choice, report_topologies
from bench.discovery_clock import report_clock
from bench.discovery_contact import CONTENDERS, report_contact
from bench.discovery_cost import report_scale, report_security
from bench.report import Options, Report, Section, run_sections

NAME = "discovery"

SECTIONS: dict[str, Section] = {
    "contact": report_contact,
    "topologies": report_topologies,
    "choice": report_choice,
    "scale": report_scale,
    "security": report_security,
    "clock": report_clock,
}

PEERS = tuple(CONTENDERS)


def run(options: Options) -> Report:
    """Measure everything, or the sections that were asked for."""
    return run_sections(NAME, SECTIONS, options)
