"""What can be set about the table, in which unit and why: section `[dht]` of a config file."""

from __future__ import annotations

from typing import Annotated, Literal

from overlay.config import Settings, because, bounded
from overlay.errors import ConfigError


class DhtSettings(Settings, frozen=True, kw_only=True):
    """The defaults are those of a LAN."""

    # -- who keeps what ---------------------------------------------------------------------------
    serve: Annotated[bool, because("keep keys of the table; false: only ask others")] = False
    storage: Annotated[
        Literal["memory", "sqlite"],
        because("sqlite: a write is acknowledged when it is on disk, in the state folder"),
    ] = "memory"
    replicas: Annotated[
        int, bounded("copies", 1, 7, "in the shard's zone: a minority of them may fail at once")
    ] = 3
    lateral: Annotated[
        int, bounded("copies", 1, 7, "in other storage zones, where there are any")
    ] = 2
    quorum: Annotated[
        int, bounded("copies", 0, 14, "before a write is acknowledged, never under a majority")
    ] = 0
    shard_bits: Annotated[
        int, bounded("bits", 0, 16, "of a key's hash that name its shard; as the table was founded")
    ] = 12
    node_points: Annotated[
        int, bounded("points", 0, 1024, "of a server on its zone's ring; 0: its VID, as in §2.1")
    ] = 64
    slice_size: Annotated[
        int, bounded("nodes", 1, 4096, "of a zone that are one slice of the upper tier ring")
    ] = 32
    slice_slack: Annotated[
        float, bounded("× slice", 0, 0.9, "past a boundary before the number of slices changes")
    ] = 0.25
    slice_patience: Annotated[
        float, bounded("s", 0, 3600, "that a size within the slack lasts: restarts move no slice")
    ] = 10.0
    slice_points: Annotated[
        int, bounded("points", 1, 4096, "of a slice on the ring: 256 keep zones within 1.3 ×")
    ] = 256

    # -- limits -----------------------------------------------------------------------------------
    key_bytes: Annotated[
        int, bounded("bytes", 1, 16_384, "longest key: it travels with every operation")
    ] = 1024
    value_bytes: Annotated[
        int, bounded("bytes", 0, 100_000, "longest value: a batch of them fits into a frame")
    ] = 65_536
    node_bytes: Annotated[
        int, bounded("bytes", 1, 1 << 40, "keys and values that a node leads before it refuses")
    ] = 256 << 20
    max_open: Annotated[
        int, bounded("operations", 1, 1 << 20, "of this node that wait for an answer")
    ] = 65_536
    max_watches: Annotated[
        int, bounded("watches", 0, 1 << 20, "that others keep here, and own ones")
    ] = 16_384
    cached_routes: Annotated[
        int, bounded("shards", 16, 1 << 16, "whose leader is remembered: one hop instead of three")
    ] = 65_536

    # -- times ------------------------------------------------------------------------------------
    operation_timeout: Annotated[
        float, bounded("s", 0.1, 600, "then an operation is refused, or said to be unknown")
    ] = 5.0
    retry: Annotated[
        float, bounded("s", 0.005, 60, "without an answer before something is sent again")
    ] = 0.25
    found_after: Annotated[
        float, bounded("s", 0, 600, "without a table in sight before the first server founds one")
    ] = 2.0
    founders: Annotated[
        int, bounded("servers", 0, 10_000, "in view before one founds a table; 0: this one never")
    ] = 1
    settle: Annotated[
        float, bounded("s", 0, 600, "that views stay as they are before groups are changed")
    ] = 1.0
    compare: Annotated[
        float, bounded("s", 0.05, 3600, "between two comparisons of a leader with its followers")
    ] = 2.0
    silence: Annotated[
        float, bounded("s", 0.1, 3600, "of a leader in another zone before others take over")
    ] = 5.0
    watch_renew: Annotated[
        float, bounded("s", 0.1, 3600, "between two renewals: a new leader is told within it")
    ] = 5.0
    transfers: Annotated[
        int, bounded("shards", 1, 65_536, "whose group one leader changes at a time")
    ] = 64

    # -- ways -------------------------------------------------------------------------------------
    direct: Annotated[bool, because("false: requests take the overlay's links, hop by hop")] = True

    def check(self) -> None:
        """See that the times fit into each other."""
        if self.silence < 2 * self.compare:
            raise ConfigError(
                f"silence = {self.silence} s: at least 2 × compare = {2 * self.compare} s, or one"
                " lost beat ends a leader"
            )
        if self.operation_timeout < 2 * self.retry:
            raise ConfigError(
                f"operation_timeout = {self.operation_timeout} s: at least 2 × retry ="
                f" {2 * self.retry} s, or nothing is ever sent again"
            )
