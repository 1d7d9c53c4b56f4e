"""The jobs find what was planted in a synthetic run, to the last message."""

from __future__ import annotations

from math import exp
from statistics import NormalDist

import pytest

from tests.spark.conftest import SMALL, Analysed

RUN = SMALL.run


def test_everything_was_read(analysed: Analysed) -> None:
    assert analysed.told["rows"] == analysed.answers.rows
    assert analysed.told["files"] == len(analysed.answers.files)
    assert analysed.told["skipped"] == []


def test_delivery_knows_each_loss_repeat_and_swap(analysed: Analysed) -> None:
    found = {
        f"{row['node']} {row['origin']} {row['topic']}": {
            name: row[name]
            for name in ("expected", "delivered", "duplicated", "out_of_order", "lost")
        }
        for row in analysed.rows("delivery")
    }
    wanted = {
        name: {field: getattr(flow, field) for field in flow.__struct_fields__}
        for name, flow in analysed.answers.flows.items()
    }
    assert found == wanted
    assert all(
        flow["lost"] and flow["duplicated"] and flow["out_of_order"] for flow in found.values()
    )


def test_delivery_by_topic_adds_up(analysed: Analysed) -> None:
    topics = {row["topic"]: row for row in analysed.rows("delivery_topics")}
    assert {name: row["published"] for name, row in topics.items()} == analysed.answers.published
    lost = sum(flow.lost for flow in analysed.answers.flows.values())
    assert sum(row["lost"] for row in topics.values()) == lost
    assert {row["subscribers"] for row in topics.values()} == {SMALL.subscribers}


def test_traffic_is_counted_to_the_byte(analysed: Analysed) -> None:
    for row in analysed.rows("traffic"):
        assert [row["sent"], row["sent_bytes"]] == analysed.answers.sent[row["node"]]
        assert [row["received"], row["received_bytes"]] == analysed.answers.received[row["node"]]
    timeline = analysed.rows("timeline")
    sent = sum(size for _, size in analysed.answers.sent.values())
    assert sum(row["sent_bytes"] for row in timeline) == sent
    assert sum(row["published"] for row in timeline) == sum(analysed.answers.published.values())


def test_membership_knows_the_dead_and_the_slandered(analysed: Analysed) -> None:
    (death,) = [row for row in analysed.rows("membership") if row["what"] == "crashed"]
    times = [after for (after,) in analysed.answers.detected.values()]
    assert death["node"] == SMALL.names[SMALL.crashed]
    assert death["observers"] == len(times)
    assert (death["first"], death["last"]) == (min(times), max(times))
    mistakes = {row["node"]: row for row in analysed.rows("membership_mistakes")}
    slandered = mistakes[SMALL.names[SMALL.slandered]]
    assert slandered["suspected_wrongly"] == sum(analysed.answers.suspected_wrongly.values())
    assert slandered["suspected"] == slandered["refuted"] == slandered["suspected_wrongly"]
    assert sum(row["removed_wrongly"] for row in mistakes.values()) == 0


