"""The distributed table: how long operations took, who holds what, and how late replicas are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from overlay.traces.jobs.histogram import BIN_COLUMNS, bin_of, bins, percentiles
from overlay.traces.jobs.job import Digest, Digests, Job, Table, of_kinds
from overlay.traces.jobs.nodes import settle
from overlay.tracing.kinds import DHT_DONE, DHT_LOAD, DHT_STORED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OWNER = "owner"


def _operations(rows: DataFrame, _nodes: DataFrame) -> DataFrame:
    timed = of_kinds(rows, DHT_DONE.name).where(F.col("duration").isNotNull())
    hops = F.coalesce("hops", F.lit(0)) * F.col("weight")
    return timed.groupBy("run", "detail", bin_of("duration").alias("bin")).agg(
        *bins("duration", F.col("weight").cast("bigint")), F.sum(hops).alias("hops")
    )


OPERATIONS = Digest(
    "dht_operations",
    f"run string, detail string, {BIN_COLUMNS}, hops bigint",
    _operations,
)


def _loads(rows: DataFrame, _nodes: DataFrame) -> DataFrame:
    """The last word of each node on what it holds."""
    last = F.max(F.struct("row", "time", F.col("count").alias("keys"), "bytes")).alias("last")
    return (
        of_kinds(rows, DHT_LOAD.name)
        .groupBy("run", "node", "life", "detail")
        .agg(last)
        .select("run", "node", "life", "detail", "last.*")
    )


LOADS = Digest(
    "dht_loads",
    "run string, node string, life bigint, detail string, row bigint, time bigint, keys bigint,"
    " bytes bigint",
    _loads,
)


def _versions(rows: DataFrame, _nodes: DataFrame) -> DataFrame:
    """When the owner stored a version, and when others did; their rows are in other files."""
    by_owner = F.col("detail") == OWNER
    copy = F.struct(F.col("detail").alias("role"), "time")
    return (
        of_kinds(rows, DHT_STORED.name)
        .groupBy("run", F.xxhash64("key", "stream", "value").alias("version"))
        .agg(
            F.min(F.when(by_owner, F.col("time"))).alias("stored"),
            F.collect_list(F.when(~by_owner, copy)).alias("copies"),
        )
    )


VERSIONS = Digest(
    "dht_versions",
    "run string, version bigint, stored bigint, copies array<struct<role: string, time: bigint>>",
    _versions,
)


def _lookups(digests: Digests) -> DataFrame:
    digest = digests[OPERATIONS.name]
    key = ["run", "detail"]
    hops = digest.groupBy(*key).agg((F.sum("hops") / F.sum("n")).alias("hops"))
    return (
        percentiles(digest, key)
        .join(hops, key)
        .select("*", F.col("detail").alias("operation"))
        .orderBy("run", "operation")
    )


def _balance(digests: Digests) -> DataFrame:
    latest = Window.partitionBy("run", "node", "detail").orderBy(F.desc("life"), F.desc("row"))
    of_role = Window.partitionBy("run", "detail")
    zones = settle(digests["nodes"]).select("run", "node", "zone")
    return (
        digests[LOADS.name]
        .withColumn("place", F.row_number().over(latest))
        .where(F.col("place") == 1)
        .withColumn("ratio", F.col("keys") / F.avg("keys").over(of_role))
        .join(zones, ["run", "node"], "left")
        .withColumn("role", F.col("detail"))
        .orderBy("run", "role", F.desc("keys"), "node")
    )


def _lag(digests: Digests) -> DataFrame:
    """A copy whose owner left no row (it died, or its row was dropped) has no lag."""
    whole = (
        digests[VERSIONS.name]
        .groupBy("run", "version")
        .agg(F.min("stored").alias("stored"), F.flatten(F.collect_list("copies")).alias("copies"))
        .where(F.col("stored").isNotNull())
        .select("run", "stored", F.explode("copies").alias("copy"))
    )
    lags = whole.select("run", "copy.role", (F.col("copy.time") - F.col("stored")).alias("lag"))
    binned = lags.groupBy("run", "role", bin_of("lag").alias("bin")).agg(*bins("lag", F.lit(1)))
    return percentiles(binned, ["run", "role"]).orderBy("run", "role")


_TIMES = (
    "count bigint, mean double, least bigint, p50 double, p90 double, p99 double, p999 double,"
    " most bigint"
)

dht = Job(
    "dht",
    (OPERATIONS, LOADS, VERSIONS),
    (
        Table(
            "dht",
            f"run string, operation string, {_TIMES}, hops double",
            "how long (µs) operations took, by name and outcome, and their mean hops",
            _lookups,
        ),
        Table(
            "dht_balance",
            "run string, role string, zone string, node string, keys bigint, bytes bigint,"
            " ratio double",
            "what each node held last; `ratio` 1 is the mean of its role",
            _balance,
        ),
        Table(
            "dht_lag",
            f"run string, role string, {_TIMES}",
            "how long (µs) after the owner others stored the same version, by overlay time",
            _lag,
        ),
    ),
)
