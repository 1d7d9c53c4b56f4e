"""Clients that move: how long they were away, when their trees stood again, and what was lost.

A publication belongs to the last move before it; who should have got it is whoever got any of the
same advertisement in this run. What is held until the tree stands is published then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from overlay.traces.jobs.job import Digest, Digests, Job, Table, of_kinds
from overlay.tracing.kinds import (
    CONTENT_DELIVERED,
    CONTENT_PUBLISHED,
    MOVED_IN,
    MOVED_OUT,
    TREE_READY,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

STEPS = (MOVED_OUT.name, MOVED_IN.name, TREE_READY.name, CONTENT_PUBLISHED.name)
LIFE = ("run", "node", "life")
MOVE = (*LIFE, "move")
ENTRY = ("run", "origin", "key")


def _steps(rows: DataFrame, _nodes: DataFrame) -> DataFrame:
    """The rows of clients themselves: a few for each move, and one for each tick that publishes."""
    return of_kinds(rows, *STEPS)


STEPPED = Digest(
    "moves",
    "run string, node string, life bigint, row bigint, time bigint, kind string, peer string,"
    " detail string, duration bigint, count int, first bigint, key string",
    _steps,
)


def _received(rows: DataFrame, _nodes: DataFrame) -> DataFrame:
    """What each subscriber got of a publication, or of several that came in one tick."""
    return (
        of_kinds(rows, CONTENT_DELIVERED.name)
        .groupBy(*ENTRY, "node", "first")
        .agg(F.sum("count").alias("count"))
    )


RECEIVED = Digest(
    "moves_received",
    "run string, origin string, key string, node string, first bigint, count bigint",
    _received,
)


def _moves(digests: Digests) -> DataFrame:
    """One row for each `moved-in`, with what went before and what followed."""
    so_far = Window.partitionBy(*LIFE).orderBy("row")
    numbered = digests[STEPPED.name].withColumn(
        "move", F.sum(F.when(F.col("kind") == MOVED_IN.name, 1).otherwise(0)).over(so_far)
    )

    def of(kind: str, what: Column) -> Column:
        return F.when(F.col("kind") == kind, what)

    def only(kind: str, column: str) -> Column:
        return F.max(of(kind, F.col(column)))

    steps = numbered.groupBy(*MOVE).agg(
        only(MOVED_IN.name, "time").alias("at"),
        only(MOVED_IN.name, "peer").alias("broker"),
        only(MOVED_IN.name, "detail").alias("algorithm"),
        F.max(of(MOVED_OUT.name, F.col("time"))).alias("left_at"),
        F.max(of(MOVED_OUT.name, F.col("peer"))).alias("left"),
        (only(TREE_READY.name, "duration") / 1000).alias("rebuilt"),
        only(TREE_READY.name, "count").alias("held"),
        only(TREE_READY.name, "detail").alias("end"),
    )
    in_turn = Window.partitionBy(*LIFE).orderBy("move")
    moves = (
        steps.withColumn("away", (F.col("at") - F.lag("left_at").over(in_turn)) / 1000)
        .withColumn("previous", F.lag("left").over(in_turn))
        .where(F.col("at").isNotNull())
    )
    return moves.join(_probes(numbered, digests[RECEIVED.name]), list(MOVE), "left").fillna(
        0, ["published", "expected", "delivered"]
    )


def _probes(numbered: DataFrame, received: DataFrame) -> DataFrame:
    """What was published after each move, and how much of it came."""
    published = (
        numbered.where(F.col("kind") == CONTENT_PUBLISHED.name)
        .groupBy(*MOVE, "key")
        .agg(
            F.sum("count").alias("published"),
            F.min("first").alias("low"),
            F.max(F.col("first") + F.col("count")).alias("high"),
        )
    )
    wanting = received.groupBy(*ENTRY).agg(F.countDistinct("node").alias("wanting"))
    came = received.withColumnRenamed("node", "subscriber").withColumnRenamed("origin", "node")
    got = (
        published.join(came, ["run", "node", "key"])
        .where((F.col("first") >= F.col("low")) & (F.col("first") < F.col("high")))
        .groupBy(*MOVE, "key", "subscriber")
        # Who has several subscriptions that match gets each publication several times.
        .agg(F.least(F.sum("count"), F.max("published")).alias("got"))
        .groupBy(*MOVE, "key")
        .agg(F.sum("got").alias("got"))
    )
    audience = wanting.withColumnRenamed("origin", "node")
    return (
        published.join(audience, ["run", "node", "key"], "left")
        .join(got, [*MOVE, "key"], "left")
        .fillna(0, ["wanting", "got"])
        .groupBy(*MOVE)
        .agg(
            F.sum("published").alias("published"),
            F.sum(F.col("published") * F.col("wanting")).alias("expected"),
            F.sum("got").alias("delivered"),
        )
    )


def _each(digests: Digests) -> DataFrame:
    lost = F.col("expected") - F.col("delivered")
    return _moves(digests).withColumn("lost", lost).orderBy("run", "at", "node", "move")


def _summary(digests: Digests) -> DataFrame:
    """First connections are no moves: nobody had left."""
    incomplete = F.when(F.col("end") == "incomplete", 1).otherwise(0)
    return (
        _each(digests)
        .where(F.col("previous").isNotNull())
        .groupBy("run", "algorithm")
        .agg(
            F.count("*").alias("moves"),
            F.countDistinct("node").alias("clients"),
            F.avg("away").alias("away"),
            F.avg("rebuilt").alias("rebuilt"),
            F.percentile_approx("rebuilt", 0.5, 10_000).alias("p50"),
            F.percentile_approx("rebuilt", 0.99, 10_000).alias("p99"),
            F.sum(incomplete).alias("incomplete"),
            F.coalesce(F.sum("held"), F.lit(0)).alias("held"),
            F.sum("published").alias("published"),
            F.sum("expected").alias("expected"),
            F.sum("delivered").alias("delivered"),
            F.sum("lost").alias("lost"),
        )
        .orderBy("run", "algorithm")
    )


mobility = Job(
    "mobility",
    (STEPPED, RECEIVED),
    (
        Table(
            "mobility",
            "run string, algorithm string, moves bigint, clients bigint, away double,"
            " rebuilt double, p50 double, p99 double, incomplete bigint, held bigint,"
            " published bigint, expected bigint, delivered bigint, lost bigint",
            "moves by algorithm: how long (ms) clients were away, how long until their trees stood"
            " (t4; null in best effort: nobody asks), and what was lost of what they published",
            _summary,
        ),
        Table(
            "mobility_moves",
            "run string, node string, move bigint, at bigint, previous string, broker string,"
            " algorithm string, away double, rebuilt double, held bigint, end string,"
            " published bigint, expected bigint, delivered bigint, lost bigint",
            "each move: its times in ms, and what became of what was published after it",
            _each,
        ),
    ),
)
