"""How many files and sockets a peer may open: a link takes four or five of them."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import psutil

from nodes.doctor.case import Case
from nodes.doctor.finding import Finding, well, wrong
from overlay.net.descriptors import MANY

FEW = 4096  # descriptors: some 800 links
NEARLY = 0.8  # of what is allowed
FIX = "raise the limit: `ulimit -Hn 65536`, LimitNOFILE= of a unit, or /etc/security/limits.conf"


def check(case: Case) -> Iterator[Finding]:
    """What a new peer gets, and what those that run have used up."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = MANY if hard == resource.RLIM_INFINITY else min(MANY, hard)
    if most < FEW:
        yield wrong(f"a peer may open {most} files and sockets: about {most // 5} links", FIX)
    else:
        yield well(f"a peer may open {most} files and sockets")
    for node in case.nodes:
        try:
            process = psutil.Process(node.pid)
            used, allowed = process.num_fds(), process.rlimit(psutil.RLIMIT_NOFILE)[0]
        except psutil.Error:
            continue  # it has just stopped, or is another user's
        if allowed > 0 and used > NEARLY * allowed:
            yield wrong(f"{node.name} has {used} files and sockets open, of {allowed}", FIX)
