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
BYTES, MESSAGES, MICROS = 100_000.0, 5.0, 1_000.0  # differences that somebody may care about
KEY = ("run", "what", "subject", "measure")


def _measure(
    frame: DataFrame, what: str, subject: Column, name: str, value: Column, least: float
) -> DataFrame:
    """One measure of all nodes or links; differences below `least` mean nothing to anybody."""
    return frame.select(
        "run",
        F.lit(what).alias("what"),
        subject.alias("subject"),
        F.lit(name).alias("measure"),
        value.cast("double").alias("value"),
        F.lit(least).alias("least"),
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
        _measure(loads, "node", node, "bytes sent", F.col("sent_bytes"), BYTES),
        _measure(loads, "node", node, "bytes received", F.col("received_bytes"), BYTES),
        _measure(loads, "node", node, "messages dropped", F.col("dropped"), MESSAGES),
        _measure(loads, "node", node, "messages refused", F.col("refused"), MESSAGES),
        _measure(at_nodes, "node", node, "mean latency (µs)", mean, MICROS),
        _measure(flows, "node", node, "messages lost", F.col("lost"), MESSAGES),
        _measure(flows, "node", node, "messages duplicated", F.col("duplicated"), MESSAGES),
        _measure(mistakes, "node", node, "wrong suspicions", F.col("suspected_wrongly"), MESSAGES),
        _measure(clocks, "node", node, "clock error (µs)", F.col("error_most"), MICROS),
        _measure(clocks, "node", node, "clock jump (µs)", F.col("offset_span"), 10 * MICROS),
        _measure(links, "link", link, "bytes sent", F.col("sent_bytes"), BYTES),
        _measure(direct, "link", link, "mean latency (µs)", mean, MICROS),
    ]
    # Several lives, or several zones, of one node: the worst of them.
    return (
        reduce(lambda one, other: one.unionByName(other), found)
        .groupBy(*KEY)
        .agg(F.max("value").alias("value"), F.any_value("least").alias("least"))
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
        .where((F.abs("score") >= APART) & (F.col("deviation") >= F.col("least")))
        .where((high | low) & (F.col("of") >= FEWEST))
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
