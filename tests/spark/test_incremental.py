"""A folder that grew costs only its new files, and each row counts exactly once, come what may."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from overlay.errors import ConfigError
from overlay.traces.analysis import STATE, Analysis, chosen_jobs, write_tables
from tests.spark.conftest import Analysed

JOBS = ("delivery", "latency", "traffic")


def grow(folder: Path, files: list[str]) -> None:
    for name in files:
        place = folder / Path(*Path(name).parts[-3:])
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(name, place)


def analyse(spark: Any, traces: Path, out: Path) -> Analysis:
    analysis = Analysis(spark, traces, out, chosen_jobs(JOBS))
    analysis.take_new_files()
    write_tables(out, analysis.tables())
    return analysis


def same_tables(analysed: Analysed, out: Path) -> None:
    names = [table.name for job in chosen_jobs(JOBS) for table in job.tables]
    for name in names:
        found = pq.read_table(out / "tables" / f"{name}.parquet").to_pylist()
        wanted = analysed.rows(name)
        assert len(found) == len(wanted), name
        for one, other in zip(found, wanted, strict=True):
            numbers = {key for key, value in other.items() if isinstance(value, float)}
            for key, value in other.items():
                close = pytest.approx(value, rel=1e-9) if key in numbers else value
                assert one[key] == close, (name, one, other)


@pytest.fixture
def files(analysed: Analysed) -> list[str]:
    return analysed.answers.files


def test_growth_replays_and_copies(
    spark: Any, analysed: Analysed, files: list[str], tmp_path: Path
) -> None:
    traces, out = tmp_path / "traces", tmp_path / "out"
    grow(traces, files[::2])
    analyse(spark, traces, out)
    grow(traces, files[1::2])
    copy = traces / "copies" / Path(files[0]).name
    copy.parent.mkdir()
    shutil.copyfile(files[0], copy)  # somebody copied a file that was read before
    second = analyse(spark, traces, out)
    assert second.batches == 2
    same_tables(analysed, out)
    (left,) = second.summary().skipped
    assert (left.file, left.reason) == (
        f"copies/{copy.name}",
        "a copy of a file that was read before",
    )

    # Killed after the digests were written, before Spark had noted the batch as done.
    (commit,) = [
        path for path in (out / STATE / "checkpoint" / "commits").iterdir() if path.name == "1"
    ]
    commit.unlink()
    commit.with_name(".1.crc").unlink(missing_ok=True)
    third = analyse(spark, traces, out)
    assert third.batches == 2
    same_tables(analysed, out)

    # Nothing new: nothing is read.
    steps: list[str] = []
    idle = Analysis(
        spark, traces, out, chosen_jobs(JOBS), lambda doing, step, steps_: steps.append(doing)
    )
    idle.take_new_files()
    assert steps == ["looking at the files"]

    # Other jobs need other digests: everything is read again, and still once.
    other = Analysis(spark, traces, out, chosen_jobs(["dht"]))
    other.take_new_files()
    assert other.summary().rows == analysed.answers.rows


def test_an_empty_folder_says_so(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    with pytest.raises(ConfigError, match=r"no traces in .*: there is no Parquet file below it"):
        Analysis(spark, tmp_path / "traces", tmp_path / "out", chosen_jobs(())).take_new_files()
    with pytest.raises(ConfigError, match="there is no folder"):
        Analysis(spark, tmp_path / "other", tmp_path / "out", chosen_jobs(())).take_new_files()


def test_a_wrong_job_says_which_is_near() -> None:
    with pytest.raises(ConfigError, match=r"there is no job latencey: did you mean latency\?"):
        chosen_jobs(["latencey"])
