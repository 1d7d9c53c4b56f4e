"""What can be set about gateways, in which unit and why: section `[gateways]` of a config file."""

from __future__ import annotations

from typing import Annotated

from overlay.config import Settings, bounded
from overlay.errors import ConfigError


class GatewaysSettings(Settings, frozen=True, kw_only=True):
    """The defaults are those of a LAN."""

    # -- ledgers --------------------------------------------------------------------------------
    batch_delay: Annotated[
        float, bounded("s", 0, 10, "changes wait for company: thousands of topics leave together")
    ] = 0.02
    confirm: Annotated[
        float, bounded("s", 0.05, 600, "after changes were sent, both sides compare digests")
    ] = 1.0
    refresh: Annotated[
        float, bounded("s", 0.1, 3600, "between two digests of a ledger that stays as it is")
    ] = 5.0
    linger: Annotated[
        float, bounded("s", 0.1, 3600, "what nobody withdrew and nobody tells any more still holds")
    ] = 10.0
    expire: Annotated[
        float, bounded("s", 0.5, 86_400, "a home that is silent for so long is forgotten")
    ] = 20.0
    review_delay: Annotated[
        float, bounded("s", 0, 10, "changes of a view wait for company before they are looked at")
    ] = 0.1
    page_lines: Annotated[int, bounded("lines", 1, 1024, "in one message: bounds it")] = 256
    page_bytes: Annotated[
        int, bounded("bytes", 1024, 60_000, "in one message, endpoints included")
    ] = 16_000

    # -- bounds ---------------------------------------------------------------------------------
    max_topics: Annotated[
        int, bounded("topics", 1, 1_000_000, "that this node declares: its gateways hold them")
    ] = 65_536
    max_lines: Annotated[
        int, bounded("lines", 1, 10_000_000, "of one ledger told by a peer: more is an attack")
    ] = 1_000_000
    max_total: Annotated[
        int, bounded("lines", 1, 100_000_000, "of all ledgers told to this node: about 300 B each")
    ] = 4_000_000
    max_ledgers: Annotated[
        int, bounded("ledgers", 1, 1_000_000, "told to this node, one for each peer and purpose")
    ] = 65_536
    pattern_bytes: Annotated[
        int, bounded("bytes", 2, 16_384, "the zone's patterns in the management zone: one value")
    ] = 1000

    # -- questions ------------------------------------------------------------------------------
    ask_timeout: Annotated[
        float, bounded("s", 0.05, 60, "then the next delegate, or the home again, is asked")
    ] = 1.0
    ask_tries: Annotated[
        int, bounded("tries", 1, 64, "of one question: outlasts replacing all delegates")
    ] = 12
    max_open: Annotated[
        int, bounded("questions", 1, 65_536, "own and forwarded ones that wait for an answer")
    ] = 256

    def check(self) -> None:
        """See that the times fit into each other."""
        if self.expire < 2 * self.refresh:
            raise ConfigError(
                f"expire = {self.expire} s: at least 2 × refresh = {2 * self.refresh} s, or one"
                " lost digest ends a home"
            )
        if self.linger < self.refresh:
            raise ConfigError(
                f"linger = {self.linger} s: at least refresh = {self.refresh} s, or what moves is"
                " gone before it arrives"
            )
