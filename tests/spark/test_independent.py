"""The same answers by another engine: counts are equal, percentiles are off by 0.1 % in rank."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from overlay.traces.jobs.histogram import PERCENTILES
from tests.spark.conftest import Analysed

RANK_ERROR = 0.001


@pytest.fixture(scope="module")
def duck(analysed: Analysed) -> Iterator[Any]:
    with duckdb.connect() as database:
        files = f"{analysed.traces}/**/*.parquet"
        database.execute(
            f"create view t as select * from read_parquet('{files}', hive_partitioning=true)"
        )
        yield database


def asked(duck: Any, question: str) -> dict[Any, Any]:
    """By the first column; the rest as a tuple, or alone."""
    rows = duck.execute(question).fetchall()
    return {row[0]: row[1] if len(row) == 2 else row[1:] for row in rows}


GROUPS = {
    "topic": "topic",
    "hops": "hops::varchar",
    "zones": "zone_of.zone || ' → ' || t.zone",
}


@pytest.mark.parametrize("by", GROUPS)
def test_latency(analysed: Analysed, duck: Any, by: str) -> None:
    values = duck.execute(
        f"""select {GROUPS[by]} as what, t.duration, sum(t.count * t.weight) as times
        from t join (select distinct node, zone from t) zone_of on zone_of.node = t.origin
        where kind = 'delivered' group by all order by what, t.duration"""
    ).fetchall()
    found = {row["group"]: row for row in analysed.rows("latency") if row["by"] == by}
    assert {what for what, _, _ in values} == set(found)
    for group, row in found.items():
        own = [(value, int(times)) for what, value, times in values if what == group]
        assert row["count"] == sum(times for _, times in own)
        assert (row["least"], row["most"]) == (own[0][0], own[-1][0])
        mean = sum(value * times for value, times in own) / row["count"]
        assert row["mean"] == pytest.approx(mean)
        for name, share in PERCENTILES.items():
            below = sum(times for value, times in own if value < row[name]) / row["count"]
            upto = sum(times for value, times in own if value <= row[name]) / row["count"]
            assert below - RANK_ERROR <= share <= upto + RANK_ERROR, (group, name)


def test_the_cdf_is_the_distribution(analysed: Analysed, duck: Any) -> None:
    points = [row for row in analysed.rows("latency_cdf") if row["by"] == "all"]
    for point in points[:: len(points) // 20]:
        ((share,),) = duck.execute(
            "select sum(case when duration <= ? then count else 0 end) / sum(count)"
            " from t where kind = 'delivered'",
            [point["value"]],
        ).fetchall()
        assert point["share"] == pytest.approx(share, abs=RANK_ERROR)


def test_delivery(analysed: Analysed, duck: Any) -> None:
    """Message by message, instead of by ranges."""
    duck.execute(
        """create temp table each as select node, topic, row, first + unnest(range(count)) as number
        from t where kind = 'delivered'"""
    )
    counted = asked(
        duck,
        """with seen as (select *, max(number) over (partition by node, topic order by row, number
            rows between unbounded preceding and 1 preceding) as reached,
            row_number() over (partition by node, topic, number order by row) as turn from each),
        wanted as (select topic, sum(count) as published from t where kind = 'published' group by 1)
        select node || ' ' || seen.topic, count(*), count(*) filter (turn > 1),
            count(*) filter (turn = 1 and number < reached),
            any_value(published) - count(distinct number)
        from seen join wanted using (topic) group by node, seen.topic""",
    )
    found = {
        f"{row['node']} {row['topic']}": (
            row["delivered"],
            row["duplicated"],
            row["out_of_order"],
            row["lost"] + row["outstanding"],
        )
        for row in analysed.rows("delivery")
    }
    assert found == counted


def test_traffic(analysed: Analysed, duck: Any) -> None:
    question = """select {key},
        sum(count) filter (kind = 'sent'), sum(bytes) filter (kind = 'sent'),
        sum(count) filter (kind = 'received'), sum(bytes) filter (kind = 'received')
        from t where kind in ('sent', 'received') group by 1"""
    columns = ("sent", "sent_bytes", "received", "received_bytes")
    nodes = {row["node"]: tuple(row[name] for name in columns) for row in analysed.rows("traffic")}
    assert nodes == asked(duck, question.format(key="node"))
    types = {
        f"{row['protocol']}.{row['message']}": tuple(row[name] for name in columns)
        for row in analysed.rows("traffic_types")
    }
    assert types == asked(duck, question.format(key="protocol || '.' || message"))
    links = {
        f"{row['source']} {row['target']}": row["sent_bytes"]
        for row in analysed.rows("traffic_links")
    }
    counted = asked(
        duck,
        "select node || ' ' || peer, sum(bytes)::bigint from t where kind = 'sent' group by 1",
    )
    assert {name: size for name, size in links.items() if size} == counted


def test_paths(analysed: Analysed, duck: Any) -> None:
    hops = {f"{row['topic']} {row['hops']}": row["messages"] for row in analysed.rows("paths_hops")}
    assert hops == asked(
        duck,
        "select topic || ' ' || hops, sum(count)::bigint from t"
        " where kind = 'delivered' group by 1",
    )
    edges = {
        f"{row['topic']} {row['parent']} {row['node']}": (row["messages"], row["latency_most"])
        for row in analysed.rows("paths_edges")
    }
    assert edges == asked(
        duck,
        "select topic || ' ' || peer || ' ' || node, sum(count)::bigint, max(duration)"
        " from t where kind = 'delivered' group by 1",
    )
    worst = [row["latency"] for row in analysed.rows("paths")]
    counted = duck.execute(
        "select max(duration) as most from t where kind = 'delivered'"
        " group by node, origin, stream order by most desc limit 50"
    ).fetchall()
    assert worst == [most for (most,) in counted]


def test_members(analysed: Analysed, duck: Any) -> None:
    joined = {
        row["node"]: row["observers"]
        for row in analysed.rows("membership")
        if row["what"] == "joined"
    }
    assert joined == asked(
        duck, "select peer, count(distinct node) from t where kind = 'member-joined' group by 1"
    )
    suspected = {
        row["node"]: row["suspected"]
        for row in analysed.rows("membership_mistakes")
        if row["suspected"]
    }
    assert suspected == asked(
        duck, "select peer, count(*) from t where kind = 'member-suspected' group by 1"
    )


def same_ranks(row: dict[str, Any], values: list[int]) -> None:
    """As many values, and each percentile where it should be."""
    assert row["count"] == len(values)
    for name, share in PERCENTILES.items():
        below = sum(value < row[name] for value in values) / len(values)
        upto = sum(value <= row[name] for value in values) / len(values)
        assert below - RANK_ERROR <= share <= upto + RANK_ERROR


def test_the_table_and_discovery(analysed: Analysed, duck: Any) -> None:
    operations = {row["operation"]: row for row in analysed.rows("dht")}
    exact = duck.execute(
        "select detail, duration from t where kind = 'dht-done' order by detail, duration"
    ).fetchall()
    assert {detail for detail, _ in exact} == set(operations)
    for operation, row in operations.items():
        same_ranks(row, [took for detail, took in exact if detail == operation])
    lags = duck.execute(
        "select copy.time - owner.time from t copy join t owner using (key, stream, value)"
        " where copy.kind = 'dht-stored' and copy.detail = 'replica'"
        " and owner.kind = 'dht-stored' and owner.detail = 'owner'"
    ).fetchall()
    (lag,) = analysed.rows("dht_lag")
    same_ranks(lag, [one for (one,) in lags])
    discovered = {row["node"]: row["total"] for row in analysed.rows("discovery_requests")}
    assert discovered == asked(
        duck, "select node, duration / 1000 from t where kind = 'discovery-chosen'"
    )


def test_anomalies(analysed: Analysed, duck: Any) -> None:
    """The median and the deviation of one measure, by hand."""
    ((median,),) = duck.execute(
        "select quantile_disc(bytes, 0.5) from (select sum(bytes) as bytes from t"
        " where kind = 'sent' group by node)"
    ).fetchall()
    (row,) = [
        one
        for one in analysed.rows("anomalies")
        if (one["what"], one["measure"]) == ("node", "bytes sent")
    ]
    assert row["median"] == float(median)
    assert row["value"] == float(analysed.answers.sent[row["subject"]][1])
