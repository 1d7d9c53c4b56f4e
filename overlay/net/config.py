"""Settings of the ZeroMQ driver."""

from __future__ import annotations

from typing import Annotated

from overlay.config import Settings, bounded, sized


class NetSettings(Settings, frozen=True, kw_only=True):
    """Addresses, queues and times of one node's sockets."""

    bind: Annotated[
        tuple[str, ...], sized(1, 8, "where to listen; port 0 takes a free one (tcp:// or ipc://)")
    ] = ("tcp://0.0.0.0:0",)
    advertise: Annotated[
        tuple[str, ...], sized(0, 8, "what peers are told instead of the addresses found here")
    ] = ()
    heartbeat: Annotated[
        float,
        bounded("s", 0.1, 3600, "pause between ZeroMQ pings on a link; three missed break it"),
    ] = 30.0
    unacked_within: Annotated[
        float,
        bounded(
            "s", 0.5, 600, "what the peer's machine does not acknowledge for so long breaks a link"
        ),
    ] = 5.0
    idle_close: Annotated[
        float, bounded("s", 1, 86_400, "a link unused for so long is closed, to free descriptors")
    ] = 60.0
    connect_within: Annotated[
        float, bounded("s", 0.1, 600, "an attempt to open a link that takes longer is given up")
    ] = 5.0
    retry_first: Annotated[
        float, bounded("s", 0.001, 60, "pause before a broken link is opened again, then doubled")
    ] = 0.02
    retry_longest: Annotated[float, bounded("s", 0.01, 3600, "where doubling that pause ends")] = (
        5.0
    )
    give_up: Annotated[
        float, bounded("s", 0.5, 3600, "messages for a peer out of reach wait so long at most")
    ] = 10.0
    link_bytes: Annotated[
        int,
        bounded("bytes", 65_536, 1 << 30, "what may wait in each lane of a link; more is dropped"),
    ] = 72 << 20
    link_frames: Annotated[
        int, bounded("frames", 1, 10_000, "ZeroMQ's high-water mark of one link")
    ] = 16
    bulk_ahead: Annotated[
        int,
        bounded(
            "bytes",
            4096,
            1 << 30,
            "bulk on its way to one peer, which nothing overtakes: at least rate x round trip",
        ),
    ] = 4 << 20
    tick_bytes: Annotated[
        int, bounded("bytes", 4096, 1 << 30, "what one tick takes in before others get their turn")
    ] = 4 << 20
    peer_rate: Annotated[
        float,
        bounded(
            "frames/s",
            0,
            1e9,
            "a peer that sends more frames under 16 KiB is a flood: batching keeps ours far below",
        ),
    ] = 50_000.0
    peers: Annotated[
        int, bounded("peers", 1, 100_000, "links out, and links in, that may be open at once")
    ] = 4096
    flush_gap: Annotated[
        float, bounded("s", 0, 0.1, "calls within this time of a flush share the next one")
    ] = 100e-6
    stop_within: Annotated[
        float, bounded("s", 0.1, 60, "how long a stopping node may take to send what waits")
    ] = 1.0
    keep_freed: Annotated[
        int,
        bounded(
            "bytes",
            0,
            1 << 30,
            "freed memory that the process keeps for the next batch; 0 leaves malloc as it is",
        ),
    ] = 64 << 20
    clock_offset: Annotated[
        float,
        bounded("s", -1e9, 1e9, "added to the node's clock: so tests give nodes wrong clocks"),
    ] = 0.0
    multicast_hops: Annotated[
        int, bounded("hops", 0, 255, "how many routers a multicast datagram may cross")
    ] = 1
