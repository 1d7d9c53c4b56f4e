"""The settings of content-based routing: section `[content]` of a config file."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from overlay.config import Settings, because, bounded, sized
from overlay.errors import ConfigError
from overlay.ids import NodeId

Names: TypeAlias = tuple[NodeId, ...]


class ContentSettings(Settings, frozen=True, kw_only=True):
    """Who is linked to whom, how soon silence is noticed, and every bound."""

    role: Annotated[
        Literal["broker", "client"],
        because("a broker routes for others; a client has one broker: `overlay broker` sets it"),
    ] = "client"
    links: Annotated[Names, sized(0, 64, "the brokers that a broker greets as neighbours")] = ()
    zone_links: Annotated[
        bool, because("a broker greets whom its zone's topology links it to, for brokers of a zone")
    ] = False
    broker: Annotated[str, sized(0, 64, "the broker of a client; empty: none yet")] = ""

    # -- time -----------------------------------------------------------------------------------
    beat: Annotated[
        float, bounded("s", 0.01, 3600, "between two greetings of a neighbour: a sign of life")
    ] = 1.0
    lease: Annotated[
        float, bounded("s", 0.03, 86_400, "a neighbour's silence that ends its link: some beats")
    ] = 5.0
    client_lease: Annotated[
        float,
        bounded("s", 0.03, 86_400, "a client's silence after which what it left is withdrawn"),
    ] = 15.0
    patience: Annotated[
        float, bounded("s", 0.01, 3600, "for a word on a link that broke: long against a redial")
    ] = 2.0
    settle: Annotated[
        float,
        bounded("s", 0, 60, "a publication by a new way waits for those under way on the old one"),
    ] = 0.25

    # -- bounds ---------------------------------------------------------------------------------
    max_links: Annotated[int, bounded("brokers", 1, 4096, "neighbours: each has a ledger")] = 64
    max_clients: Annotated[int, bounded("clients", 0, 100_000, "of one broker")] = 4096
    client_advertisements: Annotated[
        int, bounded("advertisements", 1, 1_000_000, "of one client, and of this node itself")
    ] = 10_000
    client_subscriptions: Annotated[
        int, bounded("subscriptions", 1, 1_000_000, "of one client, and of this node itself")
    ] = 10_000
    max_advertisements: Annotated[
        int, bounded("lines", 1, 10_000_000, "that one neighbour may tell: a row of the SRT each")
    ] = 200_000
    max_subscriptions: Annotated[
        int, bounded("lines", 1, 10_000_000, "that one neighbour may tell: a row of the PRT each")
    ] = 200_000
    client_changes: Annotated[
        float,
        bounded("lines/s", 1, 1_000_000, "that one client may change: each may cost every broker"),
    ] = 1000.0
    client_burst: Annotated[
        float, bounded("lines", 1, 10_000_000, "that a client may change at once")
    ] = 20_000.0
    max_streams: Annotated[
        int, bounded("publishers", 16, 10_000_000, "whose last sequence number is remembered")
    ] = 100_000
    max_held: Annotated[
        int, bounded("publications", 1, 1_000_000, "that wait for others at the same time")
    ] = 10_000
    page_bytes: Annotated[
        int, bounded("bytes", 1024, 1 << 20, "of lines in one message of a ledger")
    ] = 64 * 1024

    def check(self) -> None:
        """Silence is longer than the pause between two words."""
        if self.lease < 2 * self.beat or self.client_lease < 2 * self.beat:
            raise ConfigError(
                f"lease = {self.lease:g} and client_lease = {self.client_lease:g} are too short for"
                f" beat = {self.beat:g}: give at least two beats"
            )
