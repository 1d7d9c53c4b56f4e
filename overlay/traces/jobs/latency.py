"""How long messages took, one way, by topic, by pair of zones and by number of hops.

`error` is what the clocks of both ends may be off together: the subscriber's when it got the
message, and the mean of its publisher's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from overlay.traces.jobs.histogram import BIN_COLUMNS, bin_of, bins, cdf, percentiles
from overlay.traces.jobs.job import Digest, Digests, Job, Table, of_kinds
from overlay.traces.jobs.nodes import NODES, settle
from overlay.tracing.kinds import DELIVERED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VIEWS = ("topic", "zone", "hops")


def _digest(rows: DataFrame, _nodes: DataFrame) -> DataFrame:
    delivered = (
        of_kinds(rows, DELIVERED.name)
        .where(F.col("duration").isNotNull())
        .select(
            "run",
            "origin",
            F.coalesce("topic", F.lit("?")).alias("topic"),
            F.coalesce("zone", F.lit("?")).alias("zone"),
            F.coalesce(F.col("hops").cast("string"), F.lit("?")).alias("hops"),
            bin_of("duration").alias("bin"),
            "duration",
            (F.col("count").cast("bigint") * F.col("weight")).alias("times"),
            "clock_error",
        )
    )
    # Each view for itself: the cross product of all three would have as many bins as rows. With
    # its publisher, whose zone and clock may be told in a file that comes later.
    sets = [[F.col("run"), F.col("origin"), F.col("bin"), F.col(view)] for view in VIEWS]
    by = F.when(F.col("topic").isNotNull(), "topic").when(F.col("zone").isNotNull(), "zones")
    return (
        delivered.groupingSets(sets, "run", "origin", "bin", *VIEWS)
        .agg(
            *bins("duration", "times"),
            F.sum(F.col("clock_error").cast("double") * F.col("times")).alias("error_sum"),
            F.sum(F.when(F.col("clock_error").isNotNull(), F.col("times"))).alias("error_n"),
            F.max("clock_error").alias("error_most"),
        )
        .select("*", by.otherwise("hops").alias("by"), F.coalesce(*VIEWS).alias("group"))
    )


LATENCY = Digest(
    "latency",
    f"run string, origin string, by string, group string, {BIN_COLUMNS}, error_sum double,"
    " error_n bigint, error_most bigint",
    _digest,
)


def _settled(digests: Digests) -> DataFrame:
    """With the publishers' zones and clocks; and everything together, the sum over all topics."""
    publishers = settle(digests[NODES.name]).select(
        "run",
        F.col("node").alias("origin"),
        F.coalesce("zone", F.lit("?")).alias("origin_zone"),
        F.coalesce("error", F.lit(0.0)).alias("origin_error"),
    )
    unknown = F.coalesce("origin_zone", F.lit("?"))
    pair = F.concat_ws(" → ", unknown, F.col("group"))
    error = F.coalesce("origin_error", F.lit(0.0))
    digest = (
        digests[LATENCY.name]
        .join(F.broadcast(publishers), ["run", "origin"], "left")
        .withColumn("group", F.when(F.col("by") == "zones", pair).otherwise(F.col("group")))
        .withColumn("error_sum", F.col("error_sum") + error * F.col("error_n"))
        .withColumn("error_most", F.col("error_most") + error)
        .withColumn("impossible", F.when(-F.col("most") > F.col("error_most"), F.col("n")))
    )
    topics = digest.where(F.col("by") == "topic")
    return digest.unionByName(
        topics.withColumn("by", F.lit("all")).withColumn("group", F.lit("all"))
    )


def _percentiles(digests: Digests) -> DataFrame:
    digest = _settled(digests)
    key = ["run", "by", "group"]
    errors = digest.groupBy(*key).agg(
        (F.sum("error_sum") / F.sum("error_n")).alias("clock_error"),
        F.max("error_most").alias("clock_error_most"),
        F.coalesce(F.sum("impossible"), F.lit(0)).alias("impossible"),
    )
    return percentiles(digest, key).join(errors, key).orderBy(*key)


def _cdf(digests: Digests) -> DataFrame:
    key = ["run", "by", "group"]
    return cdf(_settled(digests), key).orderBy(*key, "share")


latency = Job(
    "latency",
    (LATENCY,),
    (
        Table(
            "latency",
            "run string, by string, group string, count bigint, mean double, least bigint,"
            " p50 double, p90 double, p99 double, p999 double, most bigint, clock_error double,"
            " clock_error_most double, impossible bigint",
            "one-way latency (µs) of messages, by topic, zones and hops; `impossible` ones arrived"
            " before they were sent by more than the clocks' error",
            _percentiles,
        ),
        Table(
            "latency_cdf",
            "run string, by string, group string, value double, share double",
            "which share of the messages took at most `value` µs",
            _cdf,
        ),
    ),
)
