"""How long messages took, one way, by topic, by pair of zones and by number of hops.

`error` is what the clocks of both ends may be off together: the subscriber's when it got the
message, and the mean of its publisher's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from overlay.traces.jobs.histogram import BIN_COLUMNS, bin_of, bins, cdf, percentiles
from overlay.traces.jobs.job import Digest, Digests, Job, Table, of_kinds
from overlay.tracing.kinds import DELIVERED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VIEWS = ("topic", "zones", "hops")


def _digest(rows: DataFrame, nodes: DataFrame) -> DataFrame:
    publishers = nodes.select(
        "run",
        F.col("node").alias("origin"),
        F.col("zone").alias("origin_zone"),
        F.coalesce("error", F.lit(0)).alias("origin_error"),
    )
    delivered = (
        of_kinds(rows, DELIVERED.name)
        .where(F.col("duration").isNotNull())
        .join(F.broadcast(publishers), ["run", "origin"], "left")
        .select(
            "run",
            F.coalesce("topic", F.lit("?")).alias("topic"),
            F.concat_ws(
                " → ", F.coalesce("origin_zone", F.lit("?")), F.coalesce("zone", F.lit("?"))
            ).alias("zones"),
            F.coalesce(F.col("hops").cast("string"), F.lit("?")).alias("hops"),
            bin_of("duration").alias("bin"),
            "duration",
            (F.col("count").cast("bigint") * F.col("weight")).alias("times"),
            (F.col("clock_error") + F.coalesce("origin_error", F.lit(0))).alias("error"),
        )
    )
    # Each view for itself: the cross product of all three would have as many bins as rows.
    sets = [[F.col("run"), F.col("bin"), F.col(view)] for view in VIEWS]
    return (
        delivered.groupingSets(sets, "run", "bin", *VIEWS)
        .agg(
            *bins("duration", "times"),
            F.sum(F.col("error") * F.col("times")).alias("error_sum"),
            F.sum(F.when(F.col("error").isNotNull(), F.col("times"))).alias("error_n"),
            F.max("error").alias("error_most"),
            F.sum(F.when(-F.col("duration") > F.col("error"), F.col("times"))).alias("impossible"),
        )
        .select(
            "*",
            F.expr(
                "case when topic is not null then 'topic' when zones is not null then 'zones'"
                " else 'hops' end"
            ).alias("by"),
            F.coalesce(*VIEWS).alias("group"),
        )
    )


LATENCY = Digest(
    "latency",
    f"run string, by string, group string, {BIN_COLUMNS}, error_sum double, error_n bigint,"
    " error_most double, impossible bigint",
    _digest,
)


def _with_all(digest: DataFrame) -> DataFrame:
    """And everything together, which is the sum over all topics."""
    everything = (
        digest.where(F.col("by") == "topic")
        .withColumn("by", F.lit("all"))
        .withColumn("group", F.lit("all"))
    )
    return digest.unionByName(everything)


def _percentiles(digests: Digests) -> DataFrame:
    digest = _with_all(digests[LATENCY.name])
    key = ["run", "by", "group"]
    errors = digest.groupBy(*key).agg(
        (F.sum("error_sum") / F.sum("error_n")).alias("clock_error"),
        F.max("error_most").alias("clock_error_most"),
        F.coalesce(F.sum("impossible"), F.lit(0)).alias("impossible"),
    )
    return percentiles(digest, key).join(errors, key).orderBy(*key)


def _cdf(digests: Digests) -> DataFrame:
    digest = _with_all(digests[LATENCY.name])
    return cdf(digest, ["run", "by", "group"]).orderBy("run", "by", "group", "share")


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
