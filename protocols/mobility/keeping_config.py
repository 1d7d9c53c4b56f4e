"""What brokers keep for subscribers: the part of section `[mobility]` about that."""

from __future__ import annotations

from typing import Annotated, Literal

from overlay.config import Settings, because, bounded
from overlay.errors import ConfigError

KIB = 1024
MIB = 1024 * KIB


class KeepingSettings(Settings, frozen=True, kw_only=True):
    """How long brokers keep what for whom."""

    storage: Annotated[
        Literal["memory", "sqlite"],
        because("sqlite: what a broker keeps outlives its process; it costs a write for each"),
    ] = "memory"
    beat: Annotated[
        float, bounded("s", 0.01, 3600, "between two signs of life of a subscriber")
    ] = 1.0
    lease: Annotated[
        float, bounded("s", 0.03, 86_400, "a subscriber's silence after which it counts as away")
    ] = 5.0
    keep_for: Annotated[
        float, bounded("s", 0.1, 31_622_400, "a subscriber that is away has this long to return")
    ] = 3600.0
    overlap: Annotated[
        float,
        bounded("s", 0, 3600, "both brokers get what matches: long against a way through all"),
    ] = 2.0
    resend: Annotated[
        float, bounded("s", 0.01, 60, "until what is not taken is sent again: some round trips")
    ] = 0.5
    fetch_within: Annotated[
        float, bounded("s", 0.1, 3600, "an old broker's silence after which a gap is told instead")
    ] = 15.0

    # -- bounds ---------------------------------------------------------------------------------
    max_kept: Annotated[
        int, bounded("publications", 1, 10_000_000, "for one subscriber; then the oldest go")
    ] = 10_000
    max_bytes: Annotated[
        int, bounded("bytes", KIB, 1 << 34, "for one subscriber; then the oldest go")
    ] = 16 * MIB
    max_age: Annotated[
        float, bounded("s", 0.1, 31_622_400, "of a publication: nobody needs older ones")
    ] = 3600.0
    max_total: Annotated[int, bounded("bytes", KIB, 1 << 40, "for all subscribers of a broker")] = (
        256 * MIB
    )
    max_subscribers: Annotated[
        int, bounded("subscribers", 0, 1_000_000, "for whom one broker keeps")
    ] = 4096
    max_wants: Annotated[
        int, bounded("subscriptions", 1, 1024, "of one subscriber: they travel in one message")
    ] = 256
    max_marks: Annotated[
        int,
        bounded("streams", 16, 1_000_000, "of one subscriber whose last number is remembered"),
    ] = 10_000
    window: Annotated[
        int, bounded("publications", 1, 4096, "on their way to one subscriber and not taken yet")
    ] = 1024
    batch_bytes: Annotated[
        int, bounded("bytes", KIB, MIB, "of kept publications in one message")
    ] = 32 * KIB

    def check(self) -> None:
        """Silence is longer than the pause between two words."""
        if self.lease < 2 * self.beat:
            raise ConfigError(
                f"mobility.lease = {self.lease:g} is too short for beat = {self.beat:g}:"
                " give at least two beats"
            )
        if self.fetch_within < 2 * self.resend:
            raise ConfigError(
                f"mobility.fetch_within = {self.fetch_within:g} is too short for"
                f" resend = {self.resend:g}: give at least twice as much"
            )
