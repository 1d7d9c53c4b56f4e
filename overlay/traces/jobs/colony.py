"""Colonies, by the measures of the Arigatoni paper (§4): acceptance, load, hops, and time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from overlay.traces.jobs.job import Digest, Digests, Job, Table, of_kinds
from overlay.tracing.kinds import COLONY_ASKED, COLONY_DONE, COLONY_FOUND, COLONY_HANDLED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTS = (COLONY_ASKED.name, COLONY_DONE.name, COLONY_FOUND.name, COLONY_HANDLED.name)
REQUEST = ("run", "origin", "stream")


def _digest(rows: DataFrame, _nodes: DataFrame) -> DataFrame:
    """The rows themselves: a few for each request."""
    return of_kinds(rows, *PARTS)


REQUESTS = Digest(
    "colony",
    "run string, kind string, node string, origin string, stream bigint, peer string, count int,"
    " hops int, duration bigint, detail string, value double",
    _digest,
)


def _of(digests: Digests, kind: str) -> DataFrame:
    return digests[REQUESTS.name].where(F.col("kind") == kind)


def _summary(digests: Digests) -> DataFrame:
    """Requests and what became of them; the brokers of a request are those that handled it."""
    done = _of(digests, COLONY_DONE.name)
    found = (
        _of(digests, COLONY_FOUND.name)
        .groupBy("run")
        .agg(F.count("*").alias("servants"), F.avg("hops").alias("hops"))
    )
    brokers = (
        _of(digests, COLONY_HANDLED.name)
        .groupBy(*REQUEST)
        .agg(F.countDistinct("node").alias("brokers"))
        .groupBy("run")
        .agg(F.avg("brokers").alias("brokers"))
    )
    timed_out = F.when(F.col("detail") == "timed out", 1).otherwise(0)
    return (
        done.groupBy("run")
        .agg(
            F.count("*").alias("requests"),
            F.sum("value").cast("bigint").alias("wants"),
            (100 * F.sum("count") / F.sum("value")).alias("served"),
            F.sum(timed_out).alias("timed_out"),
            (F.avg("duration") / 1000).alias("mean"),
            (F.percentile_approx("duration", 0.5, 10_000) / 1000).alias("p50"),
            (F.percentile_approx("duration", 0.99, 10_000) / 1000).alias("p99"),
        )
        .join(found, "run", "left")
        .join(brokers, "run", "left")
        .orderBy("run")
    )


def _load(digests: Digests) -> DataFrame:
    """The paper's load: the share of all requests that a broker got."""
    asked = _of(digests, COLONY_ASKED.name).groupBy("run").agg(F.count("*").alias("asked"))
    return (
        _of(digests, COLONY_HANDLED.name)
        .groupBy("run", "node")
        .agg(F.count("*").alias("messages"), F.countDistinct("origin", "stream").alias("requests"))
        .join(asked, "run", "left")
        .withColumn("load", 100 * F.col("requests") / F.col("asked"))
        .orderBy("run", F.desc("requests"), "node")
    )


colony = Job(
    "colony",
    (REQUESTS,),
    (
        Table(
            "colony",
            "run string, requests bigint, wants bigint, served double, timed_out bigint,"
            " servants bigint, hops double, brokers double, mean double, p50 double, p99 double",
            "requests for services: the share served (%), hops to a servant, brokers involved,"
            " and the time until all was known (ms)",
            _summary,
        ),
        Table(
            "colony_load",
            "run string, node string, requests bigint, messages bigint, load double",
            "each broker: the requests that it got, as a share (%) of all",
            _load,
        ),
    ),
)
