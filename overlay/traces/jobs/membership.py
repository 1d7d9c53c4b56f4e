"""Members of zones: who was noticed when, who was suspected wrongly, and whether views agree.

A node lives from its first row to its end (`jobs/nodes.py`). A suspicion or a removal is wrong when
its subject lives and was not frozen at that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from overlay.traces.jobs.job import Digest, Digests, Job, Table, of_kinds
from overlay.traces.jobs.nodes import NODES, STEPS, grid, lives
from overlay.tracing.kinds import (
    MEMBER_FAILED,
    MEMBER_JOINED,
    MEMBER_LEFT,
    MEMBER_REFUTED,
    MEMBER_SUSPECTED,
    PAUSED,
    RESUMED,
    VIEW_CHANGED,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ABOUT_MEMBERS = (
    *(MEMBER_JOINED.name, MEMBER_SUSPECTED.name, MEMBER_REFUTED.name, MEMBER_FAILED.name),
    *(MEMBER_LEFT.name, VIEW_CHANGED.name, PAUSED.name, RESUMED.name),
)
FOR_EVER = 2**62  # µs
SLACK = 1_000_000  # µs: a silent node lived at least until its last row


def _digest(rows: DataFrame, _nodes: DataFrame) -> DataFrame:
    """They are few: the rows themselves."""
    return of_kinds(rows, *ABOUT_MEMBERS)


MEMBERS = Digest(
    "members",
    "run string, kind string, time bigint, row bigint, node string, life bigint, scope string,"
    " peer string, count int, detail string, key string",
    _digest,
)


def _lives(digests: Digests) -> DataFrame:
    following = Window.partitionBy("run", "node").orderBy("life")
    return lives(digests[NODES.name]).select(
        "run",
        "node",
        "life",
        "born",
        "died",
        "ended",
        F.coalesce(F.lead("born").over(following), F.lit(FOR_EVER)).alias("reborn"),
    )


def _subjects(digests: Digests) -> DataFrame:
    """Lives that events are about."""
    return (
        _lives(digests).withColumnRenamed("node", "peer").withColumnRenamed("life", "subject_life")
    )


def _noticed(digests: Digests) -> DataFrame:
    """How soon births and deaths were in the views of the others, in seconds."""
    events = digests[MEMBERS.name].where(F.col("node") != F.col("peer"))
    observers = _lives(digests).select("run", "node", "life", F.col("born").alias("observer_born"))
    births = (
        events.where(F.col("kind") == MEMBER_JOINED.name)
        .join(_subjects(digests), ["run", "peer"])
        .where((F.col("time") >= F.col("born")) & (F.col("time") < F.col("reborn")))
        .join(observers, ["run", "node", "life"])
        # Who came later could not notice it earlier.
        .withColumn("begin", F.greatest("born", "observer_born"))
        .select("*", F.lit("joined").alias("what"), F.col("born").alias("since"))
    )
    slack = F.when(F.col("ended") == "silent", F.lit(SLACK)).otherwise(F.lit(0))
    deaths = (
        events.where(F.col("kind").isin(MEMBER_FAILED.name, MEMBER_LEFT.name))
        .join(_subjects(digests), ["run", "peer"])
        .where(F.col("time") >= F.greatest(F.col("died") - slack, F.col("born")))
        .where(F.col("time") < F.col("reborn") + SLACK)
        # "restarted" is said of a life after which there was another one.
        .where(~F.col("detail").eqNullSafe("restarted") | (F.col("reborn") < FOR_EVER))
        .withColumn("observer_born", F.lit(None).cast("bigint"))
        .withColumn("begin", F.col("died"))
        .select("*", F.col("ended").alias("what"), F.col("died").alias("since"))
    )
    subject = ("run", "scope", "what", "peer", "subject_life", "since")
    after = F.greatest((F.col("time") - F.col("begin")) / 1e6, F.lit(0.0))
    return (
        births.unionByName(deaths)
        .groupBy(*subject, "node", "begin")
        .agg(F.min("time").alias("time"))
        .groupBy(*subject)
        .agg(
            F.countDistinct("node").alias("observers"),
            F.min(after).alias("first"),
            F.percentile_approx(after, 0.5, 10_000).alias("median"),
            F.max(after).alias("last"),
        )
        .withColumnRenamed("peer", "node")
        .withColumnRenamed("subject_life", "life")
        .orderBy("run", "since", "scope", "node", "what")
    )


def _mistakes(digests: Digests) -> DataFrame:
    """Suspicions and removals of each subject, and how many of them were wrong."""
    members = digests[MEMBERS.name]
    frozen = _frozen(members)
    judged = (
        members.where(
            F.col("kind").isin(MEMBER_SUSPECTED.name, MEMBER_REFUTED.name, MEMBER_FAILED.name)
        )
        .where((F.col("node") != F.col("peer")) & ~F.col("detail").eqNullSafe("restarted"))
        .select("run", "scope", "kind", "node", "peer", "time", "row")
    )
    lived = (
        judged.join(_subjects(digests), ["run", "peer"])
        .where((F.col("born") <= F.col("time")) & (F.col("time") < F.col("died")))
        .join(frozen, ["run", "peer"], "left")
        .groupBy("run", "scope", "kind", "node", "peer", "row")
        .agg(
            F.max(
                F.coalesce(F.col("time").between(F.col("from_at"), F.col("to_at")), F.lit(False))
            ).alias("was_frozen")
        )
        .where(~F.col("was_frozen"))
        .withColumn("wrong", F.lit(1))
    )
    key = ["run", "scope", "kind", "node", "peer", "row"]

    def count(kind: str, what: Column) -> Column:
        return F.sum(F.when(F.col("kind") == kind, what).otherwise(0))

    wrong = F.coalesce("wrong", F.lit(0))
    return (
        judged.join(lived.select(*key, "wrong"), key, "left")
        .groupBy("run", "scope", "peer")
        .agg(
            count(MEMBER_SUSPECTED.name, F.lit(1)).alias("suspected"),
            count(MEMBER_SUSPECTED.name, wrong).alias("suspected_wrongly"),
            count(MEMBER_REFUTED.name, F.lit(1)).alias("refuted"),
            count(MEMBER_FAILED.name, F.lit(1)).alias("removed"),
            count(MEMBER_FAILED.name, wrong).alias("removed_wrongly"),
        )
        .withColumnRenamed("peer", "node")
        .orderBy("run", "scope", F.desc("removed_wrongly"), F.desc("suspected_wrongly"), "node")
    )


def _frozen(members: DataFrame) -> DataFrame:
    """When nodes were stopped by the simulator; SLACK longer, until they have caught up."""
    order = Window.partitionBy("run", "node", "life").orderBy("row")
    pauses = members.where(F.col("kind").isin(PAUSED.name, RESUMED.name))
    return (
        pauses.withColumn("to_at", F.coalesce(F.lead("time").over(order), F.lit(FOR_EVER)) + SLACK)
        .where(F.col("kind") == PAUSED.name)
        .select("run", F.col("node").alias("peer"), F.col("time").alias("from_at"), "to_at")
    )


def _views(digests: Digests) -> DataFrame:
    """Which share of the members hold the view that most hold, over time."""
    order = Window.partitionBy("run", "scope", "node", "life").orderBy("row")
    held = (
        digests[MEMBERS.name]
        .where(F.col("kind") == VIEW_CHANGED.name)
        .withColumn("until", F.lead("time").over(order))
        .join(_lives(digests).select("run", "node", "life", "died"), ["run", "node", "life"])
        .join(F.broadcast(grid(digests[NODES.name])), "run")
    )

    def point(time: Column) -> Column:
        return F.ceil((time - F.col("origin_at")) / F.col("step")).cast("int")

    first = F.greatest(point(F.col("time")), F.lit(0))
    last = F.least(point(F.coalesce("until", F.col("died") + 1)) - 1, F.lit(STEPS))
    on_grid = held.where(first <= last).select(
        "run",
        "scope",
        "key",
        "count",
        "origin_at",
        "step",
        F.explode(F.sequence(first, last)).alias("point"),
    )
    same = on_grid.groupBy("run", "scope", "point", "key").agg(
        F.count("*").alias("holders"),
        F.sum("count").alias("sizes"),
        F.min("count").alias("smallest"),
        F.max("count").alias("largest"),
        (F.any_value("origin_at") + F.col("point") * F.any_value("step")).alias("at"),
    )
    return (
        same.groupBy("run", "scope", "at")
        .agg(
            F.sum("holders").alias("members"),
            F.count("*").alias("views"),
            (F.max("holders") / F.sum("holders")).alias("agreement"),
            (F.sum("sizes") / F.sum("holders")).alias("size"),
            F.min("smallest").alias("smallest"),
            F.max("largest").alias("largest"),
        )
        .orderBy("run", "scope", "at")
    )


membership = Job(
    "membership",
    (MEMBERS,),
    (
        Table(
            "membership",
            "run string, scope string, what string, node string, life bigint, since bigint,"
            " observers bigint, first double, median double, last double",
            "how long (s) until others had noticed that a node joined, stopped, crashed or fell"
            " silent: the first, the median and the last of them",
            _noticed,
        ),
        Table(
            "membership_mistakes",
            "run string, scope string, node string, suspected bigint, suspected_wrongly bigint,"
            " refuted bigint, removed bigint, removed_wrongly bigint",
            "how often others suspected and removed a node, and how often it lived",
            _mistakes,
        ),
        Table(
            "membership_views",
            "run string, scope string, at bigint, members bigint, views bigint, agreement double,"
            " size double, smallest int, largest int",
            "over time: members, different views, and the share that holds the most common one",
            _views,
        ),
    ),
)
