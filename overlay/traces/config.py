"""The settings of the traces: section `[traces]` of a config file."""

import re
from typing import Annotated, Literal

from overlay.config import Settings, because, bounded, sized
from overlay.errors import ConfigError

LevelName = Literal["off", "delivery", "messages", "all"]

RUN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,99}")


class TraceSettings(Settings, frozen=True, kw_only=True):
    """What is recorded, where, and how much of disk and memory that may take."""

    level: Annotated[
        LevelName, because("how much is recorded from the start; `overlay trace level` changes it")
    ] = "off"
    folder: Annotated[
        str, sized(1, 4096, "where runs lie; several nodes of a machine may share one")
    ] = "traces"
    run: Annotated[
        str, sized(0, 100, "what this run is called in reports; empty: as the overlay")
    ] = ""
    sample: Annotated[
        int,
        bounded(
            "flows", 1, 1_000_000, "of which one is recorded whole: streams, routes; and messages"
        ),
    ] = 1
    buffer_rows: Annotated[
        int,
        bounded(
            "rows", 1_000, 10_000_000, "that wait for the writer; 0.4 kB each, more is dropped"
        ),
    ] = 100_000
    flush_every: Annotated[
        float, bounded("s", 0.05, 60, "between two writes: what a crash may cost")
    ] = 1.0
    rotate_every: Annotated[
        float, bounded("s", 1, 3600, "until rows can be read as Parquet; small files cost readers")
    ] = 60.0
    rotate_rows: Annotated[
        int, bounded("rows", 1_000, 10_000_000, "of one file; its writer holds 0.2 kB of each")
    ] = 250_000
    least_free: Annotated[
        int, bounded("bytes", 0, 1 << 50, "of the disk that tracing leaves to others; then it ends")
    ] = 64 << 20
    disk_bytes: Annotated[
        int,
        bounded("bytes", 1 << 20, 1 << 50, "of one node's files; the oldest are removed, counted"),
    ] = 4 << 30
    ship: Annotated[
        bool, because("hand finished files to `overlay collector`; who has them is told by it")
    ] = False
    ship_rate: Annotated[
        int,
        bounded("bytes/s", 1 << 10, 1 << 40, "of files on their way: the overlay has other work"),
    ] = 4 << 20

    def check(self) -> None:
        """A run is a folder's name, and a word for Spark."""
        if self.run:
            check_run(self.run)


def check_run(name: str) -> str:
    """Return the name if a run may be called so; ConfigError says what would be right."""
    if not RUN_NAME.fullmatch(name):
        raise ConfigError(
            f"traces.run = {name!r}: a letter, then letters, digits, '.', '_' and '-'"
        )
    return name


def run_of(overlay: str) -> str:
    """A name for the run of an overlay: the same on all of its nodes."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", overlay)[:90]
    return plain if RUN_NAME.fullmatch(plain) else f"run-{plain}"
