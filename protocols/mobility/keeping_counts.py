"""How often what happened: at a broker that keeps for subscribers, and at a subscriber."""

import msgspec


class KeepingCounts(msgspec.Struct):
    """Of a broker, since the start."""

    kept: int = 0  # publications that entered a box
    sent: int = 0  # and left it, also those that were sent again
    resent: int = 0  # times that a window was sent again, since nothing was taken
    repeats: int = 0  # that both the old broker and this one got: kept once
    over_count: int = 0  # publications that `max_kept` put out
    over_bytes: int = 0  # or `max_bytes`, or `max_total`
    over_age: int = 0  # or `max_age`
    marks_forgotten: int = 0  # streams whose last number `max_marks` put out
    away: int = 0  # times that a subscriber went away, or fell silent
    back: int = 0  # times that one came back
    fetched: int = 0  # boxes that were fetched from another broker, all of them
    handed_over: int = 0  # boxes that another broker fetched
    not_fetched: int = 0  # the old broker was silent, or had forgotten
    superseded: int = 0  # boxes of a visit that a newer one overtook
    expired: int = 0  # boxes of subscribers that did not come back
    refused: int = 0  # subscribers and subscriptions that a bound left out
    strays: int = 0  # words about boxes that are not here


class FollowingCounts(msgspec.Struct):
    """Of a subscriber, since the start."""

    received: int = 0
    repeats: int = 0  # publications that came again: not told to the application
    gaps: int = 0
    lost: int = 0  # publications in these gaps, as far as anybody knows
    moves: int = 0
    marks_forgotten: int = 0
    strays: int = 0  # words of brokers that it left
