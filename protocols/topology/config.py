"""The settings of a zone's topology: section `[topology]` of a config file."""

from __future__ import annotations

from typing import Annotated

from overlay.config import Settings, bounded, sized
from overlay.errors import ConfigError
from protocols.topology.interests import TOPICS


class TopologySettings(Settings, frozen=True, kw_only=True):
    """How many links of each kind a member wants, and how it looks after them."""

    # -- how many -------------------------------------------------------------------------------
    ring_links: Annotated[
        int,
        bounded("links", 1, 16, "successors, and predecessors: that many may fail at one moment"),
    ] = 2
    structured_links: Annotated[
        float,
        bounded("× log2 n", 0, 8, "links at harmonic distances; as many come in from others"),
    ] = 0.5
    random_links: Annotated[
        int, bounded("links", 0, 32, "anywhere; as many come in: 4 keep a random graph connected")
    ] = 2
    greedy_coverage: Annotated[
        int, bounded("links", 0, 16, "per topic, to those who share the most topics: few links do")
    ] = 2
    random_coverage: Annotated[
        int, bounded("links", 0, 16, "per topic, to any who share it: greedy ones alone cluster")
    ] = 1
    max_degree: Annotated[
        int, bounded("links", 2, 1024, "besides the ring: each is a socket and is checked")
    ] = 32
    interest_key: Annotated[
        str, sized(0, 64, "the attribute whose words are a member's interest; empty: none counts")
    ] = TOPICS

    # -- looking after them ---------------------------------------------------------------------
    review_delay: Annotated[
        float, bounded("s", 0.001, 10, "pause before links follow the view: news comes in bursts")
    ] = 0.1
    changes: Annotated[
        int, bounded("links", 1, 256, "new links per review, the ring's aside: bounds a storm")
    ] = 4
    request_timeout: Annotated[
        float, bounded("s", 0.01, 60, "first pause before a request is repeated; then doubled")
    ] = 0.3
    request_tries: Annotated[
        int, bounded("requests", 1, 16, "before another member is chosen; the ring never gives up")
    ] = 3
    check_period: Annotated[
        float, bounded("s", 0.05, 600, "each end tells the other that it holds the link")
    ] = 10.0
    silence: Annotated[
        float, bounded("× check_period", 1.5, 64, "without a word, then the link is over")
    ] = 4.0
    avoid: Annotated[
        float, bounded("s", 0, 3600, "a member that refused or dropped a link is not chosen")
    ] = 30.0

    def check(self) -> None:
        """See that a member may have the links it wants."""
        if self.random_links > self.max_degree:
            raise ConfigError(
                f"random_links = {self.random_links}: at most max_degree = {self.max_degree}"
            )
