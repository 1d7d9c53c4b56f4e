"""What can be set about zones, in which unit and why: section `[zones]` of a config file."""

from __future__ import annotations

from typing import Annotated

from overlay.config import Settings, because, bounded
from overlay.errors import ConfigError


class ZonesSettings(Settings, frozen=True, kw_only=True):
    """The defaults are those of a LAN."""

    # -- delegates ------------------------------------------------------------------------------
    delegates: Annotated[
        int, bounded("members", 1, 8, "who stand for a zone: with 2 one may die unnoticed")
    ] = 2
    eligible: Annotated[
        bool, because("false keeps a member that roams or must save power from being a delegate")
    ] = True
    settle: Annotated[
        float, bounded("s", 0, 600, "after its start a node lets views fill before it serves")
    ] = 2.0
    appoint_after: Annotated[
        float, bounded("s", 0, 60, "elected for so long, it serves: short against detection")
    ] = 0.25
    dismiss_after: Annotated[
        float, bounded("s", 0, 600, "not elected for so long, it resigns: views may still differ")
    ] = 2.0
    barred: Annotated[
        float, bounded("s", 1, 86_400, "who was refused by the management zone is no candidate")
    ] = 60.0
    review_delay: Annotated[
        float, bounded("s", 0, 10, "changes of a view wait for company before they are looked at")
    ] = 0.1

    # -- the management zone --------------------------------------------------------------------
    supervisors: Annotated[
        int, bounded("supervisors", 1, 8, "who look after one zone: with 2 one may die unnoticed")
    ] = 2
    publish_pause: Annotated[
        float, bounded("s", 0.05, 600, "between two changes of what a delegate publishes")
    ] = 1.0
    contacts: Annotated[
        int, bounded("nodes", 1, 8, "in the management zone that each member knows: to get back in")
    ] = 6
    seek_retry: Annotated[
        float, bounded("s", 0.05, 60, "first pause of who is alone in the management zone; × 2")
    ] = 0.5
    seek_period: Annotated[
        float, bounded("s", 0.5, 3600, "between two looks for parts of the overlay unknown so far")
    ] = 10.0
    seek_parallel: Annotated[
        int, bounded("nodes", 1, 8, "asked at once: one dead contact must cost nothing")
    ] = 4
    vanish_after: Annotated[
        float, bounded("s", 1, 86_400, "a zone without delegates is gone: longer than replacing")
    ] = 30.0
    max_zones: Annotated[
        int, bounded("zones", 1, 100_000, "more than that is an attack; the rest is ignored")
    ] = 4096

    # -- what members ask -----------------------------------------------------------------------
    table_period: Annotated[
        float, bounded("s", 0.5, 3600, "a member asks a delegate for news of other zones")
    ] = 10.0
    roster_period: Annotated[
        float, bounded("s", 0.5, 3600, "a delegate tells supervisors the digest of its zone")
    ] = 10.0
    ask_timeout: Annotated[
        float, bounded("s", 0.05, 60, "then the next delegate or supervisor is asked")
    ] = 1.0
    ask_tries: Annotated[
        int, bounded("tries", 1, 64, "one page is asked for: outlasts replacing all delegates")
    ] = 12
    page_members: Annotated[int, bounded("members", 1, 256, "in one answer: bounds a message")] = 64
    page_bytes: Annotated[
        int, bounded("bytes", 512, 60_000, "in one answer, endpoints included")
    ] = 16_000
    max_members: Annotated[
        int, bounded("members", 1, 1_000_000, "of one zone in an answer: more is an attack")
    ] = 100_000
    max_open: Annotated[
        int, bounded("questions", 1, 65_536, "own and forwarded ones that wait for an answer")
    ] = 256

    def check(self) -> None:
        """See that the times fit into each other."""
        if self.seek_retry > self.seek_period:
            raise ConfigError(
                f"seek_retry = {self.seek_retry} s: at most seek_period = {self.seek_period} s"
            )
        if self.vanish_after <= self.appoint_after:
            raise ConfigError(
                f"vanish_after = {self.vanish_after} s: longer than appoint_after = "
                f"{self.appoint_after} s, or a zone vanishes while its delegates are replaced"
            )
