"""How long a suspect may take to prove that it is alive."""

from __future__ import annotations

from math import log, log10

from protocols.membership.config import MembershipSettings


def suspicion_timeout(
    settings: MembershipSettings, size: int, accusers: int, abrupt: bool
) -> float:
    """Seconds from the first accusation to the verdict.

    Lifeguard: from the longest with one accuser down to the shortest when `confirmations` others
    agree, falling with the logarithm, since the first confirmation says most. News takes
    log n rounds to reach everybody and as long for the refutation, so larger zones wait longer.
    """
    growth = max(1.0, log10(max(size, 1)) / 2)
    longest, shortest = settings.suspicion_max * growth, settings.suspicion_min * growth
    if abrupt:  # links closed: the process is gone, or it will come back at once
        longest, shortest = shortest, settings.abrupt_min
    needed = min(settings.confirmations, size - 2)  # neither the suspect nor the first accuser
    if needed <= 0:
        return shortest
    confirmed = min(max(accusers - 1, 0), needed)
    return longest - (longest - shortest) * log(confirmed + 1) / log(needed + 1)
