"""`overlay lab traces`: fetch the finished trace files of all hosts, each once."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import trio

from nodes.lab.failures import HostFailure
from nodes.lab.fleet import connected
from nodes.lab.inventory import Inventory
from nodes.lab.outcome import Outcome
from nodes.lab.progress import Progress
from nodes.lab.remote import Remote

PORTION = 64 << 20  # bytes fetched at a time: held in memory here
FETCH_SECONDS = 600.0


async def gather(inventory: Inventory, tell: Progress, out: Path) -> tuple[Outcome, dict[str, Any]]:
    """Have all trace files of the lab below `out`; how many came, and how many were here."""
    outcome = Outcome(lab=inventory.name)
    counts = {"files": 0, "bytes": 0, "here": 0}
    async with connected(inventory, inventory.hosts, tell) as fleet:
        tell.step("peers finish their trace files")
        lists = await fleet.each("finishing", lambda remote: remote.call("traces"))
        tell.step("fetching traces")

        async def fetch(remote: Remote) -> None:
            wanted = [one for one in lists[remote.name] if not (out / one["path"]).exists()]
            counts["here"] += len(lists[remote.name]) - len(wanted)
            while wanted:
                portion: list[str] = []
                size = 0
                while wanted and (not portion or size + wanted[0]["bytes"] <= PORTION):
                    one = wanted.pop(0)
                    portion.append(one["path"])
                    size += one["bytes"]
                tell.host(remote.name, f"fetching {size / 1e6:.1f} MB")
                data = await remote.fetch("pack-traces", paths=portion, within=FETCH_SECONDS)
                # Not `+= await`: hosts are fetched at the same time, and would lose counts.
                written = await trio.to_thread.run_sync(_unpack, data, out, remote.name)
                counts["files"] += written
                counts["bytes"] += size

        await fleet.each("fetching", fetch, [fleet.remotes[name] for name in lists])
        outcome.take(fleet)
    return outcome, counts


def _unpack(data: bytes, out: Path, host: str) -> int:
    """Write files whole or not at all; names of a host may not lead out of the folder."""
    count = 0
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for entry in archive:
            place = out / entry.name
            if not entry.isfile() or not place.resolve().is_relative_to(out.resolve()):
                raise HostFailure(f"sends a file {entry.name!r}", "look at its traces")
            content = archive.extractfile(entry)
            assert content is not None
            place.parent.mkdir(parents=True, exist_ok=True)
            temporary = place.with_name(f".{place.name}.{host}")
            temporary.write_bytes(content.read())
            temporary.replace(place)
            count += 1
    return count
