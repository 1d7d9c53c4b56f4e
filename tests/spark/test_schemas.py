"""Each job is a function from rows to a table with the columns that it declares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from overlay.traces import open_run
from overlay.traces.jobs import JOBS, Table
from overlay.traces.jobs.histogram import bin_of
from overlay.traces.reading import Source, read
from tests.spark.conftest import Analysed

TABLES = [(name, table) for name, job in JOBS.items() for table in job.tables]
WANTED = {
    *("delivery", "latency", "membership", "traffic", "paths", "dht", "discovery", "anomalies"),
    "resources",
    "colony",
    "mobility",
}


def test_all_jobs_are_there() -> None:
    assert set(JOBS) >= WANTED
    assert all(job.tables[0].name == name for name, job in JOBS.items())
    names = [table.name for _, table in TABLES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("name", "table"), TABLES, ids=[table.name for _, table in TABLES])
def test_the_columns_are_as_declared(spark: Any, name: str, table: Table) -> None:
    rows = read(spark, Source(Path("/")))
    found = JOBS[name](rows, table.name).schema
    declared = StructType.fromDDL(table.schema)
    assert [(one.name, one.dataType) for one in found] == [
        (one.name, one.dataType) for one in declared
    ]
    assert all(table.meaning for _, table in TABLES)


def test_a_notebook_gets_what_the_report_has(spark: Any, analysed: Analysed) -> None:
    with open_run(analysed.traces, spark=spark) as run:
        frame = run.latency().toPandas()
        assert run.rows.count() == analysed.answers.rows
        with pytest.raises(LookupError, match="there is no table latencies; there are nodes, "):
            run.table("latencies")
    wanted = analysed.rows("latency")
    assert frame.to_dict("records") == wanted
    assert spark.range(3).count() == 3, "a session that was lent is not closed"


def test_bins_keep_eleven_bits_and_the_sign(spark: Any) -> None:
    values = [0, 1, 2047, 2048, 4095, 4097, 1_000_001, 2**40 + 12_345, -1, -4097]
    frame = spark.createDataFrame([(value,) for value in values], "v bigint")
    for value, low in frame.select("v", bin_of("v")).collect():
        size = abs(value)
        width = 1 << max(size.bit_length() - 12, 0)
        assert abs(low) == size // width * width
        assert (low < 0) == (value < 0)


def test_what_has_no_mean_ends_no_job(spark: Any) -> None:
    """Nodes that hold no key at all once ended the whole analysis: a division by zero."""
    ((ratio,),) = spark.sql("select 0 / avg(keys) from values (0), (0) as held(keys)").collect()
    assert ratio is None
