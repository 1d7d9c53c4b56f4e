"""How often what happened."""

import msgspec


class MobilityCounts(msgspec.Struct):
    """Since the start."""

    moveouts: int = 0  # of this client
    moveins: int = 0  # of this client
    ready: int = 0  # trees that stood at the end
    incomplete: int = 0  # trees of which some branch did not answer
    unanswered: int = 0  # times that a broker did not say in `patience` that a tree stands
    stood_in: int = 0  # advertisements made for absent clients
    not_stood_in: int = 0  # that `max_standing` refused
    handed_over: int = 0  # clients that another broker took over
    not_handed_over: int = 0  # clients whose previous broker did not answer
    not_taken: int = 0  # clients that `max_arrivals` refused
    expelled: int = 0  # clients that had moved without a word
    waves: int = 0  # questions that began here or passed
    not_sounded: int = 0  # questions that `max_waves` refused
    unread: int = 0  # questions and answers ahead of the ledger: they come again
    strays: int = 0  # messages that fit nothing
