"""A spool is readable however it ends, and becomes the same Parquet file however often."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from overlay.traces.columns import record_batch
from overlay.traces.config import TraceSettings
from overlay.traces.schema import NAMES, VERSION, FileFacts, file_facts
from overlay.traces.spool import SPOOLS, Spool, partition, recover, to_parquet
from overlay.traces.writer import DiskIsFull, TraceWriter, earlier_files
from overlay.tracing import Trace
from overlay.tracing.kinds import ROWS_DROPPED
from tests.unit.traces.rows import START, delivery, read_folder, read_parquet, rows_of

FACTS = FileFacts(VERSION, "lab", "ada", 5, 0)


def spooled(folder: Path, batches: int, rows: int = 3) -> Path:
    """A spool of a recorder that died."""
    spool = Spool(folder, FACTS)
    for batch in range(batches):
        first = 1 + batch * rows
        spool.write(record_batch(rows_of([delivery(first + index) for index in range(rows)])))
    spool.release()
    return spool.path


def firsts(folder: Path) -> list[int]:
    return [row["first"] for row in read_folder(folder)]


def test_what_a_crash_left_is_turned_into_parquet(tmp_path: Path) -> None:
    spooled(tmp_path, 2)
    (path,) = recover(tmp_path)
    assert path.relative_to(tmp_path).parent == Path("run=lab/hour=2026-11-18T09")
    assert firsts(tmp_path) == [1, 2, 3, 4, 5, 6]
    assert list((tmp_path / SPOOLS).iterdir()) == []
    schema = parquet.read_schema(path)
    assert tuple(schema.names) == NAMES
    facts = file_facts(schema)
    assert facts is not None
    assert (facts.rows, facts.recorder, facts.number) == (6, "ada", 0)


def test_a_spool_that_ends_anywhere_keeps_its_whole_batches(tmp_path: Path) -> None:
    whole = spooled(tmp_path, 3).read_bytes()
    two = len(spooled(tmp_path / "two", 2).read_bytes())
    one = len(spooled(tmp_path / "one", 1).read_bytes())
    for index, length in enumerate({0, 1, 100, one - 1, one, one + 1, two - 1, two, len(whole)}):
        folder = tmp_path / f"cut-{index}"
        (folder / SPOOLS).mkdir(parents=True)
        (folder / SPOOLS / "0000000000000005-000000-ada.arrows").write_bytes(whole[:length])
        recover(folder)
        batches = (length >= one) + (length >= two) + (length == len(whole))
        assert firsts(folder) == list(range(1, 1 + 3 * batches)), length


def test_recovering_twice_makes_one_file(tmp_path: Path) -> None:
    path = spooled(tmp_path, 2)
    content = path.read_bytes()
    recover(tmp_path)
    path.write_bytes(content)  # it died between the rename and the removal
    recover(tmp_path)
    assert firsts(tmp_path) == [1, 2, 3, 4, 5, 6]


def test_a_spool_that_is_being_written_is_let_be(tmp_path: Path) -> None:
    spool = Spool(tmp_path, FACTS)
    spool.write(record_batch(rows_of([delivery(1)])))
    assert recover(tmp_path) == []
    spool.close()
    assert spool.finish(tmp_path) is not None


def test_a_foreign_file_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / SPOOLS).mkdir()
    foreign = tmp_path / SPOOLS / "notes.arrows"
    foreign.write_bytes(b"shopping list")
    assert recover(tmp_path) == []
    assert foreign.with_suffix(".unreadable").read_bytes() == b"shopping list"


def test_dropped_rows_are_in_the_facts_of_the_file(tmp_path: Path) -> None:
    spool = Spool(tmp_path, FACTS)
    spool.write(record_batch(rows_of([delivery(1), Trace(ROWS_DROPPED, count=40)])))
    spool.write(record_batch(rows_of([Trace(ROWS_DROPPED, count=2)])))
    spool.close()
    path = spool.finish(tmp_path)
    assert path is not None
    facts = file_facts(parquet.read_schema(path))
    assert facts is not None
    assert facts.dropped == 42


@pytest.mark.parametrize(
    ("seconds", "hour"),
    [
        (0, "1970-01-01T00"),
        (START, "2026-11-18T09"),
        (-5e9, "1970-01-01T00"),
        (1e15, "9999-12-31T23"),
    ],
)
def test_a_clock_that_jumped_still_has_an_hour(seconds: float, hour: str) -> None:
    assert partition("lab", round(seconds * 1e6)) == Path(f"run=lab/hour={hour}")


def writer(folder: Path, settings: TraceSettings | None = None) -> TraceWriter:
    return TraceWriter(folder, settings or TraceSettings(), run="lab", recorder="ada", life=5)


def test_each_hour_has_its_own_files_also_after_a_clock_jumped_back(tmp_path: Path) -> None:
    out = writer(tmp_path)
    for at in (START, START + 3600, START + 3601, START - 7200):
        out.write(rows_of([delivery(1)], at))
    out.rotate()
    hours = [path.parent.name for path in out.files]
    assert hours == ["hour=2026-11-18T09", "hour=2026-11-18T10", "hour=2026-11-18T07"]
    assert [len(read_parquet(path)) for path in out.files] == [1, 2, 1]


def test_a_file_is_due_by_its_rows(tmp_path: Path) -> None:
    out = writer(tmp_path, TraceSettings(rotate_rows=1000))
    due = []
    for count in (999, 1):
        out.write(rows_of([delivery(1)] * count))
        due.append(out.is_due)
    assert due == [False, True]
    out.abandon()


def test_the_oldest_files_make_room(tmp_path: Path) -> None:
    out = writer(tmp_path, TraceSettings(disk_bytes=1 << 20))
    for number in range(4):
        out.write(rows_of([delivery(1)]))
        path = out.rotate()
        assert path is not None
        with path.open("ab") as file:
            file.truncate((400 << 10) - number)
        out.files.pop(path)
        out.add(path)
    assert out.removed == 2
    assert [path.name.split("-")[1] for path in out.files] == ["000002", "000003"]
    assert sorted(tmp_path.glob("run=*/hour=*/*")) == sorted(out.files)


def test_a_disk_that_is_nearly_full_is_left_to_others(tmp_path: Path) -> None:
    out = writer(tmp_path, TraceSettings(least_free=1 << 50))
    with pytest.raises(DiskIsFull):
        out.write(rows_of([delivery(1)]))


def test_files_of_namesakes_are_told_apart(tmp_path: Path) -> None:
    for name in ("a", "b-a"):
        out = TraceWriter(tmp_path, TraceSettings(), run="lab", recorder=name, life=5)
        out.write(rows_of([delivery(1)]))
        out.rotate()
    (found,) = earlier_files(tmp_path, "lab", "a")
    assert found.name.endswith("000000-a.parquet")


def test_an_empty_spool_makes_no_file(tmp_path: Path) -> None:
    spool = Spool(tmp_path, FACTS)
    spool.close()
    assert to_parquet(spool.path, tmp_path) is None
    assert not spool.path.exists()
    spool.release()
