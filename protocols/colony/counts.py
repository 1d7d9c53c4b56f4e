"""How often what happened in a colony, as one unit saw it."""

from __future__ import annotations

import msgspec


class ColonyCounts(msgspec.Struct):
    """Since the start; `overlay status` shows them."""

    # -- a broker
    requests: int = 0  # ServiceRequests that arrived: the paper's load
    repeated: int = 0  # wants that were here before, from the same sender
    crossed: int = 0  # wants that were here before, from another sender: rejected, so no loop
    overloaded: int = 0  # requests rejected for `max_open`
    strangers: int = 0  # messages of who is neither individual nor leader
    asked: int = 0  # sub-requests to individuals
    delegated: int = 0  # sub-requests to the leader
    accepted: int = 0  # acceptances handed on
    surplus: int = 0  # acceptances not handed on: enough were
    rejected: int = 0  # wants
    silent: int = 0  # individuals and leaders that did not answer in time
    late: int = 0  # responses to what was over
    forgotten: int = 0  # ended requests that `remembered` pushed out
    logged_in: int = 0
    logged_out: int = 0
    lazy: int = 0  # of them, delogged for that
    refused: int = 0  # log-ins
    services_cut: int = 0  # of individuals, past `max_services`

    # -- an individual
    leaders: int = 0  # found
    leaders_lost: int = 0
    cycles: int = 0  # broken by leaving
    resent: int = 0
    recovered: int = 0  # reliable requests taken up after a restart

    # -- a servant and a client
    proposals: int = 0
    served: int = 0
    declined: int = 0
    wanted: int = 0  # requests of this node
    found: int = 0  # servants
    distrusted: int = 0  # servants or clients whose certificate does not fit
    ended: int = 0
    timed_out: int = 0
