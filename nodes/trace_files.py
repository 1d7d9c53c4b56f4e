"""What travels between peers that hand over their traces and the collector that keeps them.

A file goes in pieces over an ack-mode topic, whole files in order. The collector answers, over
another topic, once a file is on its disk: only then does a peer let go of it. A file is the same
as another exactly when its name is, so a second copy is answered and not kept.
"""

from __future__ import annotations

import os
import re
from hashlib import blake2b
from pathlib import Path
from typing import Annotated

import msgspec

FILES = "overlay/traces/files"  # a Piece each
KEPT = "overlay/traces/kept"  # a Kept each
PIECE_BYTES = 100_000  # with its head within one chunk of a topic
LARGEST = 1 << 32  # bytes of one file

PLACE = re.compile(
    r"run=[A-Za-z][A-Za-z0-9._-]{0,99}/hour=[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}/"
    r"[0-9a-f]{16}-[0-9]{6}-[A-Za-z0-9._-]{1,120}\.parquet"
)
"""Where a file may lie in a folder of traces, and nowhere else."""

Place = Annotated[str, msgspec.Meta(max_length=400, pattern=f"^{PLACE.pattern}$")]
Digest = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
Size = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """A part of a file: the first one has `at` = 0, the last one ends at `size`."""

    place: Place
    size: Size
    digest: Digest
    at: Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
    data: Annotated[bytes, msgspec.Meta(min_length=1, max_length=1 << 20)]


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """A collector has this file of `node` on its disk, or says why it will never take it."""

    node: str
    place: Place
    inode: str = ""  # which file it is, on which machine: somebody's own must not be removed
    refused: str = ""


def measured(path: Path) -> tuple[int, bytes]:
    """Bytes of a file, and what tells whether it arrived as it left."""
    size, found = 0, blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            size += len(block)
            found.update(block)
    return size, found.digest()


def inode_of(path: Path) -> str:
    """Which file this is, among all files of all machines."""
    try:
        machine = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        machine = os.uname().nodename
    found = path.stat()
    return f"{machine}/{found.st_dev}/{found.st_ino}"
