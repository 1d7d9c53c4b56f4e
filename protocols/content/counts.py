"""How often what happened."""

import msgspec


class ContentCounts(msgspec.Struct):
    """Since the start."""

    published: int = 0  # by this node
    delivered: int = 0  # to subscriptions of this node
    forwarded: int = 0  # copies of publications handed on
    behind: int = 0  # publications that came twice, or after their successors
    held: int = 0  # publications that waited for those under way elsewhere
    not_held: int = 0  # that would have waited, but `max_held` did
    streams_forgotten: int = 0  # by `max_streams`: then a late copy may pass
    too_far: int = 0  # publications and lines whose way is longer than any path may be
    undetermined: int = 0  # publications outside of their advertisement, or without one
    no_broker: int = 0  # publications of a client that had none
    waited: int = 0  # publications of a client that was between two brokers
    withdrawn: int = 0  # that waited, and whose advertisement was withdrawn meanwhile
    changes: int = 0  # messages with changes told
    lines: int = 0  # and lines in them
    wholes: int = 0  # whole ledgers told
    asked_again: int = 0  # whole ledgers asked for
    refused_lines: int = 0  # lines that a bound left out
    refused_peers: int = 0  # clients and neighbours that a bound left out
    strays: int = 0  # messages of nodes that are neither neighbour nor client
    neighbours_lost: int = 0
    clients_lost: int = 0
