"""Which way messages went: hops, the trees that broadcasts made, and the way of the slowest ones.

A tree is rebuilt from what its nodes wrote: who handed a message over (`delivered`, `relayed`,
`broadcast-arrived`), and whom it was handed on to (`forwarded`). The slowest deliveries are
followed back to their publisher within the files of one digest: what lies in files of another run
of the analysis is missing there, and such a path is not `complete`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from overlay.traces.jobs.job import Digest, Digests, Job, Table, of_kinds
from overlay.tracing.kinds import BROADCAST_ARRIVED, DELIVERED, FORWARDED, RELAYED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ARRIVALS = (DELIVERED.name, RELAYED.name, BROADCAST_ARRIVED.name)
SLOWEST = 50  # deliveries of a run that are followed back
LONGEST = 24  # hops; a zone of a million has trees of 20
BROADCAST = "(broadcast)"  # those of the ring have no topic


def _edges(rows: DataFrame, _nodes: DataFrame) -> DataFrame:
    times = F.col("count").cast("bigint") * F.col("weight")
    timed = F.col("duration").isNotNull()
    return (
        of_kinds(rows, *ARRIVALS)
        .groupBy(
            "run",
            "kind",
            F.coalesce("topic", F.lit(BROADCAST)).alias("topic"),
            "origin",
            F.col("peer").alias("parent"),
            "node",
            "hops",
        )
        .agg(
            F.sum(times).alias("messages"),
            F.sum(F.when(timed, times)).alias("timed"),
            F.sum(F.col("duration").cast("double") * times).alias("total"),
            F.max("duration").alias("most"),
        )
    )


EDGES = Digest(
    "edges",
    "run string, kind string, topic string, origin string, parent string, node string, hops int,"
    " messages bigint, timed bigint, total double, most bigint",
    _edges,
)

MESSAGE = ("run", "origin", "stream", "number")
DELIVERY = (*MESSAGE, "topic", "subscriber", "at", "latency", "place")


def _slow(rows: DataFrame, _nodes: DataFrame) -> DataFrame:
    """The slowest deliveries, each with all that is known of that message's way."""
    # A node that gets a hundred old messages at once would fill the list alone.
    worst_of_flow = Window.partitionBy("run", "node", "origin", "stream").orderBy(
        F.desc("duration"), "row"
    )
    worst = Window.partitionBy("run").orderBy(F.desc("duration"), "node", "row")
    slow = (
        of_kinds(rows, DELIVERED.name)
        .where(F.col("duration").isNotNull())
        .select("run", "origin", "stream", "first", "topic", "node", "time", "duration", "row")
        .withColumn("own_place", F.row_number().over(worst_of_flow))
        .where(F.col("own_place") <= 1)
        .withColumn("place", F.row_number().over(worst))
        .where(F.col("place") <= SLOWEST)
        .select(
            "run",
            "origin",
            "stream",
            F.col("first").alias("number"),
            F.col("topic").alias("slow_topic"),
            F.col("node").alias("subscriber"),
            F.col("time").alias("at"),
            F.col("duration").alias("latency"),
            "place",
        )
    )
    on_the_way = of_kinds(rows, DELIVERED.name, RELAYED.name, FORWARDED.name).select(
        "run", "origin", "stream", "first", "count", "kind", "node", "peer", "duration"
    )
    inside = F.col("number").between(F.col("first"), F.col("first") + F.col("count") - 1)
    is_forwarded = F.col("kind") == FORWARDED.name
    return (
        on_the_way.join(F.broadcast(slow), ["run", "origin", "stream"])
        .where(inside)
        .select(
            *MESSAGE,
            F.col("slow_topic").alias("topic"),
            *DELIVERY[len(MESSAGE) + 1 :],
            F.when(is_forwarded, F.col("peer")).otherwise(F.col("node")).alias("child"),
            F.when(is_forwarded, F.col("node")).otherwise(F.col("peer")).alias("parent"),
            # What a parent says of its child is second to what the child says itself.
            F.when(~is_forwarded, F.col("duration")).alias("after"),
        )
    )


SLOW = Digest(
    "slow",
    "run string, origin string, stream bigint, number bigint, topic string, subscriber string,"
    " at bigint, latency bigint, place int, child string, parent string, after bigint",
    _slow,
)


