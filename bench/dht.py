"""The hash table: a real zone beside a dict behind REQ/REP, and a thousand simulated servers.

`--peers` puts Redis, etcd and PyPI's kademlia beside the real zone.
"""

from __future__ import annotations

from bench.dht_peers import KEEPERS
from bench.dht_real import real
from bench.dht_sim import simulated
from bench.report import Options, Report, run_sections

NAME = "dht"

SECTIONS = {"real": real, "sim": simulated}
PEERS = tuple(KEEPERS)


def run(options: Options) -> Report:
    """Measure all sections, or those that were asked for."""
    return run_sections(NAME, SECTIONS, options)
