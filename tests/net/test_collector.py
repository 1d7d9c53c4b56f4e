"""The collector: every file of every peer once, whatever is killed."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodes.collector import INCOMING, Collector
from nodes.subscribing import Message
from nodes.trace_files import Kept, Piece, inode_of, measured
from nodes.trace_shipping import _encode
from overlay.traces.config import TraceSettings
from overlay.traces.writer import TraceWriter
from tests.net.processes import OVERLAY, RunningPeer, environment, peer
from tests.net.test_traces import until
from tests.unit.traces.rows import delivery, read_folder, rows_of

RECORDING = (
    *("--insecure", "--zone", "lab", "--trace", "all", "--set", "traces.ship=true"),
    *("--set", "traces.flush_every=0.1", "--set", "traces.rotate_every=1"),
)


@contextmanager
def collector(runtime: Path, folder: Path, seed: str) -> Iterator[RunningPeer]:
    """Run `overlay collector`."""
    process = subprocess.Popen(
        [
            *(*OVERLAY, "collector", "--profile", "local", "--name", "col", "--zone", "lab"),
            *("--insecure", "--json", "--dir", str(folder), "--seed", seed),
        ],
        env=environment(runtime),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield RunningPeer(process)
    finally:
        process.kill()
        process.communicate(timeout=60)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("run=*/hour=*/*.parquet"))


def has_files(folder: Path, of: str, count: int) -> bool:
    return sum(name.endswith(f"-{of}.parquet") for name in names(folder)) >= count


def test_a_killed_collector_resumes_and_no_row_is_lost_or_doubled(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    runtime, into = tmp_path_factory.mktemp("r"), tmp_path / "collected"
    homes = {name: tmp_path / name for name in ("ada", "bob")}
    ada_words = (*RECORDING, "--name", "ada", "--trace-dir", str(homes["ada"]))
    with peer(runtime, *ada_words) as ada:
        bob_words = (*RECORDING, "--name", "bob", "--trace-dir", str(homes["bob"]))
        with peer(runtime, *bob_words, "--seed", ada.address) as bob:
            with collector(runtime, into, ada.address) as first:
                until("a file of each", lambda: all(has_files(into, name, 1) for name in homes))
                first.signal(signal.SIGKILL)
                first.ended()
            before = len(names(into))
            with collector(runtime, into, ada.address):
                until(
                    "more files of each",
                    lambda: all(has_files(into, name, before + 1) for name in homes),
                )
                for one in (ada, bob):
                    one.signal(signal.SIGTERM)
                    assert one.ended()[0] == 0
    told = dict.fromkeys(homes, 0)
    for row in sorted(read_folder(into), key=lambda row: (row["node"], row["row"])):
        assert row["row"] == told[row["node"]] + 1, "a row is lost, or there twice"
        told[row["node"]] += 1
    for name, home in homes.items():  # who hands a file over keeps it until it is kept elsewhere
        mine = [row["row"] for row in read_folder(home)]
        assert set(range(1, max(mine) + 1)) == {*range(1, told[name] + 1), *mine}


# -- one piece after the other --------------------------------------------------------------------


@pytest.fixture
def keeper(tmp_path: Path) -> Collector:
    return Collector.join(folder=tmp_path / "kept", name="col", insecure=True, control=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    out = TraceWriter(tmp_path / "ada", TraceSettings(), run="lab", recorder="ada", life=5)
    out.write(rows_of([delivery(first) for first in range(1, 200)]))
    path = out.rotate()
    assert path is not None
    return path


def pieces(path: Path, step: int = 1000) -> list[Piece]:
    data, (size, digest) = path.read_bytes(), measured(path)
    place = "/".join(path.parts[-3:])
    return [Piece(place, size, digest, at, data[at : at + step]) for at in range(0, size, step)]


def take(keeper: Collector, *told: Piece, node: str = "ada") -> list[Kept | None]:
    return [keeper._take(Message("t", node, 1, 0.0, _encode(piece))) for piece in told]


def test_a_whole_file_is_kept_and_told_once_it_is_on_disk(keeper: Collector, file: Path) -> None:
    answers = take(keeper, *pieces(file))
    kept = keeper.folder / "/".join(file.parts[-3:])
    assert answers[:-1] == [None] * (len(answers) - 1)
    assert answers[-1] == Kept("ada", "/".join(file.parts[-3:]), inode_of(kept))
    assert kept.read_bytes() == file.read_bytes()
    assert not list((keeper.folder / INCOMING).iterdir())


def test_a_second_copy_is_answered_and_not_kept(keeper: Collector, file: Path) -> None:
    first, second = take(keeper, *pieces(file)), take(keeper, *pieces(file))
    assert first[-1] == second[-1] is not None
    assert (keeper.counts["files"], keeper.counts["repeated"]) == (1, 1)


def test_what_began_before_a_crash_is_not_kept_half(keeper: Collector, file: Path) -> None:
    _, *rest = pieces(file)
    assert take(keeper, *rest) == [None] * len(rest)
    assert keeper.counts["out of place"] == len(rest)
    assert take(keeper, *pieces(file))[-1] is not None


@pytest.mark.parametrize("fault", ["content", "sender", "no parquet", "name"])
def test_what_is_not_a_file_of_its_sender_is_refused(
    keeper: Collector, file: Path, fault: str
) -> None:
    told = pieces(file)
    if fault == "content":
        told[0] = Piece(told[0].place, told[0].size, told[0].digest, 0, b"x" * len(told[0].data))
    elif fault == "no parquet":
        file.write_bytes(b"no parquet")
        told = pieces(file)
    elif fault == "name":
        place = told[0].place.replace("-000000-", "-000007-")
        told = [Piece(place, one.size, one.digest, one.at, one.data) for one in told]
    answer = take(keeper, *told, node="eve" if fault == "sender" else "ada")[-1]
    assert answer is not None
    assert answer.refused
    assert names(keeper.folder) == []


@pytest.mark.parametrize(
    "place", ["../../etc/passwd", "run=lab/hour=2026-11-18T09/../x.parquet", "/etc/passwd", ""]
)
def test_no_place_outside_of_the_folder_is_taken(keeper: Collector, place: str) -> None:
    piece = _encode(Piece(place, 1, bytes(16), 0, b"x"))
    assert keeper._take(Message("t", "ada", 1, 0.0, piece)) is None
    assert keeper._take(Message("t", "ada", 1, 0.0, json.dumps({}).encode())) is None
    assert keeper._take(Message("t", "ada", 1, 0.0, {"a": 1})) is None
    assert keeper.counts["malformed"] == 3
