"""Nodes and links that are out of line with the others of their run.

Each measure of a node or link is compared with the median of all, in units of the median deviation
(MAD), which a few outliers cannot move. Ten of these units apart, and twice or half the median, is
out of line; where there are fewer than FEWEST of a kind nothing is.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from overlay.traces.jobs.delivery import STREAMS, delivery
from overlay.traces.jobs.job import Digest, Digests, Job, Table
from overlay.traces.jobs.membership import MEMBERS, membership
from overlay.traces.jobs.nodes import NODES, lives
from overlay.traces.jobs.paths import EDGES
from overlay.traces.jobs.traffic import TRAFFIC, traffic
from overlay.tracing.kinds import DELIVERED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FEWEST = 5
APART = 10.0  # × MAD; of a normal distribution one in 10^11 is so far out
FACTOR = 2.0
KEY = ("run", "what", "subject", "measure")


def _measure(frame: DataFrame, what: str, subject: Column, name: str, value: Column) -> DataFrame:
    return frame.select(
        "run",
        F.lit(what).alias("what"),
        subject.alias("subject"),
        F.lit(name).alias("measure"),
        value.cast("double").alias("value"),
    ).where(F.col("value").isNotNull() & F.col("subject").isNotNull())


def _measures(digests: Digests) -> DataFrame:
    node = F.col("node")
    link = F.concat_ws(" → ", F.col("source"), F.col("target"))
    loads = traffic.table().of(digests)
    links = traffic.table("traffic_links").of(digests)
    mean = F.col("total") / F.col("timed")
    arrived = digests[EDGES.name].where(F.col("kind") == DELIVERED.name)
    at_nodes = arrived.groupBy("run", "node").agg(
        F.sum("total").alias("total"), F.sum("timed").alias("timed")
    )
    direct = (
        arrived.where(F.col("parent") == F.col("origin"))
        .groupBy("run", F.col("parent").alias("source"), F.col("node").alias("target"))
        .agg(F.sum("total").alias("total"), F.sum("timed").alias("timed"))
    )
    flows = (
        delivery.table()
        .of(digests)
        .groupBy("run", "node")
        .agg(F.sum("lost").alias("lost"), F.sum("duplicated").alias("duplicated"))
    )
    mistakes = membership.table("membership_mistakes").of(digests)
    clocks = lives(digests[NODES.name])
    found = [
        _measure(loads, "node", node, "bytes sent", F.col("sent_bytes")),
        _measure(loads, "node", node, "bytes received", F.col("received_bytes")),
        _measure(loads, "node", node, "messages dropped", F.col("dropped")),
        _measure(loads, "node", node, "messages refused", F.col("refused")),
        _measure(at_nodes, "node", node, "mean latency (µs)", mean),
        _measure(flows, "node", node, "messages lost", F.col("lost")),
        _measure(flows, "node", node, "messages duplicated", F.col("duplicated")),
        _measure(mistakes, "node", node, "wrong suspicions", F.col("suspected_wrongly")),
        _measure(clocks, "node", node, "clock error (µs)", F.col("error_most")),
        _measure(clocks, "node", node, "clock jump (µs)", F.col("offset_span")),
        _measure(links, "link", link, "bytes sent", F.col("sent_bytes")),
        _measure(direct, "link", link, "mean latency (µs)", mean),
    ]
    # Several lives, or several zones, of one node: the worst of them.
    return (
        reduce(lambda one, other: one.unionByName(other), found)
        .groupBy(*KEY)
        .agg(F.max("value").alias("value"))
    )


def _conclude(digests: Digests) -> DataFrame:
    alike = Window.partitionBy("run", "what", "measure")
    # Where most are equal (no losses at all) the MAD is 0: a twentieth of the median, or 1, then.
    unit = F.greatest("mad", F.abs(F.col("median")) / 20, F.lit(1.0))
    high = F.col("value") > F.col("median") * FACTOR
    low = F.col("value") < F.col("median") / FACTOR
    return (
        _measures(digests)
        .withColumn("of", F.count("*").over(alike))
        .withColumn("median", F.percentile_approx("value", 0.5, 10_000).over(alike))
        .withColumn("deviation", F.abs(F.col("value") - F.col("median")))
        .withColumn("mad", F.percentile_approx("deviation", 0.5, 10_000).over(alike))
        .withColumn("score", (F.col("value") - F.col("median")) / unit)
        .where((F.abs("score") >= APART) & (high | low) & (F.col("of") >= FEWEST))
        .orderBy("run", F.desc(F.abs(F.col("score"))), "subject", "measure")
    )


NEEDS: tuple[Digest, ...] = (TRAFFIC, EDGES, STREAMS, MEMBERS)

anomalies = Job(
    "anomalies",
    NEEDS,
    (
        Table(
            "anomalies",
            "run string, what string, subject string, measure string, value double, median double,"
            " score double, of bigint",
            "nodes and links far from the median of all; `score` is in median deviations",
            _conclude,
        ),
    ),
)
