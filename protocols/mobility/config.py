"""The settings of moving clients: section `[mobility]` of a config file."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from overlay.config import because, bounded, sized
from overlay.ids import NodeId
from protocols.mobility.keeping_config import KeepingSettings

Names: TypeAlias = tuple[NodeId, ...]


class MobilitySettings(KeepingSettings, frozen=True, kw_only=True):
    """How a publisher moves, how long brokers keep what it left, and what they keep for others."""

    algorithm: Annotated[
        Literal["standard", "prefetching", "proxy", "delayed", "prefetching+delayed"],
        because("of this client; delayed costs least without knowing anything in advance"),
    ] = "delayed"
    handover: Annotated[
        Literal["best-effort", "sounded", "lossless"],
        because("of this client: publish at once, or hold it until the tree stands"),
    ] = "lossless"
    predictor: Annotated[
        Literal["none", "last-direction", "perfect"],
        because("who names the next broker when this client prefetches"),
    ] = "last-direction"
    proxies: Annotated[
        Names, sized(0, 16, "of this client; none: the closest ones to its first broker")
    ] = ()
    proxy_count: Annotated[
        int, bounded("brokers", 0, 16, "chosen when no proxies are named, the first among them")
    ] = 5

    follow_nearest: Annotated[
        bool,
        because("of this client: move to a clearly nearer broker; see discovery.move_share"),
    ] = False
    stay: Annotated[
        float, bounded("s", 0, 86_400, "at a broker before a nearer one is followed: moves cost")
    ] = 10.0

    # -- time -----------------------------------------------------------------------------------
    teardown: Annotated[
        float, bounded("s", 0, 3600, "a broker keeps a tree for a delayed client that moved out")
    ] = 10.0
    expected: Annotated[
        float, bounded("s", 0.1, 3600, "a broker keeps a prefetched tree for who has not come")
    ] = 15.0
    proxy_lease: Annotated[
        float, bounded("s", 1, 86_400, "a proxy keeps a tree unless it is renewed, thrice as often")
    ] = 60.0
    reanchor: Annotated[
        float,
        bounded("s", 0, 86_400, "at one broker, until its tree is built anew from there; 0: never"),
    ] = 0.0
    retry: Annotated[
        float, bounded("s", 0.01, 60, "between two questions to who has not answered")
    ] = 0.5
    patience: Annotated[
        float,
        bounded("s", 0.1, 3600, "for an answer: longer than brokers take to notice a dead one"),
    ] = 10.0

    # -- bounds ---------------------------------------------------------------------------------
    max_held: Annotated[
        int, bounded("publications", 1, 1_000_000, "that a client holds; then publish refuses")
    ] = 10_000
    max_standing: Annotated[
        int, bounded("advertisements", 0, 1_000_000, "that a broker makes for absent clients")
    ] = 10_000
    max_arrivals: Annotated[
        int, bounded("clients", 1, 1_000_000, "that moved in at a broker and are there, or not yet")
    ] = 10_000
    max_waves: Annotated[
        int, bounded("waves", 1, 1_000_000, "of questions that pass a broker at the same time")
    ] = 10_000
