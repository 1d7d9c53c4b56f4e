"""What can be set about topics: section `[topics]` of a config file, and each publisher's own."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from overlay.config import Settings, because, bounded
from overlay.errors import ConfigError
from protocols.topics.modes import Reliability

KIB = 1024
MIB = 1024 * KIB

SlowPolicy: TypeAlias = Literal["wait", "drop-oldest", "disconnect"]


class TopicConfig(Settings, frozen=True, kw_only=True):
    """How one publisher serves its topic."""

    reliability: Annotated[
        Reliability, because("unordered and ordered may lose; ack and nack bring everything")
    ] = "ack"
    slow: Annotated[
        SlowPolicy, because("ack: what happens when a subscriber cannot follow and history is full")
    ] = "wait"
    history_messages: Annotated[
        int, bounded("messages", 1, 10_000_000, "kept for those who lack some; then publish waits")
    ] = 400_000
    history_bytes: Annotated[
        int, bounded("bytes", KIB, 1 << 34, "the same in bytes: what a publisher takes at most")
    ] = 32 * MIB
    history_age: Annotated[
        float, bounded("s", 0.1, 604_800, "nack, and what `keep` keeps: nobody asks for older ones")
    ] = 60.0
    keep: Annotated[
        int,
        bounded(
            "messages", 0, 10_000_000, "ack, ordered: though all have them, for who joins late"
        ),
    ] = 0
    window_bytes: Annotated[
        int, bounded("bytes", KIB, 1 << 30, "on the way to one subscriber and unacknowledged")
    ] = 8 * MIB
    linger: Annotated[
        float, bounded("s", 0, 3600, "a closed publisher still serves who lacks something")
    ] = 5.0


class TopicsSettings(Settings, frozen=True, kw_only=True):
    """The defaults are those of a LAN."""

    # -- packing --------------------------------------------------------------------------------
    chunk_bytes: Annotated[
        int,
        bounded("bytes", KIB, 512 * KIB, "messages of one tick travel together, in such chunks"),
    ] = 128 * KIB
    message_bytes: Annotated[
        int, bounded("bytes", KIB, 1 << 30, "longest message; see limits.message_bytes, too")
    ] = 63 * MIB

    # -- ack mode -------------------------------------------------------------------------------
    offer_every: Annotated[
        float, bounded("s", 0.01, 60, "first pause before an offer is repeated; × 1.5 each time")
    ] = 0.2
    handshake_within: Annotated[
        float, bounded("s", 0.1, 600, "a subscriber that did not answer offers by then failed")
    ] = 10.0
    ack_every: Annotated[
        float, bounded("s", 0.001, 10, "longest that a message waits to be acknowledged")
    ] = 0.05
    ack_share: Annotated[
        float, bounded("of a window", 0.01, 1, "received since the last ack: the next is due")
    ] = 0.125
    ask_after: Annotated[
        float, bounded("s", 0.01, 60, "without an ack, then the subscriber is asked; × 2 each time")
    ] = 0.15
    fail_after: Annotated[
        float, bounded("s", 0.5, 3600, "of silence, then a subscriber is held for failed")
    ] = 10.0
    lost_grace: Annotated[
        float, bounded("s", 0, 600, "the same once membership removed it: it may still come back")
    ] = 1.0
    move_within: Annotated[
        float, bounded("s", 1, 600, "who changes its zone or address keeps its place so long")
    ] = 20.0
    resend_after: Annotated[
        float, bounded("s", 0.001, 60, "what was sent again is not sent once more before")
    ] = 0.02
    slow_after: Annotated[
        float, bounded("s", 0.01, 600, "a publisher waits so long for one before it says so")
    ] = 1.0

    # -- all modes ------------------------------------------------------------------------------
    heartbeat: Annotated[
        float, bounded("s", 0.05, 600, "an idle stream tells how far it is; from 0.05 s, × 2 each")
    ] = 4.0
    silence: Annotated[
        float, bounded("× heartbeat", 1.5, 100, "without a word of a stream: its publisher failed")
    ] = 4.0
    gap_delay: Annotated[
        float, bounded("s", 0, 10, "before a gap is told: it may only be a message that overtook")
    ] = 0.003
    order_wait: Annotated[
        float, bounded("s", 0, 10, "ordered: longest wait for a message that others overtook")
    ] = 0.05
    pending_bytes: Annotated[
        int, bounded("bytes", KIB, 1 << 34, "of one stream that arrived too early, or are not read")
    ] = 16 * MIB

    # -- nack mode ------------------------------------------------------------------------------
    nack_delay: Annotated[
        float, bounded("s", 0, 10, "per hop, half of it random: who is nearer to a loss asks first")
    ] = 0.006
    nack_again: Annotated[
        float, bounded("s", 0.001, 60, "before somebody else is asked for the same; × 1.5 each")
    ] = 0.03
    nack_tries: Annotated[
        int, bounded("tries", 1, 1000, "then messages that nobody has are a Gap")
    ] = 30
    repair_bytes: Annotated[
        int, bounded("bytes", 0, 1 << 30, "of a stream that a receiver keeps, to help others out")
    ] = 2 * MIB

    # -- routes ---------------------------------------------------------------------------------
    tree_from: Annotated[
        int, bounded("subscribers", 2, 100_000, "of a topic in a zone: a tree instead of direct")
    ] = 16
    tree_until: Annotated[
        int, bounded("subscribers", 1, 100_000, "direct links again: below, so it does not flap")
    ] = 10

    # -- bounds ---------------------------------------------------------------------------------
    interest_bytes: Annotated[
        int, bounded("bytes", 64, 8192, "of attributes for a node's topics; more are summed up")
    ] = 1000
    max_streams: Annotated[
        int, bounded("streams", 1, 10_000_000, "that arrive here at once; more are refused")
    ] = 100_000
    remember: Annotated[
        float, bounded("s", 1, 86_400, "where a stream ended is known: late copies are no new ones")
    ] = 60.0
    relay_bytes: Annotated[
        int, bounded("bytes", KIB, 1 << 34, "of one stream that a gateway holds for others")
    ] = 32 * MIB

    def check(self) -> None:
        """See that the two ends of a choice do not cross."""
        if self.tree_until >= self.tree_from:
            raise ConfigError(
                f"tree_until = {self.tree_until}: less than tree_from = {self.tree_from}"
            )
