"""Runs one target under atheris: `python tests/fuzz/fuzz_frames.py -max_total_time=60`.

What a target found stays in `runs/fuzz/<name>/`: its corpus, which the next run goes on with, and
the inputs that broke something.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import atheris

RUNS = Path(__file__).parents[2] / "runs" / "fuzz"
LONGEST = 2048  # bytes: what is longer takes longer, and reaches nothing else


def fuzz(name: str, target: Callable[[bytes], None], seeds: Iterable[bytes]) -> None:
    """Feed the target until the time is over; options of libFuzzer come from the command line."""
    corpus = RUNS / name / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for n, seed in enumerate(seeds):
        (corpus / f"seed-{n}").write_bytes(seed)
    where = f"-artifact_prefix={RUNS / name}/"
    options = [where, f"-max_len={LONGEST}", "-timeout=10", "-rss_limit_mb=1024"]
    atheris.Setup([sys.argv[0], *options, *sys.argv[1:], str(corpus)], target)
    atheris.Fuzz()


def chunks(data: bytes) -> list[bytes]:
    """Cut the input up: each chunk has its length before it, in two bytes."""
    found, at = [], 0
    while at + 2 <= len(data):
        end = at + 2 + int.from_bytes(data[at : at + 2], "big") % (LONGEST + 1)
        found.append(data[at + 2 : end])
        at = end
    return found


def joined(*parts: bytes) -> bytes:
    """The input that `chunks` cuts up like this."""
    return b"".join(len(part).to_bytes(2, "big") + part for part in parts)
