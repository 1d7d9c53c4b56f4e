"""How often what happened, since the start."""

from __future__ import annotations

import msgspec


class ResourceCounts(msgspec.Struct):
    """The paper's metrics (§6.1), and what every bound cost."""

    # -- the paper's metrics: each message counts once for each hop -----------------------------
    requests_sent: int = 0  # subscription messages
    results_sent: int = 0  # publication messages: one for each resource
    result_messages: int = 0  # the same in packages, as they really travel
    matched_advertisements: int = 0  # matching operations: a request against the SRT,
    matched_covers: int = 0  # against the SrdSubList,
    matched_results: int = 0  # a result against a covered request

    # -- requests -------------------------------------------------------------------------------
    asked: int = 0  # dynamic finds of this node
    asked_static: int = 0
    ended: int = 0
    incomplete: int = 0
    handled: int = 0  # requests that came from neighbours
    routed: int = 0  # by advertisements, as no other covered them
    covered: int = 0  # sent after another one's results, or answered by them here
    relayed: int = 0  # handed on towards the host of their cover
    repeated: int = 0  # that came by a second way
    outdated: int = 0  # covers that a newly registered resource may match
    gone: int = 0  # covers that had nothing to share: routed after all
    failed_branches: int = 0

    # -- resources ------------------------------------------------------------------------------
    registered: int = 0
    updated: int = 0
    coalesced: int = 0  # updates that a later one overtook within `update_interval`
    expired: int = 0  # registrations whose lease ended

    # -- what was dropped, and why ---------------------------------------------------------------
    late_results: int = 0  # of requests that are not known any more
    doubled_results: int = 0  # that the host had already
    stale_results: int = 0  # too old to be shared
    wrong_results: int = 0  # that do not match what was asked
    over_max_requests: int = 0
    over_max_results: int = 0
    over_max_hops: int = 0

    # -- the courier ------------------------------------------------------------------------------
    resent: int = 0
    repeats_dropped: int = 0
    early_dropped: int = 0
    links_lost: int = 0  # given up: no confirmation, too much unconfirmed, or the peer forgot

    @property
    def matchings(self) -> int:
        """All matching operations."""
        return self.matched_advertisements + self.matched_covers + self.matched_results
