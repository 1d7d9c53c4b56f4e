"""The counters of all nodes for Prometheus, asked when they are scraped."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from nodes.dashboard import metric_names as names
from nodes.dashboard.hub import GONE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nodes.dashboard.hub import Hub, Watched
    from nodes.dashboard.metric_names import Name

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
ASKED = ["status", "glance", "time", "dht-stats", "topics", "trace", "colony"]
WITHIN = 5.0  # s: a node that is slower is left out, and Prometheus sees a gap
TOPICS = 500  # of a node at most: each is a series


class Families:
    """Samples by metric, for one answer."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}

    def add(self, name: Name, labels: tuple[str, ...], value: float) -> None:
        """One sample; labels in the order of the name's."""
        family = self._found.get(name.name)
        if family is None:
            kind = CounterMetricFamily if name.kind == "counter" else GaugeMetricFamily
            self._found[name.name] = family = kind(name.name, name.help, labels=name.labels)
        family.add_metric(labels, value)

    def collect(self) -> Iterator[Any]:
        """What prometheus-client asks a collector for."""
        yield from self._found.values()

    def describe(self) -> Iterator[Any]:
        """Nothing: so that registering collects nothing."""
        yield from ()


async def scrape(hub: Hub, own: str, itself: dict[str, int]) -> bytes:
    """Ask the nodes, or the one that this is a role of, and write down what they tell."""
    began = time.perf_counter()
    families = Families()
    nodes = [node for node in hub.nodes.values() if not own or node.name == own]
    answers: dict[int, dict[str, Any]] = {}
    async with trio.open_nursery() as nursery:
        for number, node in enumerate(nodes):
            nursery.start_soon(_ask, node, number, answers)
    for number, node in enumerate(nodes):
        if number in answers:
            add_node(families, (node.overlay, node.name, node.zone), answers[number])
    _add_itself(families, itself, len(answers), time.perf_counter() - began)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(families)
    text: bytes = generate_latest(registry)
    return text


async def _ask(node: Watched, number: int, answers: dict[int, dict[str, Any]]) -> None:
    with suppress(*GONE), trio.move_on_after(WITHIN):
        async with node.source.look() as look:
            await look.ask(ASKED)
            answers[number] = await look.answer()


def add_node(families: Families, who: tuple[str, ...], told: dict[str, Any]) -> None:
    """All of one node."""
    if "status" in told:
        _add_status(families, who, told["status"])
    if "glance" in told:
        glance = told["glance"]
        families.add(names.MEMBERS, who, glance["members"])
        families.add(names.DELEGATE, who, glance["delegate"])
        families.add(names.GATEWAY, who, glance["gateway_of"])
    if told.get("time", {}).get("synchronised"):
        clock = told["time"]
        families.add(names.OFFSET, who, clock["offset"])
        families.add(names.ERROR, who, clock["error"])
        families.add(names.DRIFT, who, clock["drift"])
        families.add(names.STRATUM, who, clock["stratum"])
    if told.get("dht-stats", {}).get("serves"):
        table = told["dht-stats"]
        for name, field in (
            (names.SHARDS, "shards"),
            (names.LEADS, "leads"),
            (names.KEYS, "keys"),
            (names.STORED, "bytes"),
            (names.MOVING, "moving"),
            (names.LOST_MAJORITY, "without_majority"),
        ):
            families.add(name, who, table[field])
    if "topics" in told:
        _add_topics(families, who, told["topics"])
    if "rows" in told.get("trace", {}):
        families.add(names.TRACE_ROWS, who, told["trace"]["rows"])
        families.add(names.TRACE_DROPPED, who, told["trace"]["dropped"])
    if told.get("colony", {}).get("leads"):
        families.add(names.TREE, who, len(told["colony"]["individuals"]))


def _add_status(families: Families, who: tuple[str, ...], status: dict[str, Any]) -> None:
    driver = status["driver"]
    families.add(names.INFO, (*who, str(status["insecure"]).lower()), 1)
    families.add(names.UPTIME, who, driver["uptime"])
    states: dict[str, int] = {}
    for link in driver["links"]:
        states[link["state"]] = states.get(link["state"], 0) + 1
    for state, count in states.items():
        families.add(names.LINKS, (*who, state), count)
    families.add(names.SESSIONS, who, len(driver["sessions"]))
    for lane, field in (("first", "waiting"), ("bulk", "bulk_waiting")):
        families.add(names.WAITING, (*who, lane), sum(link[field] for link in driver["links"]))
    for counter, count in driver["counters"].items():
        name = names.DRIVER.get(counter)
        if name is not None:
            families.add(name, who, count)
        else:
            families.add(names.OTHER_DRIVER, (*who, counter), count)
    for reason, count in driver["refusals"].items():
        families.add(names.REFUSED, (*who, reason), count)
    for outcome, count in status["control"].items():
        families.add(names.CONTROL, (*who, outcome), count)
    families.add(names.EVENTS, who, status["events_dropped"])
    for instance, counts in status["protocols"].items():
        labels = (*who, instance)
        protocol = instance.partition("@")[0]
        for field, count in counts.items():
            if isinstance(count, int):
                families.add(names.counter_of(protocol, field), labels, count)


def _add_topics(families: Families, who: tuple[str, ...], topics: dict[str, Any]) -> None:
    streams: dict[tuple[str, str], tuple[int, int]] = {}
    behind: dict[str, int] = {}
    for one in (*topics["published"], *topics["arriving"]):
        key = (one["topic"], one["publisher"])
        if key not in streams and len(streams) >= TOPICS:
            continue
        messages, size = streams.get(key, (0, 0))
        streams[key] = (messages + one["messages"], size + one["bytes"])
        lags = [other["behind"] or 0 for other in one["subscribers"]]
        slowest = max([behind.get(one["topic"], 0), one.get("behind", 0), *lags])
        behind[one["topic"]] = slowest
    for key, (messages, size) in streams.items():
        families.add(names.TOPIC_MESSAGES, (*who, *key), messages)
        families.add(names.TOPIC_BYTES, (*who, *key), size)
    for topic, count in behind.items():
        families.add(names.BEHIND, (*who, topic), count)


def _add_itself(families: Families, itself: dict[str, int], nodes: int, seconds: float) -> None:
    families.add(names.PAGES, (), itself["pages"])
    families.add(names.PAGE_BYTES, (), itself["sent"])
    for reason in ("host", "token"):
        families.add(names.PAGES_REFUSED, (reason,), itself[f"refused {reason}"])
    families.add(names.PAGES_REFUSED, ("too many pages",), itself["turned away"])
    families.add(names.WATCHED, (), nodes)
    families.add(names.SCRAPE, (), seconds)
