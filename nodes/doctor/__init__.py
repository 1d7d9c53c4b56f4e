"""`overlay doctor`: looks at a host and the peers on it, and says in plain words what is wrong.

A check is a function from a `Case` to findings, one small module each; `CHECKS` names them all. It
really does what it tells about: it sends to the groups and listens, binds the ports, reads the
keys. None changes anything, and what cannot be examined is told as such, with the reason.
"""

from collections.abc import Callable, Iterable

from nodes.doctor import (
    certificates,
    clock,
    disk,
    firewall,
    limits,
    multicast,
    namesakes,
    peers,
    ports,
    versions,
)
from nodes.doctor.case import Case
from nodes.doctor.finding import Finding, Verdict

CHECKS: dict[str, Callable[[Case], Iterable[Finding]]] = {
    "versions": versions.check,
    "limits": limits.check,
    "disk": disk.check,
    "ports": ports.check,
    "certificates": certificates.check,
    "multicast": multicast.check,
    "firewall": firewall.check,
    "overlays": namesakes.check,
    "clock": clock.check,
    "peers": peers.check,
}

__all__ = ["CHECKS", "Case", "Finding", "Verdict", "examine"]


def examine(case: Case) -> Iterable[tuple[str, Finding]]:
    """Every finding with the name of its check, as soon as it is known."""
    for name, check in CHECKS.items():
        for finding in check(case):
            yield name, finding
