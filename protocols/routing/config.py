"""The settings of routing in a zone: section `[routing]` of a config file."""

from __future__ import annotations

from typing import Annotated

from overlay.config import Settings, because, bounded
from overlay.errors import ConfigError


class RoutingSettings(Settings, frozen=True, kw_only=True):
    """How patient a hop is, and how much it keeps."""

    direct: Annotated[
        bool, because("one hop past the overlay: faster for few messages, a connection for each")
    ] = False
    take_timeout: Annotated[
        float, bounded("s", 0.01, 60, "a next hop that took nothing by then is asked again; × 2")
    ] = 0.25
    take_tries: Annotated[
        int, bounded("tries", 1, 16, "then another way is taken: 4 survive 20 % of loss in 98 %")
    ] = 4
    ask_again: Annotated[
        float, bounded("s", 0.05, 600, "a hop that took it is asked for the end: it may be lost")
    ] = 1.0
    ttl: Annotated[
        int, bounded("hops", 2, 255, "steps of one message: far above log2 n, so only loops end")
    ] = 48
    route_timeout: Annotated[
        float, bounded("s", 0.1, 3600, "until RouteFailed: longer than detecting a dead member")
    ] = 20.0
    route_pause: Annotated[
        float, bounded("s", 0.01, 60, "before a route that ended on its way is tried again")
    ] = 0.5
    spread_timeout: Annotated[
        float, bounded("s", 0.1, 3600, "until a broadcast or aggregate ends with members missing")
    ] = 20.0
    max_open: Annotated[
        int, bounded("messages", 1, 1_000_000, "begun here, and as many taken over from others")
    ] = 4096
    max_bytes: Annotated[
        int, bounded("bytes", 1024, 2**40, "payloads taken over from others and not ended yet")
    ] = 64 * 1024 * 1024
    remembered: Annotated[
        int, bounded("ids", 16, 10_000_000, "messages recognised when they come a second time")
    ] = 8192
    remember_for: Annotated[
        float, bounded("s", 1, 86_400, "the same in time: an idle node keeps little")
    ] = 60.0

    def check(self) -> None:
        """See that a message is remembered for as long as it may be repeated."""
        longest = max(self.route_timeout, self.spread_timeout)
        if self.remember_for < longest:
            raise ConfigError(
                f"remember_for = {self.remember_for} s: at least {longest} s, the longest timeout,"
                " or a late copy is taken for a new message"
            )
