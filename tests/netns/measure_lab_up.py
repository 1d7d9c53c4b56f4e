"""`python -m tests.netns.measure_lab_up HOSTS PEERS`: bring a lab up, twice, and tell the seconds.

A line of JSON for `python -m bench lab`: the first `up` and its steps, the second `up`, which has
nothing to do; or why it could not be measured.
"""

from __future__ import annotations

import json
import re
import sys
import time
from typing import Any

from tests.netns.lab import Lab
from tests.netns.lab_fixture import make_wheels
from tests.netns.rights import obstacle as no_lab
from tests.netns.ssh_hosts import SshHosts
from tests.netns.ssh_hosts import obstacle as no_ssh

WITHIN = 600.0  # s for one command; what takes so long is a failure
ZONES = "ab"


def measure(hosts: int, peers: int) -> dict[str, Any]:
    """The seconds by case, or `problem`."""
    if problem := no_lab() or no_ssh() or make_wheels():
        return {"problem": problem}
    names = [f"h{number}" for number in range(1, hosts + 1)]
    with Lab() as lab:
        there = SshHosts(lab, names)
        zones = {name: ZONES[place % 2] for place, name in enumerate(names)}
        there.write(peers=peers, zones=zones, sets=())
        began = time.monotonic()
        done = there.overlay("lab", "up", within=WITHIN)
        ended = time.monotonic()
        there.overlay("lab", "up", within=WITHIN)
        again = time.monotonic() - ended
    whole = ended - began
    return {"up": whole, "up again": again, **_steps(done.stderr, whole)}


def _steps(said: str, whole: float) -> dict[str, float]:
    """What the plain progress tells: when each step began."""
    found = re.findall(r"^\[ *([0-9.]+) s\] (.+)$", said, re.MULTILINE)
    begins = [float(seconds) for seconds, _ in found]
    ends = [*begins[1:], whole]
    steps = zip(found, begins, ends, strict=True)
    return {f"up: {name}": end - begin for (_, name), begin, end in steps}


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
