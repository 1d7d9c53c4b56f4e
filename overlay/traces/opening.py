"""Traces in a notebook: `run.latency().toPandas()`."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from overlay.traces.analysis import chosen_jobs
from overlay.traces.jobs import Digest, Table
from overlay.traces.jobs.nodes import NODES, settle
from overlay.traces.reading import Source, look_at, read
from overlay.traces.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Run:
    """The traces of a folder; each job is a method, and the rows are a DataFrame.

    What jobs share is computed once, and kept until `close`.
    """

    def __init__(self, folder: Path, spark: SparkSession, source: Source, life: ExitStack) -> None:
        self.folder = folder
        self.spark = spark
        self.skipped = source.skipped
        self.rows: DataFrame = read(spark, source)
        self._digests: dict[str, DataFrame] = {}
        self._life = life

    def nodes(self) -> DataFrame:
        """Who took part, from when to when."""
        return self.table("nodes")

    def delivery(self) -> DataFrame:
        """Published against delivered, by subscriber and stream."""
        return self.table("delivery")

    def latency(self) -> DataFrame:
        """One-way percentiles by topic, zones and hops."""
        return self.table("latency")

    def membership(self) -> DataFrame:
        """How soon joins and deaths were noticed."""
        return self.table("membership")

    def traffic(self) -> DataFrame:
        """Messages and bytes of each node."""
        return self.table("traffic")

    def paths(self) -> DataFrame:
        """The slowest deliveries and the way that they went."""
        return self.table("paths")

    def dht(self) -> DataFrame:
        """Operations of the distributed table."""
        return self.table("dht")

    def discovery(self) -> DataFrame:
        """Finding brokers."""
        return self.table("discovery")

    def resources(self) -> DataFrame:
        """Finding resources."""
        return self.table("resources")

    def anomalies(self) -> DataFrame:
        """Nodes and links that are out of line."""
        return self.table("anomalies")

    def table(self, name: str) -> DataFrame:
        """Any table of any job: `run.table("latency_cdf")`."""
        for job in chosen_jobs():
            for table in job.tables:
                if table.name == name:
                    return self._conclude(table, job.needs)
        known = ", ".join(table.name for job in chosen_jobs() for table in job.tables)
        raise LookupError(f"there is no table {name}; there are {known}")

    def _conclude(self, table: Table, needs: tuple[Digest, ...]) -> DataFrame:
        return table.of({digest.name: self._digest(digest) for digest in (NODES, *needs)})

    def _digest(self, digest: Digest) -> DataFrame:
        if digest.name not in self._digests:
            nodes = self.rows if digest is NODES else self._settled
            self._digests[digest.name] = digest.take(self.rows, nodes).persist()
        return self._digests[digest.name]

    @cached_property
    def _settled(self) -> DataFrame:
        return settle(self._digest(NODES))

    def close(self) -> None:
        """Forget what was computed; end the Spark session if it was opened for this run."""
        for frame in self._digests.values():
            frame.unpersist()
        self._digests.clear()
        self._life.close()

    def __enter__(self) -> Self:
        """It may be used in a `with` statement."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()


def open_run(folder: str | Path, *, master: str = "", spark: SparkSession | None = None) -> Run:
    """Open a folder of traces: with `spark`, with a session at `master`, or with what is there."""
    where = Path(folder)
    source = look_at(where)
    with ExitStack() as life:
        session = spark or life.enter_context(open_session(master))
        return Run(where, session, source, life.pop_all())
