"""The settings of echo: section `[echo]` of a config file."""

from typing import Annotated

from overlay.config import Settings, bounded, sized
from overlay.ids import NodeId


class EchoConfig(Settings, frozen=True, kw_only=True):
    """How patient echo is, how much it keeps open, and whom it asks by itself."""

    timeout: Annotated[
        float,
        bounded("s", 0.001, 3600, "one try: long against a round trip (1 ms) and a busy peer"),
    ] = 1.0
    retries: Annotated[
        int,
        bounded("tries", 0, 100, "further tries: a link that breaks loses what was under way"),
    ] = 2
    max_open: Annotated[
        int,
        bounded("requests", 1, 1_000_000, "open at once: each keeps its payload in memory"),
    ] = 1024
    regular: Annotated[
        tuple[NodeId, ...],
        sized(0, 1024, "peers asked again and again: signs of life without an application"),
    ] = ()
    every: Annotated[
        float,
        bounded("s", 0.01, 86_400, "pause between two rounds of the regular peers"),
    ] = 1.0
