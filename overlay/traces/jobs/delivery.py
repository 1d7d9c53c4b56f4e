"""What was published against what was delivered: lost, duplicated, out of order.

The digest joins ranges that follow each other without a gap, in the order in which a node wrote
them, into one: a healthy stream is a single row, however long it was. Order is that of `row`, so a
clock that jumps changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from overlay.traces.jobs.job import Digest, Digests, Job, Table, of_kinds
from overlay.tracing.kinds import DELIVERED, GAP, PUBLISHED, STREAM_BEGAN, STREAM_ENDED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RANGES = (PUBLISHED.name, DELIVERED.name, GAP.name)
MARKS = (STREAM_BEGAN.name, STREAM_ENDED.name)
FLOW = ("run", "node", "life", "origin", "stream")  # one subscriber's part of one stream
STREAM = ("run", "origin", "stream")
KEPT = ("kind", *FLOW, "topic", "zone", "mark")


def _digest(rows: DataFrame, _nodes: DataFrame) -> DataFrame:
    wanted = of_kinds(rows, *RANGES, *MARKS).select(
        "kind",
        *FLOW,
        "topic",
        "zone",
        F.when(F.col("kind").isin(*MARKS), F.coalesce("detail", F.lit(""))).alias("mark"),
        "row",
        F.coalesce("first", F.lit(0)).alias("first"),
        F.col("count").cast("bigint").alias("count"),
        "bytes",
        # One number to sort by, since most comparisons would see equal runs and equal nodes first.
        F.xxhash64("kind", *FLOW).alias("flow"),
    )
    ordered = Window.partitionBy("flow").orderBy("row")
    goes_on = F.lag(F.col("first") + F.col("count")).over(ordered) == F.col("first")
    islands = wanted.withColumn("island", F.sum(F.when(goes_on, 0).otherwise(1)).over(ordered))
    return islands.groupBy("flow", *KEPT, "island").agg(
        F.min("row").alias("row"),
        F.min("first").alias("first"),
        F.sum("count").alias("count"),
        F.sum("bytes").alias("bytes"),
        F.count("*").alias("rows"),
    )


STREAMS = Digest(
    "streams",
    "kind string, run string, node string, life bigint, origin string, stream bigint, topic string,"
    " zone string, mark string, row bigint, first bigint, count bigint, bytes bigint, rows bigint",
    _digest,
)


def _received(delivered: DataFrame) -> DataFrame:
    """Per flow: how many came, how many of them again, and how many late."""
    end = F.col("first") + F.col("count")
    by_row = Window.partitionBy(*FLOW).orderBy("row").rowsBetween(Window.unboundedPreceding, -1)
    by_number = (
        Window.partitionBy(*FLOW).orderBy("first").rowsBetween(Window.unboundedPreceding, -1)
    )
    return (
        delivered.withColumn("reached", F.coalesce(F.max(end).over(by_row), F.col("first")))
        # Numbers below what had been reached are late, or there for the second time.
        .withColumn("behind", F.greatest(F.least(end, "reached") - F.col("first"), F.lit(0)))
        .withColumn("seen", F.coalesce(F.max(end).over(by_number), F.col("first")))
        .withColumn("new", F.greatest(end - F.greatest("first", "seen"), F.lit(0)))
        .groupBy(*FLOW)
        .agg(
            F.max("topic").alias("topic"),
            F.max("zone").alias("zone"),
            F.sum("count").alias("delivered"),
            F.sum("new").alias("different"),
            F.sum("behind").alias("behind"),
            F.min("first").alias("from_number"),
            F.max(end).alias("to_number"),
            F.sum("bytes").alias("bytes"),
        )
    )


def _flows(digests: Digests) -> DataFrame:
    digest = digests[STREAMS.name]
    of = {kind: digest.where(F.col("kind") == kind) for kind in (*RANGES, *MARKS)}
    published = (
        of[PUBLISHED.name]
        .groupBy(*STREAM)
        .agg(
            F.max("topic").alias("published_topic"),
            F.max(F.col("first") + F.col("count")).alias("published_to"),
        )
    )
    began = (
        of[STREAM_BEGAN.name]
        .groupBy(*FLOW)
        .agg(
            F.min("first").alias("wanted_from"),
            F.max("topic").alias("began_topic"),
            F.max("zone").alias("began_zone"),
        )
    )
    # It left before the stream's end: what came later was not for it.
    left = (
        of[STREAM_ENDED.name]
        .where(F.col("mark") != "closed")
        .groupBy(*FLOW)
        .agg((F.max("first") + 1).alias("wanted_to"))
    )
    told = of[GAP.name].groupBy(*FLOW).agg(F.sum("count").alias("told"))
    flows = (
        _received(of[DELIVERED.name])
        .join(began, list(FLOW), "full")
        .join(left, list(FLOW), "left")
        .join(told, list(FLOW), "left")
        .join(F.broadcast(published), list(STREAM), "left")
    )
    start = F.coalesce("wanted_from", "from_number")
    last = F.coalesce("to_number", start)  # nothing came: all of it is outstanding
    expected_to = F.least(F.greatest(F.coalesce("published_to", last), last), "wanted_to")
    return flows.select(
        *FLOW,
        F.coalesce("topic", "began_topic", "published_topic").alias("topic"),
        F.coalesce("zone", "began_zone").alias("zone"),
        F.greatest(expected_to - start, F.lit(0)).alias("expected"),
        F.coalesce("delivered", F.lit(0)).alias("delivered"),
        F.coalesce(F.col("delivered") - F.col("different"), F.lit(0)).alias("duplicated"),
        F.coalesce(F.col("behind") - (F.col("delivered") - F.col("different")), F.lit(0)).alias(
            "out_of_order"
        ),
        F.coalesce(F.greatest(last - start - F.col("different"), F.lit(0)), F.lit(0)).alias("lost"),
        F.coalesce("told", F.lit(0)).alias("told"),
        F.greatest(expected_to - last, F.lit(0)).alias("outstanding"),
        F.coalesce("bytes", F.lit(0)).alias("bytes"),
        F.col("published_to").isNotNull().alias("publisher_traced"),
    )


def _conclude(digests: Digests) -> DataFrame:
    return _flows(digests).orderBy(*FLOW)


def _by_topic(digests: Digests) -> DataFrame:
    digest = digests[STREAMS.name]
    published = (
        digest.where(F.col("kind") == PUBLISHED.name)
        .groupBy("run", "topic")
        .agg(
            F.sum("count").alias("published"),
            F.sum("bytes").alias("published_bytes"),
            F.countDistinct("origin").alias("publishers"),
        )
    )
    received = (
        _flows(digests)
        .groupBy("run", "topic")
        .agg(
            F.countDistinct("node").alias("subscribers"),
            *(F.sum(name).alias(name) for name in COUNTED),
        )
    )
    counts = ("published", "published_bytes", "publishers", "subscribers", *COUNTED)
    return (published.join(received, ["run", "topic"], "full").fillna(0, list(counts))).orderBy(
        "run", "topic"
    )


COUNTED = ("expected", "delivered", "duplicated", "out_of_order", "lost", "told", "outstanding")
_COUNTED = ", ".join(f"{name} bigint" for name in COUNTED)

delivery = Job(
    "delivery",
    (STREAMS,),
    (
        Table(
            "delivery",
            "run string, node string, life bigint, origin string, stream bigint, topic string,"
            f" zone string, {_COUNTED}, bytes bigint, publisher_traced boolean",
            "each subscriber's part of each stream: `lost` are holes before the last message that"
            " came, `told` those it was told of; what lies behind that message is `outstanding`",
            _conclude,
        ),
        Table(
            "delivery_topics",
            "run string, topic string, publishers bigint, subscribers bigint, published bigint,"
            f" published_bytes bigint, {_COUNTED}",
            "the same, by topic",
            _by_topic,
        ),
    ),
)
