"""How often what happened to one member of a zone."""

from __future__ import annotations

import msgspec


class MembershipCounts(msgspec.Struct):
    """Since the start; `overlay status` shows them."""

    probes: int = 0
    unanswered: int = 0  # probes that ended without a sign of life
    joined: int = 0  # members who appeared or came back
    suspected: int = 0
    refuted: int = 0  # suspects who proved to be alive
    failed: int = 0
    left: int = 0
    defended: int = 0  # times that this node was accused and proved to be alive
    syncs: int = 0
    relays_refused: int = 0  # for strangers, or more at once than any honest zone asks for
    news_dropped: int = 0  # by a full queue; a reconciliation brings it later
    forgotten: int = 0  # dead members that age or the bound on them cost