def test_views_agree_but_for_the_moment_of_death(analysed: Analysed) -> None:
    views = analysed.rows("membership_views")
    zones = {SMALL.zone(number) for number in range(SMALL.zones)}
    assert {row["scope"] for row in views} == zones
    assert all(row["agreement"] == 1 for row in views if row["at"] > SMALL.crash_at + 2_000_000)
    sizes = {row["size"] for row in views if row["scope"] == SMALL.zone(SMALL.crashed)}
    assert sizes == {SMALL.nodes // SMALL.zones, SMALL.nodes // SMALL.zones - 1}


def test_the_slowest_path_is_followed_to_its_publisher(analysed: Analysed) -> None:
    worst = analysed.rows("paths")[0]
    answers = analysed.answers
    assert worst["path"] == " → ".join(answers.slow_path)
    assert worst["latency"] == answers.slow_latency
    assert worst["slowest_leg"] == answers.slow_leg
    assert [worst["slowest_from"], worst["slowest_to"]] == answers.slow_path[-2:]
    assert worst["complete"]


def test_trees_are_rebuilt(analysed: Analysed) -> None:
    for tree in analysed.rows("paths_trees"):
        assert tree["nodes"] == tree["edges"] == SMALL.subscribers
        assert tree["most_children"] == 2
        assert tree["depth"] == (SMALL.subscribers + 1).bit_length() - 1


def test_the_table_is_counted(analysed: Analysed) -> None:
    by_operation: dict[str, int] = {}
    for name, count in analysed.answers.lookups.items():
        operation = name.partition(" ")[2]
        by_operation[operation] = by_operation.get(operation, 0) + count
    assert {row["operation"]: row["count"] for row in analysed.rows("dht")} == by_operation
    assert {row["node"]: row["keys"] for row in analysed.rows("dht_balance")} == (
        analysed.answers.keys
    )
    (lag,) = analysed.rows("dht_lag")
    assert lag["role"] == "replica"
    least, most, total = zip(*analysed.answers.lags.values(), strict=True)
    copies = SMALL.nodes * SMALL.writes
    assert (lag["count"], lag["least"], lag["most"]) == (copies, min(least), max(most))
    assert lag["mean"] == pytest.approx(sum(total) / copies)


def test_discoveries_have_their_parts(analysed: Analysed) -> None:
    found = {row["node"]: row for row in analysed.rows("discovery_requests")}
    assert {name: [row["total"], row["waiting"]] for name, row in found.items()} == (
        analysed.answers.discoveries
    )
    assert {row["broker"] for row in found.values()} == {"broker1"}
    assert {row["responses"] for row in found.values()} == {3}
    for row in analysed.rows("discovery"):
        shares = row["waiting_share"] + row["choosing_share"] + row["pinging_share"]
        assert shares == pytest.approx(100)


def test_requests_for_resources_have_their_costs(analysed: Analysed) -> None:
    found = {row["node"]: row for row in analysed.rows("resource_requests")}
    assert {name: row["total"] for name, row in found.items()} == analysed.answers.finds
    for row in found.values():
        assert (row["found"], row["end"], row["hops"]) == (3, "all answered", 2)
        assert (row["request_messages"], row["result_messages"], row["shared"]) == (2, 3, 1)
    for row in analysed.rows("resources"):
        assert row["requests"] == row["complete"] == row["shared"]


def test_who_is_out_of_line_is_named(analysed: Analysed) -> None:
    found = {(row["subject"], row["measure"]) for row in analysed.rows("anomalies")}
    assert (analysed.answers.busy, "bytes sent") in found
    assert (analysed.answers.jumping, "clock jump (µs)") in found
    slow_link = " → ".join(analysed.answers.slow_path[-2:])
    nodes = {subject for subject, _ in found if " → " not in subject}
    known = {analysed.answers.busy, analysed.answers.jumping, analysed.answers.slow_path[-1]}
    assert nodes <= known | {SMALL.names[SMALL.slandered]}, slow_link


def test_latency_follows_its_distribution(analysed: Analysed) -> None:
    """Each hop is lognormal with σ = 0.5: at one hop the p90 is the p50 × exp(1.2816 σ)."""
    rows = {(row["by"], row["group"]): row for row in analysed.rows("latency")}
    one_hop = rows["hops", "1"]
    assert one_hop["p50"] == pytest.approx(950, rel=0.1)  # 800 to 1,100 µs, by topic
    ratio = exp(NormalDist().inv_cdf(0.9) * 0.5)
    assert one_hop["p90"] / one_hop["p50"] == pytest.approx(ratio, rel=0.1)
    assert rows["all", "all"]["most"] == analysed.answers.slow_latency
    assert rows["all", "all"]["count"] == sum(f.delivered for f in analysed.answers.flows.values())
    own = 200 + 10 * 5.5  # each end's clock error, on the average
    assert rows["all", "all"]["clock_error"] == pytest.approx(2 * own, rel=0.1)


def test_lives_are_known(analysed: Analysed) -> None:
    ended = {row["node"]: row["ended"] for row in analysed.rows("nodes")}
    dead = SMALL.names[SMALL.crashed]
    assert ended == {name: "crashed" if name == dead else "stopped" for name in SMALL.names}
    assert sum(row["rows"] for row in analysed.rows("nodes")) == analysed.answers.rows
