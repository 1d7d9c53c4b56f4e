"""Percentiles of any number of weighted values, from histograms that add up.

A bin keeps 11 significant bits of a value in µs (0.05 % of it; below 2 ms every µs is its own) with
its smallest and largest value, and a percentile is interpolated between those. `percentile_approx`
knows no weights, and a row may stand for a thousand messages; nor do its sketches add up over runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BITS = 11
BIN_COLUMNS = "bin bigint, n bigint, least bigint, most bigint, total double"
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
CDF_POINTS = 200


def bin_of(value: str) -> Column:
    """The lower end of a value's bin; of a negative one, that of its absolute value, negated."""
    size = f"abs({value})"
    shift = f"greatest(cast(floor(log2(greatest({size}, 1))) as int) - {BITS}, 0)"
    return F.expr(
        f"cast(sign({value}) as bigint) * shiftleft(shiftright({size}, {shift}), {shift})"
    )


def bins(value: str, times: str | Column) -> tuple[Column, ...]:
    """Aggregates that make up a bin; group by `bin` beside your own columns."""
    weight = F.col(times) if isinstance(times, str) else times
    return (
        F.sum(weight).cast("bigint").alias("n"),
        F.min(value).alias("least"),
        F.max(value).alias("most"),
        F.sum(F.col(value).cast("double") * weight).alias("total"),
    )


def merge(digest: DataFrame, by: Sequence[str]) -> DataFrame:
    """Histograms of several files, or of several groups, as one."""
    return digest.groupBy(*by, "bin").agg(
        F.sum("n").alias("n"),
        F.min("least").alias("least"),
        F.max("most").alias("most"),
        F.sum("total").alias("total"),
    )


def ranked(digest: DataFrame, by: Sequence[str]) -> DataFrame:
    """Merged bins with how many values lie `before` each, and how many there are in `all`."""
    whole = Window.partitionBy(*by)
    upto = whole.orderBy("bin").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        merge(digest, by)
        .withColumn("before", F.sum("n").over(upto) - F.col("n"))
        .withColumn("all", F.sum("n").over(whole))
    )


def percentiles(digest: DataFrame, by: Sequence[str]) -> DataFrame:
    """`count`, `mean`, `least`, `most` and PERCENTILES of each group, in the unit of the values."""
    return (
        ranked(digest, by)
        .groupBy(*by)
        .agg(
            F.sum("n").alias("count"),
            (F.sum("total") / F.sum("n")).alias("mean"),
            F.min("least").alias("least"),
            F.max("most").alias("most"),
            *(_value_at(share).alias(name) for name, share in PERCENTILES.items()),
        )
    )


def _value_at(share: float) -> Column:
    """The value of that rank: interpolated in the bin that reaches it."""
    rank = F.col("all") * F.lit(share)
    inside = (rank - F.col("before")) / F.col("n")
    value = F.col("least") + (F.col("most") - F.col("least")) * inside
    is_there = (F.col("before") < rank) & (F.col("before") + F.col("n") >= rank)
    return F.min(F.when(is_there, value))


def cdf(digest: DataFrame, by: Sequence[str]) -> DataFrame:
    """At most CDF_POINTS points of each group's distribution: `share` of values up to `value`."""
    reached = (F.col("before") + F.col("n")) / F.col("all")
    return (
        ranked(digest, by)
        .withColumn("share", reached)
        .groupBy(*by, F.floor(F.col("share") * CDF_POINTS).alias("point"))
        .agg(F.max("most").alias("value"), F.max("share").alias("share"))
        .drop("point")
    )
