"""The answers of the jobs once more, by DuckDB, to be compared number by number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

QUESTIONS: dict[str, tuple[str, str]] = {
    # table of ours: (its key and columns, the same from the rows)
    "traffic": (
        "select node, sent, sent_bytes, received, received_bytes from ours",
        """select node, sum(count) filter (kind = 'sent'), sum(bytes) filter (kind = 'sent'),
        sum(count) filter (kind = 'received'), sum(bytes) filter (kind = 'received')
        from t where kind in ('sent', 'received') group by 1""",
    ),
    "traffic_types": (
        "select protocol || '.' || message, sent, sent_bytes, received, received_bytes from ours",
        """select protocol || '.' || message,
        sum(count) filter (kind = 'sent'), sum(bytes) filter (kind = 'sent'),
        sum(count) filter (kind = 'received'), sum(bytes) filter (kind = 'received')
        from t where kind in ('sent', 'received') group by 1""",
    ),
    "delivery": (
        "select node || ' ' || topic, delivered, delivered - duplicated from ours",
        """select node || ' ' || topic, sum(count), count(distinct number) from
        (select node, topic, 1 as count, first + unnest(range(count)) as number
        from t where kind = 'delivered') group by 1""",
    ),
    "delivery_topics": (
        "select topic, published from ours",
        "select topic, sum(count) from t where kind = 'published' group by 1",
    ),
    "paths_hops": (
        "select topic || ' ' || hops, messages from ours",
        "select topic || ' ' || hops, sum(count) from t where kind = 'delivered' group by 1",
    ),
    "paths_edges": (
        "select topic || ' ' || parent || ' ' || node, messages, latency_most from ours",
        """select topic || ' ' || peer || ' ' || node, sum(count), max(duration)
        from t where kind = 'delivered' group by 1""",
    ),
    "membership_mistakes": (
        "select node, suspected, refuted, removed from ours",
        """select peer, count(*) filter (kind = 'member-suspected'),
        count(*) filter (kind = 'member-refuted'), count(*) filter (kind = 'member-failed')
        from t where kind in ('member-suspected', 'member-refuted', 'member-failed') group by 1""",
    ),
    "dht": (
        "select operation, count from ours",
        "select detail, count(*) from t where kind = 'dht-done' group by 1",
    ),
    "dht_lag": (
        "select role, count, least, most from ours",
        """select copy.detail, count(*), min(copy.time - owner.time), max(copy.time - owner.time)
        from t copy join t owner using (key, stream, value)
        where copy.kind = 'dht-stored' and copy.detail != 'owner'
        and owner.kind = 'dht-stored' and owner.detail = 'owner' group by 1""",
    ),
    "discovery_requests": (
        "select node, total from ours",
        "select node, duration / 1000 from t where kind = 'discovery-chosen'",
    ),
    "nodes": (
        "select node, rows, born, died from ours",
        "select node, count(*), min(time), max(time) from t group by 1",
    ),
}

RANKS = """select max(greatest(below - share, share - upto, 0)) from (
    select p.share,
        sum(n) filter (took < p.value) / sum(n) as below,
        sum(n) filter (took <= p.value) / sum(n) as upto
    from p join v on v.what = p.what group by p.what, p.share, p.value)"""


def differences(traces: Path, tables: Path) -> dict[str, Any]:
    """How many numbers were compared, how many differ, and the largest error of a percentile."""
    import duckdb

    with duckdb.connect() as duck:
        files = f"{traces}/**/*.parquet"
        duck.execute(
            f"create view t as select * from read_parquet('{files}', hive_partitioning=true)"
        )
        compared = differing = 0
        for name, (ours, theirs) in QUESTIONS.items():
            asked = ours.replace("from ours", f"from '{tables / name}.parquet'")
            found = {row[0]: row[1:] for row in duck.execute(asked).fetchall()}
            wanted = {row[0]: row[1:] for row in duck.execute(theirs).fetchall()}
            for key in found.keys() | wanted.keys():
                pairs = zip(found.get(key, ()), wanted.get(key, ()), strict=False)
                compared += max(len(found.get(key, ())), len(wanted.get(key, ())))
                differing += key not in found or key not in wanted
                differing += sum((one or 0) != (other or 0) for one, other in pairs)
        return {
            "compared": compared,
            "differing": differing,
            "rank_error": max(
                _rank_error(duck, tables / "latency.parquet", "topic", "delivered", "topic"),
                _rank_error(duck, tables / "dht.parquet", "operation", "dht-done", "detail"),
            ),
        }


def _rank_error(duck: Any, table: Path, key: str, kind: str, column: str) -> float:
    """How far, in rank, a percentile of ours is from where it should be."""
    only = "where \"by\" = 'topic'" if key == "topic" else ""
    name = '"group"' if key == "topic" else key
    duck.execute(
        f"""create or replace temp table p as select {name} as what, unnest([0.5, 0.9, 0.99, 0.999])
        as share, unnest([p50, p90, p99, p999]) as value from '{table}' {only}"""
    )
    duck.execute(
        f"""create or replace temp table v as select {column} as what, duration as took,
        sum(count * weight) as n from t where kind = '{kind}' group by all"""
    )
    ((error,),) = duck.execute(RANKS).fetchall()
    return float(error)
