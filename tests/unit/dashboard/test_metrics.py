"""Names of metrics: every counter has one, as Prometheus wants them; who uses them knows them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from nodes.dashboard.metric_names import (
    DRIVER,
    PLAIN,
    PROTOCOL,
    all_names,
    counter_of,
    helps_of,
    protocol_counters,
)
from nodes.dashboard.metrics import Families, add_node
from nodes.dashboard.metrics_reference import page
from protocols.membership.counts import MembershipCounts

ROOT = Path(__file__).parents[3]
GRAFANA = ROOT / "configs" / "grafana" / "overlay.json"
UNITS = ("ms", "milliseconds", "kb", "kilobytes", "percent", "minutes", "hours")


def test_names_and_units_are_as_prometheus_wants_them() -> None:
    names = [one.exposed for one in all_names()]
    assert len(names) == len(set(names))
    for one in all_names():
        assert re.fullmatch(r"overlay(_[a-z0-9]+)+", one.name), one.name
        assert one.exposed.endswith("_total") == (one.kind == "counter")
        assert not one.name.endswith(("_total", "_count", "_sum", "_bucket")), one.name
        assert not set(one.name.split("_")) & set(UNITS), one.name
        assert one.help
        assert all(re.fullmatch(r"[a-z_]+", label) for label in one.labels)


def test_every_counter_of_the_driver_has_a_name() -> None:
    found: set[str] = set()
    for module in (ROOT / "overlay" / "net").glob("*.py"):
        if module.stem != "ntp":  # which no status tells
            text = module.read_text(encoding="utf-8")
            found.update(re.findall(r'(?:counts|counters|found)\["([a-z ]+)"\]', text))
            found.update(re.findall(r'counts\["[^\]]*?" if \w+ else "([a-z ]+)"\]', text))
            found.update(re.findall(r'counts\["([a-z ]+)" if', text))
    assert len(found) > 15
    assert found <= set(DRIVER)


def test_every_counter_of_a_protocol_has_a_name_and_its_comment() -> None:
    known = {protocol for protocol, _ in protocol_counters()}
    assert known >= {"membership", "topics", "dht", "bdn", "broker", "discovery", "colony"}
    name = protocol_counters()["membership", "unanswered"]
    assert name.exposed == "overlay_membership_unanswered_total"
    assert name.help == "membership, unanswered: probes that ended without a sign of life"
    assert name.labels == PROTOCOL
    assert helps_of(MembershipCounts).keys() == set(MembershipCounts.__struct_fields__)
    assert counter_of("new", "odd-field").exposed == "overlay_new_odd_field_total"


def test_the_reference_is_what_the_code_says() -> None:
    kept = (ROOT / "docs" / "METRICS.md").read_text(encoding="utf-8")
    assert kept == page(), "python -m nodes.dashboard.metrics_reference > docs/METRICS.md"


def panels(one: dict[str, Any]) -> list[dict[str, Any]]:
    return [inner for panel in one["panels"] for inner in (panel, *panel.get("panels", []))]


def test_grafana_asks_for_metrics_that_there_are() -> None:
    dashboard = json.loads(GRAFANA.read_text(encoding="utf-8"))
    known = {one.exposed: one for one in all_names()}
    asked = [target["expr"] for panel in panels(dashboard) for target in panel.get("targets", ())]
    assert len(asked) > 20
    for expression in asked:
        names = re.findall(r"\boverlay_\w+", expression)
        assert names
        for name in names:
            assert name in known, name
            is_counter = known[name].kind == "counter"
            assert is_counter == (f"rate({name}" in expression), expression
        for label in re.findall(r"by \(([^)]*)\)", expression):
            assert set(label.split(", ")) <= set(known[names[0]].labels), expression
    ids = [panel["id"] for panel in panels(dashboard)]
    assert len(ids) == len(set(ids))
    for panel in panels(dashboard):
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24


def test_a_supervisor_tells_less() -> None:
    families = Families()
    add_node(families, ("o", "n", "z"), {})
    assert list(families.collect()) == []


def test_all_of_a_node_say_which_node() -> None:
    for one in PLAIN:
        if "dashboard" not in one.name:
            assert one.labels[:3] == ("overlay", "node", "zone"), one.name
