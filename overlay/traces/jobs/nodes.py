"""Who took part: the lives of nodes, their zones and their clocks. Every other job looks here.

A life ends by `stopped` or `crashed`; a process that was killed leaves neither, so its last row
stands for its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from overlay.traces.jobs.job import Digest, Digests, Job, Table
from overlay.tracing.kinds import CRASHED, ROWS_DROPPED, STARTED, STOPPED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

STEPS = 400  # points in time that a picture of a run has
FINEST = 1_000  # µs
STRAY = 30 * 24 * 3600 * 1_000_000  # µs; a clock that is off by more is left out of pictures


def _digest(rows: DataFrame, _nodes: DataFrame) -> DataFrame:
    def time_of(kind: str) -> Column:
        return F.max(F.when(F.col("kind") == kind, F.col("time")))

    return (
        rows.where(F.col("node").isNotNull())
        .groupBy("run", "node", "life", "zone")
        .agg(
            F.count("*").alias("rows"),
            F.min("time").alias("first_at"),
            F.max("time").alias("last_at"),
            time_of(STARTED.name).alias("started_at"),
            time_of(STOPPED.name).alias("stopped_at"),
            time_of(CRASHED.name).alias("crashed_at"),
            F.sum("clock_error").alias("error_sum"),
            F.count("clock_error").alias("error_rows"),
            F.max("clock_error").alias("error_most"),
            F.min("offset").alias("offset_least"),
            F.max("offset").alias("offset_most"),
            F.sum(F.when(F.col("kind") == ROWS_DROPPED.name, F.col("count"))).alias("dropped"),
        )
    )


NODES = Digest(
    "nodes",
    "run string, node string, life bigint, zone string, rows bigint, first_at bigint,"
    " last_at bigint, started_at bigint, stopped_at bigint, crashed_at bigint, error_sum bigint,"
    " error_rows bigint, error_most bigint, offset_least bigint, offset_most bigint,"
    " dropped bigint",
    _digest,
)


def lives(nodes: DataFrame) -> DataFrame:
    """One row for each life, from the digest: `born` and `died` in µs, and how it `ended`."""
    ended = (
        F.when(F.col("crashed_at").isNotNull(), "crashed")
        .when(F.col("stopped_at").isNotNull(), "stopped")
        .otherwise("silent")
    )
    return (
        nodes.groupBy("run", "node", "life")
        .agg(
            F.max("zone").alias("zone"),
            F.sum("rows").alias("rows"),
            F.coalesce(F.max("started_at"), F.min("first_at")).alias("born"),
            F.coalesce(F.max("crashed_at"), F.max("stopped_at"), F.max("last_at")).alias("died"),
            F.max("stopped_at").alias("stopped_at"),
            F.max("crashed_at").alias("crashed_at"),
            F.sum("error_sum").alias("error_sum"),
            F.sum("error_rows").alias("error_rows"),
            F.max("error_most").alias("error_most"),
            (F.max("offset_most") - F.min("offset_least")).alias("offset_span"),
            F.sum("dropped").alias("dropped"),
        )
        .withColumn("ended", ended)
    )


def settle(nodes: DataFrame) -> DataFrame:
    """What other digests ask of a node: its `zone`, its clock's mean `error`, and the run's grid.

    `origin_at` and `step` (µs) divide the time of the run into at most STEPS points.
    """
    one_each = (
        lives(nodes)
        .groupBy("run", "node")
        .agg(
            F.max_by("zone", "life").alias("zone"),
            (F.sum("error_sum") / F.sum("error_rows")).alias("error"),
        )
    )
    return one_each.join(F.broadcast(grid(nodes)), "run")


def grid(nodes: DataFrame) -> DataFrame:
    """`origin_at` and `step` for each run."""
    whole = lives(nodes)
    middle = whole.withColumn(
        "middle", F.percentile_approx("born", 0.5, 10_000).over(Window.partitionBy("run"))
    )
    near = middle.where(F.abs(F.col("born") - F.col("middle")) < STRAY)
    spans = near.groupBy("run").agg(
        F.min("born").alias("origin_at"), F.least(F.max("died"), F.max("born") + STRAY).alias("end")
    )
    return spans.select(
        "run",
        "origin_at",
        F.greatest(F.ceil((F.col("end") - F.col("origin_at")) / STEPS), F.lit(FINEST))
        .cast("bigint")
        .alias("step"),
    )


def _conclude(digests: Digests) -> DataFrame:
    return (
        lives(digests["nodes"])
        .select(
            "run",
            "node",
            "life",
            "zone",
            "rows",
            "born",
            "died",
            "ended",
            ((F.col("died") - F.col("born")) / 1e6).alias("seconds"),
            (F.col("error_sum") / F.col("error_rows")).alias("clock_error"),
            F.col("error_most").alias("clock_error_most"),
            "offset_span",
            F.coalesce("dropped", F.lit(0)).alias("dropped"),
        )
        .orderBy("run", "zone", "node", "life")
    )


nodes = Job(
    "nodes",
    (NODES,),
    (
        Table(
            "nodes",
            "run string, node string, life bigint, zone string, rows bigint, born bigint,"
            " died bigint, ended string, seconds double, clock_error double,"
            " clock_error_most bigint, offset_span bigint, dropped bigint",
            "every life of every node: from when to when (µs), how it ended, and its clock (µs)",
            _conclude,
        ),
    ),
)
