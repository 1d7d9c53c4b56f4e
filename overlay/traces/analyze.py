"""From a folder of traces to a report: everything that `overlay analyze` does."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from overlay.traces.analysis import STATE, Analysis, Tell, chosen_jobs, write_tables
from overlay.traces.reading import trace_files
from overlay.traces.report import write_report
from overlay.traces.session import LOCAL, MEMORY, open_session
from overlay.traces.spool import recover


def analyse(
    traces: Path,
    out: Path,
    *,
    master: str = LOCAL,
    jobs: Sequence[str] = (),
    memory: str = MEMORY,
    fresh: bool = False,
    tell: Tell = lambda doing, step, steps: None,
) -> dict[str, Any]:
    """Analyse; what was read and written, for JSON. ConfigError says what is wrong."""
    began = monotonic()
    chosen = chosen_jobs(jobs)
    trace_files(traces)  # a wrong folder is told before Spark takes its seconds
    with suppress(OSError):  # a folder that is only to be read has what it has
        recover(traces)  # what nodes that were killed had not finished
    if fresh:
        shutil.rmtree(out / STATE, ignore_errors=True)
    with open_session(master, memory=memory) as spark:
        analysis = Analysis(spark, traces, out, chosen, tell)
        analysis.take_new_files()
        tables = write_tables(out, analysis.tables())
        version = str(spark.version)
    summary = analysis.summary()
    meanings = {table.name: table.meaning for job in chosen for table in job.tables}
    seconds = monotonic() - began
    facts = {"Spark": version, "master": master, "batches": analysis.batches}
    facts["seconds"] = f"{seconds:.0f}"
    report = write_report(out, tables, meanings, summary, facts)
    return {
        "report": str(report.resolve()),
        "files": summary.files,
        "rows": summary.rows,
        "bytes": summary.bytes,
        "batches": analysis.batches,
        "skipped": [[one.file, one.reason] for one in summary.skipped],
        "tables": [[name, rows.num_rows, meanings[name]] for name, rows in tables.items()],
        "seconds": seconds,
    }
