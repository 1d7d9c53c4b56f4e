"""Files that are no traces are left out and named; the others are analysed all the same."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from overlay.traces.analysis import Analysis, chosen_jobs
from overlay.traces.reading import look_at, read
from overlay.traces.schema import VERSION, FileFacts, arrow_schema
from overlay.traces.synthetic import Plan, generate

PLAN = Plan(rows=3_000, nodes=4, topics=2, subscribers=2, zones=1)


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    generate(tmp_path / "traces", PLAN)
    return tmp_path / "traces"


def good_files(traces: Path) -> list[Path]:
    return sorted(traces.rglob("*.parquet"))


def rewritten(source: Path, target: Path, change: Any, **facts: Any) -> None:
    """A file like another, after a change, which says other things about itself."""
    table = change(pq.read_table(source))
    common: dict[str, Any] = {"version": VERSION, "run": "synthetic", "recorder": "x"}
    said = FileFacts(**(common | facts))
    pq.write_table(table.replace_schema_metadata(arrow_schema(said).metadata), target)


def test_what_is_no_trace_is_left_out_and_named(traces: Path) -> None:
    good = good_files(traces)
    folder = good[0].parent
    whole = good[0].read_bytes()
    (folder / "empty.parquet").touch()
    (folder / "truncated.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "noise.parquet").write_bytes(b"PAR1" + bytes(200) + b"PAR1")
    (folder / "text.parquet").write_text("no Parquet at all, but a text of some length")
    pq.write_table(pa.table({"a": [1, 2]}), folder / "foreign.parquet")
    shutil.copyfile(good[1], folder / "z-copy.parquet")
    (folder / "folder.parquet").mkdir()
    rewritten(
        good[0],
        folder / "other-type.parquet",
        lambda table: table.set_column(
            table.schema.get_field_index("bytes"), "bytes", pa.array(["9"] * table.num_rows)
        ),
        life=7,
        number=0,
    )
    rewritten(good[0], folder / "lacks.parquet", lambda t: t.drop(["kind"]), life=8, number=0)
    rewritten(good[0], folder / "none.parquet", lambda t: t.slice(0, 0), life=9, number=0)
    source = look_at(traces)
    assert source.files == good
    reasons = {Path(one.file).name: one.reason for one in source.skipped}
    assert reasons["empty.parquet"] == "empty"
    assert reasons["truncated.parquet"].startswith("corrupt or truncated: ")
    assert reasons["noise.parquet"].startswith(("corrupt or truncated: ", "unreadable: "))
    assert reasons["text.parquet"].startswith("corrupt or truncated: ")
    assert reasons["foreign.parquet"] == "foreign: not written by a recorder"
    assert reasons["folder.parquet"].startswith("unreadable: ")
    assert reasons["other-type.parquet"] == "foreign: column bytes is string"
    assert reasons["lacks.parquet"] == "foreign: no column kind"
    assert reasons["none.parquet"] == "no rows"
    below = good[1].relative_to(traces).as_posix()
    assert reasons["z-copy.parquet"] == f"a copy of {below}"
    assert len(reasons) == 10


def test_versions_may_be_mixed(spark: Any, traces: Path) -> None:
    """A later version has more columns, an earlier one fewer: both are read."""
    good = good_files(traces)
    later, earlier = good[0].with_name("later.parquet"), good[0].with_name("earlier.parquet")
    rows = pq.read_metadata(good[0]).num_rows
    rewritten(
        good[0],
        later,
        lambda table: table.append_column("colour", pa.array(["red"] * table.num_rows)),
        version=VERSION + 1,
        life=1,
        number=0,
    )
    rewritten(good[0], earlier, lambda t: t.drop(["value", "key"]), life=2, number=0)
    source = look_at(traces)
    assert source.skipped == []
    assert source.newer == 1
    frame = read(spark, source)
    assert frame.count() == source.rows == sum(map(_rows, good)) + 2 * rows
    assert frame.where("value is null and key is null").count() >= rows


def _rows(path: Path) -> int:
    return int(pq.read_metadata(path).num_rows)


def test_damage_behind_a_good_footer_costs_only_its_file(
    spark: Any, traces: Path, tmp_path: Path
) -> None:
    good = good_files(traces)
    damaged = bytearray(good[2].read_bytes())
    begin = pq.read_metadata(good[2]).row_group(0).column(1).data_page_offset
    damaged[begin : begin + 60] = b"\xff" * 60
    good[2].write_bytes(damaged)
    analysis = Analysis(spark, traces, tmp_path / "out", chosen_jobs(["traffic"]))
    analysis.take_new_files()
    tables = {table.name: rows for table, rows in analysis.tables()}
    (left,) = analysis.summary().skipped
    assert left.file == good[2].relative_to(traces).as_posix()
    assert left.reason == "corrupt: Spark cannot read its rows"
    others = [name for place, name in enumerate(PLAN.names) if place != 2]
    assert sorted(tables["traffic"].column("node").to_pylist()) == others


def test_a_folder_with_any_name_is_read(spark: Any, tmp_path: Path) -> None:
    odd = tmp_path / "my [traces] {a,b} 100%=*"
    generate(odd, PLAN)
    source = look_at(odd)
    assert read(spark, source).count() == source.rows
    # Nor need files lie where a recorder put them: they know their run.
    stray = odd / "copies" / "by hand" / "x.parquet"
    stray.parent.mkdir(parents=True)
    good_files(odd)[0].rename(stray)
    moved = look_at(odd)
    assert moved.rows == source.rows
    assert read(spark, moved).where(f"run = '{PLAN.run}'").count() == source.rows
    analysis = Analysis(spark, odd, tmp_path / "out *", chosen_jobs(["discovery"]))
    analysis.take_new_files()
    assert analysis.summary().rows == source.rows
