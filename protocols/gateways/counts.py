"""How often what happened to one node's gateways."""

from __future__ import annotations

import msgspec


class GatewaysCounts(msgspec.Struct):
    """Since the start; `overlay status` shows them."""

    appointed: int = 0  # topics of which this node became the gateway
    dismissed: int = 0
    moved: int = 0  # topics of this node that got another gateway
    lines_sent: int = 0  # of ledgers, in changes and pages
    lines_heard: int = 0
    digests_sent: int = 0
    agreed: int = 0  # digests that were the same at the other side
    read_again: int = 0  # ledgers that differed and were read page by page
    outdated: int = 0  # changes that were overtaken by newer ones
    late: int = 0  # pages and answers that nobody waited for
    strangers: int = 0  # who told what is not theirs to tell, as far as this node knows
    not_allowed: int = 0  # lines that the declarer's certificate does not allow
    bad_patterns: int = 0  # attributes of members that hold no pattern
    attributes_refused: int = 0  # of this node, by its membership: no room
    expired: int = 0  # ledgers whose owner kept silent for too long
    asked: int = 0  # questions of this node
    answered: int = 0
    unanswered: int = 0
    forwarded: int = 0  # questions of others, passed on
    forwards_ended: int = 0
    served: int = 0  # questions that this node answered as a home
    busy: int = 0  # questions of others refused for lack of room