def _worst(digests: Digests) -> DataFrame:
    best = F.min(F.struct(F.col("after").isNull(), F.col("after"), F.col("parent")))
    ways = (
        digests[SLOW.name]
        .where(F.col("child").isNotNull() & F.col("parent").isNotNull())
        .groupBy(*DELIVERY, "child")
        .agg(best.alias("best"))
        .groupBy(*DELIVERY)
        .agg(
            F.map_from_entries(
                F.collect_list(
                    F.struct(
                        F.col("child"),
                        F.struct(
                            F.col("best.parent").alias("parent"), F.col("best.after").alias("after")
                        ),
                    )
                )
            ).alias("edges")
        )
    )
    walked = ways.withColumn("stops", _walk()).withColumn("stops", F.reverse("stops"))
    legs = F.transform(
        F.sequence(F.lit(1), F.size("stops") - 1),
        lambda place: F.struct(
            (_stop(place, "after") - _stop(place - 1, "after")).alias("micros"),
            _stop(place - 1, "node").alias("source"),
            _stop(place, "node").alias("target"),
        ),
    )
    in_order = Window.partitionBy("run").orderBy(F.desc("latency"), "subscriber", "at")
    return (
        walked.where(F.size("stops") > 1)
        .withColumn("slowest", F.array_max(F.filter(legs, lambda leg: leg["micros"].isNotNull())))
        .select(
            "run",
            F.row_number().over(in_order).alias("place"),
            "topic",
            "origin",
            "number",
            "subscriber",
            "at",
            "latency",
            (F.size("stops") - 1).alias("hops"),
            F.array_join(F.col("stops.node"), " → ").alias("path"),
            F.array_join(F.transform("stops.after", _text), " → ").alias("arrived"),
            F.col("slowest.source").alias("slowest_from"),
            F.col("slowest.target").alias("slowest_to"),
            F.col("slowest.micros").alias("slowest_leg"),
            (F.col("stops")[0]["node"] == F.col("origin")).alias("complete"),
        )
        .where(F.col("place") <= SLOWEST)
        .orderBy("run", "place")
    )


def _walk() -> Column:
    """From the subscriber back to the publisher: an array of stops."""
    start = F.array(F.struct(F.col("subscriber").alias("node"), F.col("latency").alias("after")))

    def further(stops: Column, _turn: Column) -> Column:
        here = F.element_at(stops, -1)["node"]
        parent = F.col("edges")[here]["parent"]
        known = F.col("edges")[parent]["after"]
        after = F.when(parent == F.col("origin"), F.lit(0).cast("bigint")).otherwise(known)
        stop = F.struct(parent.alias("node"), after.alias("after"))
        ends = parent.isNull() | (here == F.col("origin"))
        circles = F.exists(stops, lambda one: one["node"] == parent)
        return F.when(ends | circles, stops).otherwise(F.concat(stops, F.array(stop)))

    return F.aggregate(F.sequence(F.lit(1), F.lit(LONGEST)), start, further)


def _stop(place: Column, what: str) -> Column:
    return F.element_at(F.col("stops"), (place + 1).cast("int"))[what]


def _text(micros: Column) -> Column:
    return F.coalesce(micros.cast("string"), F.lit("?"))


def _hops(digests: Digests) -> DataFrame:
    of_topic = Window.partitionBy("run", "topic")
    return (
        digests[EDGES.name]
        .where(F.col("kind") != RELAYED.name)
        .groupBy("run", "topic", "hops")
        .agg(
            F.sum("messages").alias("messages"),
            (F.sum("total") / F.sum("timed")).alias("latency"),
        )
        .withColumn("share", F.col("messages") / F.sum("messages").over(of_topic))
        .orderBy("run", "topic", "hops")
    )


def _tree_edges(digests: Digests) -> DataFrame:
    return (
        digests[EDGES.name]
        .where(F.col("parent").isNotNull())
        .groupBy("run", "topic", "origin", "parent", "node")
        .agg(
            F.sum("messages").alias("messages"),
            F.min("hops").alias("hops"),
            (F.sum("total") / F.sum("timed")).alias("latency"),
            F.max("most").alias("latency_most"),
        )
        .orderBy("run", "topic", "origin", F.asc_nulls_last("hops"), "parent", "node")
    )


def _trees(digests: Digests) -> DataFrame:
    edges = _tree_edges(digests)
    children = edges.groupBy("run", "topic", "origin", "parent").agg(
        F.countDistinct("node").alias("children")
    )
    fan_out = children.groupBy("run", "topic", "origin").agg(
        F.max("children").alias("most_children"),
        F.avg("children").alias("mean_children"),
        F.max_by("parent", "children").alias("busiest"),
    )
    return (
        edges.groupBy("run", "topic", "origin")
        .agg(
            F.countDistinct("node").alias("nodes"),
            F.countDistinct("parent", "node").alias("edges"),
            F.max("hops").alias("depth"),
            F.sum("messages").alias("messages"),
        )
        .join(fan_out, ["run", "topic", "origin"])
        .orderBy("run", "topic", "origin")
    )


paths = Job(
    "paths",
    (EDGES, SLOW),
    (
        Table(
            "paths",
            "run string, place int, topic string, origin string, number bigint, subscriber string,"
            " at bigint, latency bigint, hops int, path string, arrived string,"
            " slowest_from string, slowest_to string, slowest_leg bigint, complete boolean",
            "the slowest deliveries: the path of each, when it reached each stop (µs after it was"
            " sent), and the leg that took longest",
            _worst,
        ),
        Table(
            "paths_hops",
            "run string, topic string, hops int, messages bigint, share double, latency double",
            "how many hops messages took, and their mean latency (µs)",
            _hops,
        ),
        Table(
            "paths_trees",
            "run string, topic string, origin string, nodes bigint, edges bigint, depth int,"
            " messages bigint, most_children bigint, mean_children double, busiest string",
            "the tree of each publisher: its size, depth and fan-out",
            _trees,
        ),
        Table(
            "paths_edges",
            "run string, topic string, origin string, parent string, node string, hops int,"
            " messages bigint, latency double, latency_most bigint",
            "the edges of these trees, with the latency (µs) at `node`",
            _tree_edges,
        ),
    ),
)
