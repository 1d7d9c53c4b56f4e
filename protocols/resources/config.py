"""The settings of resource discovery: section `[resources]` of a config file."""

from __future__ import annotations

from typing import Annotated, Literal

from overlay.config import Settings, because, bounded
from overlay.errors import ConfigError

REUSED = 0.9
"""Of `expiry`, how old results may be when they are shared: the rest is for their way."""


class ResourcesSettings(Settings, frozen=True, kw_only=True):
    """How requests travel, how long results are shared, and every bound."""

    forwarding: Annotated[
        Literal["normal", "similarity", "direct"],
        because("of dynamic requests: as in §4.2; results shared (§5); results sent straight back"),
    ] = "similarity"
    expiry: Annotated[
        float, bounded("s", 0.1, 86_400, "that results may be shared: none is older (§5.2)")
    ] = 100.0
    timeout: Annotated[
        float, bounded("s", 0.01, 3600, "a find ends with what it has: some WAN round trips")
    ] = 5.0
    update_interval: Annotated[
        float, bounded("s", 0, 3600, "between two updates of a resource: the last one counts")
    ] = 0.1

    share_machine: Annotated[
        bool, because("a peer registers its machine: `overlay peer --share-machine` sets it")
    ] = False
    share_every: Annotated[
        float, bounded("s", 0.1, 86_400, "between two readings of the machine's memory and load")
    ] = 5.0

    # -- the courier ----------------------------------------------------------------------------
    resend: Annotated[
        float, bounded("s", 0.01, 60, "until what is not confirmed is sent again; doubles")
    ] = 0.25
    patience: Annotated[
        float, bounded("s", 0.05, 3600, "without a confirmation: then a neighbour is lost")
    ] = 4.0
    max_unconfirmed: Annotated[
        int, bounded("messages", 16, 1_000_000, "kept for a neighbour; if more, it is lost")
    ] = 10_000

    # -- bounds ---------------------------------------------------------------------------------
    max_resources: Annotated[int, bounded("resources", 1, 1_000_000, "of this node")] = 10_000
    max_item: Annotated[
        int, bounded("bytes", 64, 24_000, "of one resource's values: several fit into a message")
    ] = 8_000
    max_requests: Annotated[
        int, bounded("requests", 16, 1_000_000, "of others and own ones that a broker remembers")
    ] = 20_000
    max_finds: Annotated[int, bounded("finds", 1, 100_000, "of this node, open at once")] = 1_000
    max_results: Annotated[
        int, bounded("resources", 1, 1_000_000, "of one find; further ones are dropped and counted")
    ] = 100_000
    max_watches: Annotated[int, bounded("finds", 1, 100_000, "of this node that go on")] = 1_000

    def check(self) -> None:
        """A neighbour is asked twice at least before it counts as lost."""
        if self.patience < 2 * self.resend:
            raise ConfigError(
                f"resources.patience = {self.patience:g} is too short for"
                f" resend = {self.resend:g}: give at least twice as much"
            )
