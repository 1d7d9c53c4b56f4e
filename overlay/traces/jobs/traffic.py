"""Bytes and messages: by node, protocol, type of message and link, and over time.

Sent and received are counted at the end that wrote the row, so a link that loses shows as a
difference between both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from overlay.traces.jobs.job import Digest, Digests, Job, Table, of_kinds
from overlay.traces.jobs.nodes import STEPS, settle
from overlay.tracing.kinds import (
    CAST,
    DELIVERED,
    DROPPED,
    HEARD,
    PUBLISHED,
    RECEIVED,
    REFUSED,
    SENT,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OUT = (SENT.name, CAST.name)
IN = (RECEIVED.name, HEARD.name)
PROBLEMS = (DROPPED.name, REFUSED.name)


def _times() -> Column:
    return F.col("count").cast("bigint") * F.col("weight")


def _size() -> Column:
    return F.coalesce("bytes", F.lit(0)) * F.col("weight")


def _digest(rows: DataFrame, _nodes: DataFrame) -> DataFrame:
    return (
        of_kinds(rows, *OUT, *IN, *PROBLEMS)
        .groupBy("run", "kind", "node", "protocol", "message", "peer")
        .agg(F.sum(_times()).alias("messages"), F.sum(_size()).alias("bytes"))
    )


TRAFFIC = Digest(
    "traffic",
    "run string, kind string, node string, protocol string, message string, peer string,"
    " messages bigint, bytes bigint",
    _digest,
)


def _over_time(rows: DataFrame, nodes: DataFrame) -> DataFrame:
    """Counts for each node and point of the grid, as the grid is known now."""
    points = nodes.select("run", "node", "origin_at", "step")
    inside = (F.col("time") - F.col("origin_at")) / F.col("step")

    def total(kinds: tuple[str, ...], what: Column) -> Column:
        return F.sum(F.when(F.col("kind").isin(*kinds), what).otherwise(0))

    return (
        of_kinds(rows, *OUT, *IN, *PROBLEMS, PUBLISHED.name, DELIVERED.name)
        .join(F.broadcast(points), ["run", "node"])
        .where(inside.between(0, STEPS))
        .groupBy(
            "run",
            "node",
            (F.floor(inside) * F.col("step") + F.col("origin_at")).alias("at"),
        )
        .agg(
            total(OUT, _times()).alias("sent"),
            total(OUT, _size()).alias("sent_bytes"),
            total(IN, _times()).alias("received"),
            total(IN, _size()).alias("received_bytes"),
            total((PUBLISHED.name,), _times()).alias("published"),
            total((DELIVERED.name,), _times()).alias("delivered"),
            total(PROBLEMS, _times()).alias("problems"),
        )
    )


COUNTS = (
    *("sent", "sent_bytes", "received", "received_bytes", "published", "delivered", "problems"),
)
_COUNTS = ", ".join(f"{name} bigint" for name in COUNTS)
TIMELINE = Digest("timeline", f"run string, node string, at bigint, {_COUNTS}", _over_time)


def _sides(kinds: tuple[str, ...], what: str) -> Column:
    return F.sum(F.when(F.col("kind").isin(*kinds), F.col(what)).otherwise(0))


def _totals() -> tuple[Column, ...]:
    return (
        _sides(OUT, "messages").alias("sent"),
        _sides(OUT, "bytes").alias("sent_bytes"),
        _sides(IN, "messages").alias("received"),
        _sides(IN, "bytes").alias("received_bytes"),
        _sides((DROPPED.name,), "messages").alias("dropped"),
        _sides((REFUSED.name,), "messages").alias("refused"),
    )


_TOTALS = (
    "sent bigint, sent_bytes bigint, received bigint, received_bytes bigint, dropped bigint,"
    " refused bigint"
)


def _by_node(digests: Digests) -> DataFrame:
    whole = Window.partitionBy("run")
    load = F.col("sent_bytes") + F.col("received_bytes")
    zones = settle(digests["nodes"]).select("run", "node", "zone")
    return (
        digests[TRAFFIC.name]
        .groupBy("run", "node")
        .agg(*_totals())
        .join(zones, ["run", "node"], "left")
        .withColumn("load", load / F.avg(load).over(whole))
        .orderBy("run", F.desc("load"), "node")
    )


def _by(*columns: str, order: str) -> Callable[[Digests], DataFrame]:
    def conclude(digests: Digests) -> DataFrame:
        return (
            digests[TRAFFIC.name]
            .groupBy("run", *columns)
            .agg(*_totals())
            .orderBy("run", F.desc(order), *columns)
        )

    return conclude


def _links(digests: Digests) -> DataFrame:
    """What one end sent beside what the other received; an end that is not traced counts 0."""
    digest = digests[TRAFFIC.name].where(F.col("kind").isin(SENT.name, RECEIVED.name))
    is_sent = F.col("kind") == SENT.name
    return (
        digest.groupBy(
            "run",
            F.when(is_sent, F.col("node")).otherwise(F.col("peer")).alias("source"),
            F.when(is_sent, F.col("peer")).otherwise(F.col("node")).alias("target"),
        )
        .agg(*_totals())
        .orderBy("run", F.desc("sent_bytes"), "source", "target")
    )


def _timeline(digests: Digests) -> DataFrame:
    """On the grid as it is now: earlier digests had a finer one."""
    points = settle(digests["nodes"]).select("run", "node", "zone", "origin_at", "step")
    place = F.floor((F.col("at") - F.col("origin_at")) / F.col("step"))
    return (
        digests[TIMELINE.name]
        .join(F.broadcast(points), ["run", "node"])
        .groupBy(
            "run",
            "zone",
            "node",
            (place * F.col("step") + F.col("origin_at")).alias("at"),
            "step",
        )
        .agg(*(F.sum(name).alias(name) for name in COUNTS))
        .orderBy("run", "zone", "node", "at")
    )


traffic = Job(
    "traffic",
    (TRAFFIC, TIMELINE),
    (
        Table(
            "traffic",
            f"run string, node string, zone string, {_TOTALS}, load double",
            "messages and bytes of each node; `load` 1 is the mean of the run",
            _by_node,
        ),
        Table(
            "traffic_types",
            f"run string, protocol string, message string, {_TOTALS}",
            "messages and bytes by protocol and type of message",
            _by("protocol", "message", order="sent_bytes"),
        ),
        Table(
            "traffic_links",
            "run string, source string, target string, sent bigint, sent_bytes bigint,"
            " received bigint, received_bytes bigint",
            "messages and bytes from `source` to `target`, as each end counted them",
            _links,
        ),
        Table(
            "timeline",
            f"run string, zone string, node string, at bigint, step bigint, {_COUNTS}",
            "each node over time: from `at` on for `step` µs",
            _timeline,
        ),
    ),
)
