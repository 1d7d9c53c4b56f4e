"""What can be set about a zone's membership, in which unit and why."""

from __future__ import annotations

from typing import Annotated

from overlay.config import Settings, bounded
from overlay.errors import ConfigError


class MembershipSettings(Settings, frozen=True, kw_only=True):
    """The defaults are those of a LAN; configs/*.toml holds other networks."""

    # -- detection ------------------------------------------------------------------------------
    probe_period: Annotated[
        float, bounded("s", 0.05, 60, "each member is watched once, and watches two, per period")
    ] = 1.0
    probe_timeout: Annotated[
        float, bounded("s", 0.01, 30, "wait for an Ack this long, then ask helpers too")
    ] = 0.25
    indirect_timeout: Annotated[
        float, bounded("s", 0.02, 60, "wait for helpers this long, then suspect")
    ] = 0.35
    helpers: Annotated[
        int, bounded("members", 0, 16, "who probe indirectly: SWIM's k; 3 survive 20 % of loss")
    ] = 3
    suspicion_min: Annotated[
        float,
        bounded("s", 0.1, 600, "a confirmed suspect dies after; longer than a slow node's 2 s"),
    ] = 3.0
    suspicion_max: Annotated[
        float, bounded("s", 0.1, 3600, "an unconfirmed suspect dies after: one accuser may err")
    ] = 12.0
    abrupt_min: Annotated[
        float, bounded("s", 0.01, 60, "the same when its links closed on several members at once")
    ] = 0.2
    confirmations: Annotated[
        int, bounded("members", 0, 16, "accusers besides the first that end a suspicion early")
    ] = 3
    witnesses: Annotated[
        int, bounded("members", 0, 16, "nearest ring predecessors that verify a suspicion at once")
    ] = 5
    health_max: Annotated[
        int, bounded("score", 0, 16, "Lifeguard: an ailing node waits up to 1 + this times longer")
    ] = 8

    # -- dissemination --------------------------------------------------------------------------
    gossip_delay: Annotated[
        float, bounded("s", 0.001, 10, "news waits this long for more, to leave in one packet")
    ] = 0.02
    gossip_period: Annotated[
        float, bounded("s", 0.005, 10, "pause between two packets while there is news")
    ] = 0.1
    gossip_fanout: Annotated[
        int, bounded("members", 1, 32, "members that get each packet; 4 infect 98 % in log4 n")
    ] = 4
    gossip_repeats: Annotated[
        float, bounded("× log10 n", 1, 16, "how often each member passes one piece of news on")
    ] = 3.0
    partners: Annotated[
        int, bounded("members", 4, 1024, "members that get news and probes in turn: each is a link")
    ] = 12
    packet_bytes: Annotated[
        int, bounded("bytes", 256, 60_000, "news per message, half of it reserved for attributes")
    ] = 1200
    sync_eager: Annotated[
        float, bounded("s", 0.01, 60, "pause after a Sync that brought something")
    ] = 0.25
    sync_lazy: Annotated[
        float, bounded("s", 0.05, 600, "longest pause between two Syncs while views differ")
    ] = 4.0
    piece_members: Annotated[
        int, bounded("members", 1, 1024, "members per JoinReply or SyncRecords: bounds a message")
    ] = 64

    # -- joining and remembering ----------------------------------------------------------------
    join_retry: Annotated[
        float,
        bounded("s", 0.05, 60, "first pause before contacts that kept silent are asked again"),
    ] = 0.5
    join_retry_max: Annotated[
        float, bounded("s", 0.1, 3600, "longest such pause; silent contacts are asked for ever")
    ] = 10.0
    join_parallel: Annotated[
        int, bounded("contacts", 1, 64, "contacts asked at once: one dead seed must cost nothing")
    ] = 8
    remember_dead: Annotated[
        float, bounded("s", 1, 2_592_000, "a partition that lasts no longer heals by itself")
    ] = 86_400.0
    max_dead: Annotated[
        int, bounded("members", 1, 1_000_000, "dead members remembered; the oldest go first")
    ] = 4096
    knock_period: Annotated[
        float,
        bounded("s", 0.1, 600, "in which a zone tries four of its dead: finds healed partitions"),
    ] = 2.0
    max_members: Annotated[
        int, bounded("members", 2, 1_000_000, "a zone grows no larger; more than that is an attack")
    ] = 10_000

    # -- attributes -----------------------------------------------------------------------------
    value_bytes: Annotated[
        int, bounded("bytes", 16, 16_384, "one value: must fit into a packet with room to spare")
    ] = 1024
    member_bytes: Annotated[
        int,
        bounded("bytes", 64, 65_536, "all keys and values of one member: every peer holds them"),
    ] = 8192
    max_keys: Annotated[
        int, bounded("keys", 1, 1024, "keys of one member, removed ones too: their versions stay")
    ] = 128

    def check(self) -> None:
        """See that the timeouts fit into each other."""
        if self.suspicion_min > self.suspicion_max:
            raise ConfigError(
                f"suspicion_min = {self.suspicion_min} s: "
                f"at most suspicion_max = {self.suspicion_max} s"
            )
        if self.abrupt_min > self.suspicion_min:
            raise ConfigError(
                f"abrupt_min = {self.abrupt_min} s: at most suspicion_min = {self.suspicion_min} s"
            )
        if self.probe_timeout >= self.indirect_timeout:
            raise ConfigError(
                f"indirect_timeout = {self.indirect_timeout} s: longer than probe_timeout = "
                f"{self.probe_timeout} s, or no helper can report in time"
            )
        if self.sync_eager > self.sync_lazy:
            raise ConfigError(f"sync_eager = {self.sync_eager} s: at most {self.sync_lazy} s")
