"""How often what happened to one node's zones."""

from __future__ import annotations

import msgspec


class ZonesCounts(msgspec.Struct):
    """Since the start; `overlay status` shows them."""

    appointed: int = 0  # times that this node became a delegate
    dismissed: int = 0
    attributes_refused: int = 0  # of this node, by its membership: the application's fill the room
    claims_refused: int = 0  # of zones or roles that a certificate or a rule does not allow
    zones_ignored: int = 0  # more than `max_zones`
    asked: int = 0  # questions of this node
    answered: int = 0
    unanswered: int = 0
    forwarded: int = 0  # questions of others, passed on
    forwards_ended: int = 0  # of those, by an answer, a denial or for lack of one
    served: int = 0  # pages of members told to others
    denied: int = 0  # questions of others that this node could not answer
    busy: int = 0  # of those, for lack of room
    retried: int = 0
    late: int = 0  # answers to what was no longer open
    strangers: int = 0  # questions of nodes that are no members in this view
    tables_told: int = 0
    tables_heard: int = 0
    rosters_heard: int = 0
    sought: int = 0  # nodes asked for the management zone
    contacts_dropped: int = 0  # by the bound on remembered contacts
