"""Finding brokers, by the measures of its paper (§9): total time, its parts, and who was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from overlay.traces.jobs.job import Digest, Digests, Job, Table, of_kinds
from overlay.tracing.kinds import (
    DISCOVERY_BEGAN,
    DISCOVERY_CHOSEN,
    DISCOVERY_FAILED,
    DISCOVERY_PHASE,
    DISCOVERY_RESPONSE,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PHASES = ("waiting", "choosing", "pinging")
PARTS = (
    *(DISCOVERY_BEGAN.name, DISCOVERY_CHOSEN.name, DISCOVERY_FAILED.name, DISCOVERY_PHASE.name),
    DISCOVERY_RESPONSE.name,
)
REQUEST = ("run", "origin", "stream")


def _digest(rows: DataFrame, _nodes: DataFrame) -> DataFrame:
    """They are few: the rows themselves."""
    return of_kinds(rows, *PARTS)


REQUESTS = Digest(
    "discovery",
    "run string, kind string, time bigint, node string, zone string, life bigint, origin string,"
    " stream bigint, peer string, count int, duration bigint, detail string, value double",
    _digest,
)


def _requests(digests: Digests) -> DataFrame:
    def of(kind: str, column: str) -> Column:
        return F.max(F.when(F.col("kind") == kind, F.col(column)))

    def phase(name: str) -> Column:
        is_it = (F.col("kind") == DISCOVERY_PHASE.name) & (F.col("detail") == name)
        return (F.sum(F.when(is_it, F.col("duration"))) / 1000).alias(name)

    is_response = F.col("kind") == DISCOVERY_RESPONSE.name
    return (
        digests[REQUESTS.name]
        .groupBy(*REQUEST)
        .agg(
            F.max("zone").alias("zone"),
            F.coalesce(of(DISCOVERY_BEGAN.name, "time"), F.min("time")).alias("began"),
            of(DISCOVERY_CHOSEN.name, "peer").alias("broker"),
            (of(DISCOVERY_CHOSEN.name, "duration") / 1000).alias("total"),
            (of(DISCOVERY_CHOSEN.name, "value") * 1000).alias("round_trip"),
            F.countDistinct(F.when(is_response, F.col("peer"))).alias("responses"),
            of(DISCOVERY_FAILED.name, "detail").alias("failure"),
            (F.max(F.when(is_response, F.col("duration"))) / 1000).alias("last_response"),
            *map(phase, PHASES),
        )
        .withColumnRenamed("origin", "node")
        .withColumnRenamed("stream", "request")
        .orderBy("run", "began", "node")
    )


def _summary(digests: Digests) -> DataFrame:
    """As the table of figure 3, and the shares of figures 2, 9 and 11."""
    found = F.col("broker").isNotNull()

    def share(name: str) -> Column:
        return F.avg(100 * F.col(name) / F.col("total")).alias(f"{name}_share")

    return (
        _requests(digests)
        .groupBy("run", "zone")
        .agg(
            F.count("*").alias("requests"),
            F.sum(F.when(found, 1).otherwise(0)).alias("found"),
            F.avg("responses").alias("responses"),
            F.avg("total").alias("mean"),
            F.stddev_samp("total").alias("deviation"),
            F.max("total").alias("most"),
            F.min("total").alias("least"),
            (F.stddev_samp("total") / F.sqrt(F.count("total"))).alias("standard_error"),
            F.percentile_approx("total", 0.5, 10_000).alias("p50"),
            F.percentile_approx("total", 0.99, 10_000).alias("p99"),
            F.avg("round_trip").alias("round_trip"),
            *map(share, PHASES),
        )
        .orderBy("run", "zone")
    )


discovery = Job(
    "discovery",
    (REQUESTS,),
    (
        Table(
            "discovery",
            "run string, zone string, requests bigint, found bigint, responses double, mean double,"
            " deviation double, most double, least double, standard_error double, p50 double,"
            " p99 double, round_trip double, waiting_share double, choosing_share double,"
            " pinging_share double",
            "how long (ms) finding a broker took, and which share (%) each part of it had",
            _summary,
        ),
        Table(
            "discovery_requests",
            "run string, zone string, node string, request bigint, began bigint, broker string,"
            " total double, waiting double, choosing double, pinging double, last_response double,"
            " round_trip double, responses bigint, failure string",
            "each request: its broker, and its times in ms",
            _requests,
        ),
    ),
)
