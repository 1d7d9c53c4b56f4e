"""The settings of echo, section `[echo]`."""

from typing import Annotated

import msgspec

from overlay.ids import NodeId


class EchoConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How patient echo is, how much it keeps open, and whom it asks by itself."""

    # Long against a round trip on a LAN (1 ms) and against a busy peer's pause (100 ms).
    timeout: Annotated[float, msgspec.Meta(ge=0.001, le=3600.0)] = 1.0
    # A link drops what is queued when it breaks; the second try goes over a fresh one.
    retries: Annotated[int, msgspec.Meta(ge=0, le=100)] = 2
    # Bounds the memory for kept payloads.
    max_open: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1024
    # Peers that are asked by themselves, so that a node shows signs of life without an application.
    regular: tuple[NodeId, ...] = ()
    # The pause between two regular rounds.
    every: Annotated[float, msgspec.Meta(ge=0.01, le=86_400.0)] = 1.0
