"""Level messages over real sockets: what one end tells as sent the other tells as received."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import trio

from nodes.peer import Peer
from tests.unit.traces.rows import read_folder

LARGE = 3 << 20  # goes in pieces


async def talk(folder: Path) -> None:
    """Publish messages of all sizes from one peer to another, both of which record."""
    sets = [
        *("traces.level=messages", f"traces.folder={folder}", "beacon.enabled=false"),
        "limits.frame_bytes=1048576",
    ]
    alone = {"insecure": True, "control": False, "profile": "local"}
    common: dict[str, Any] = {"zone": "lab", "sets": sets, **alone}
    with trio.fail_after(60):
        async with Peer.join(name="ada", **common) as ada:
            seeds = [ada.node.endpoints[0]]
            async with Peer.join(name="bob", seeds=seeds, **common) as bob:
                await bob.joined(count=2)
                async with bob.subscribe("news") as news, ada.publisher("news") as out:
                    await out.wait_for_subscribers()
                    for size in (10, 1000, 100_000, LARGE):
                        await out.publish(bytes(size))
                        async for message in news:
                            assert len(message.data) == size
                            break
                    await out.flush()


def test_both_ends_count_the_same(tmp_path: Path) -> None:
    trio.run(talk, tmp_path)
    rows = read_folder(tmp_path)
    counts = Counter[tuple[str, ...]]()
    sizes = Counter[tuple[str, str]]()
    for row in rows:
        if row["protocol"] != "topics" or row["kind"] not in ("sent", "received"):
            continue
        ends = (row["node"], row["peer"])
        ends = ends if row["kind"] == "sent" else ends[::-1]
        counts[row["kind"], *ends, row["message"]] += row["count"]
        sizes[row["kind"], row["message"]] += row["bytes"]
    told = {link[1:] for link in counts}
    assert ("ada", "bob", "Data") in told
    assert ("bob", "ada", "Ack") in told
    # A last word may be sent as its reader stops: so all but the very last arrive.
    for link in told:
        assert 0 <= counts["sent", *link] - counts["received", *link] <= 1, link
    for kind in ("sent", "received"):
        assert 0.98 < sizes[kind, "Data"] / (LARGE + 101_010) < 1.05
