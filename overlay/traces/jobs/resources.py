"""Finding resources: how long requests took, how far they went, and what they cost the brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from overlay.traces.jobs.job import Digest, Digests, Job, Table, of_kinds
from overlay.tracing.kinds import (
    RESOURCE_ANSWERED,
    RESOURCE_DONE,
    RESOURCE_HANDLED,
    RESOURCE_REQUESTED,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

REQUEST = ("run", "origin", "stream")
COMPLETE = ("all answered", "limit")


def _digest(rows: DataFrame, _nodes: DataFrame) -> DataFrame:
    """One row for each request, kind and detail: brokers leave several for each request."""
    kinds = (RESOURCE_REQUESTED, RESOURCE_HANDLED, RESOURCE_ANSWERED, RESOURCE_DONE)
    return (
        of_kinds(rows, *(kind.name for kind in kinds))
        .groupBy(*REQUEST, "kind", "detail")
        .agg(
            F.min("time").alias("time"),
            F.max(F.when(F.col("node") == F.col("origin"), F.col("zone"))).alias("zone"),
            F.count("*").alias("rows"),
            F.sum("count").alias("count"),
            F.max("duration").alias("duration"),
            F.max("hops").alias("hops"),
            F.max("value").alias("value"),
        )
    )


REQUESTS = Digest(
    "resources",
    "run string, origin string, stream bigint, kind string, detail string, time bigint,"
    " zone string, rows bigint, count bigint, duration bigint, hops int, value double",
    _digest,
)


def _requests(digests: Digests) -> DataFrame:
    def of(kind: str, what: Column) -> Column:
        return F.when(F.col("kind") == kind, what)

    handled, done = RESOURCE_HANDLED.name, RESOURCE_DONE.name
    shared = F.col("detail").isin("covered", "relayed")
    return (
        digests[REQUESTS.name]
        .groupBy(*REQUEST)
        .agg(
            F.max("zone").alias("zone"),
            F.coalesce(F.min(of(RESOURCE_REQUESTED.name, F.col("time"))), F.min("time")).alias(
                "began"
            ),
            F.max(of(RESOURCE_REQUESTED.name, F.col("detail"))).alias("forwarding"),
            (F.max(of(done, F.col("duration"))) / 1000).alias("total"),
            F.max(of(done, F.col("value"))).cast("bigint").alias("found"),
            F.max(of(done, F.col("detail"))).alias("end"),
            F.max(of(handled, F.col("hops"))).alias("hops"),
            F.coalesce(F.sum(of(handled, F.col("rows"))), F.lit(0)).alias("request_messages"),
            F.coalesce(F.sum(of(RESOURCE_ANSWERED.name, F.col("count"))), F.lit(0)).alias(
                "result_messages"
            ),
            F.coalesce(F.sum(of(handled, F.when(shared, F.col("rows")))), F.lit(0)).alias("shared"),
        )
        .withColumnRenamed("origin", "node")
        .withColumnRenamed("stream", "request")
        .orderBy("run", "began", "node", "request")
    )


def _summary(digests: Digests) -> DataFrame:
    complete = F.col("end").isin(*COMPLETE)
    return (
        _requests(digests)
        .groupBy("run", "zone")
        .agg(
            F.count("*").alias("requests"),
            F.sum(F.when(complete, 1).otherwise(0)).alias("complete"),
            F.sum(F.when(F.col("shared") > 0, 1).otherwise(0)).alias("shared"),
            F.avg("found").alias("found"),
            F.avg("total").alias("mean"),
            F.percentile_approx("total", 0.5, 10_000).alias("p50"),
            F.percentile_approx("total", 0.99, 10_000).alias("p99"),
            F.max("total").alias("most"),
            F.avg("hops").alias("hops"),
            F.avg("request_messages").alias("request_messages"),
            F.avg("result_messages").alias("result_messages"),
        )
        .orderBy("run", "zone")
    )


resources = Job(
    "resources",
    (REQUESTS,),
    (
        Table(
            "resources",
            "run string, zone string, requests bigint, complete bigint, shared bigint,"
            " found double, mean double, p50 double, p99 double, most double, hops double,"
            " request_messages double, result_messages double",
            "how long (ms) finding resources took, and how many messages each request cost",
            _summary,
        ),
        Table(
            "resource_requests",
            "run string, zone string, node string, request bigint, began bigint,"
            " forwarding string, total double, found bigint, end string, hops int,"
            " request_messages bigint, result_messages bigint, shared bigint",
            "each request: its time in ms, what it found, and what it cost",
            _requests,
        ),
    ),
)
