"""What each metric is called, its type and its help: one table for scrapes and for the reference.

Names and units follow Prometheus: `overlay_` first, `_total` last on what only grows, seconds and
bytes. The counters of a protocol are the fields of its `…Counts`; the comment beside a field is
its help.
"""

from __future__ import annotations

import inspect
import io
import re
import tokenize
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Literal, NamedTuple

import protocols
from overlay.protocol import OverlayProtocol

NODE = ("overlay", "node", "zone")
PROTOCOL = (*NODE, "protocol")


class Name(NamedTuple):
    """One metric; `name` is without `_total`, which the exposition adds to counters."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    labels: tuple[str, ...] = NODE

    @property
    def exposed(self) -> str:
        """As Prometheus stores it."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


def _counter(name: str, help: str, *labels: str) -> Name:
    return Name(f"overlay_{name}", "counter", help, (*NODE, *labels))


def _gauge(name: str, help: str, *labels: str) -> Name:
    return Name(f"overlay_{name}", "gauge", help, (*NODE, *labels))


DRIVER = {  # the counters of `overlay status`, by the name that it prints
    "bytes sent": _counter("sent_bytes", "Bytes of frames sent"),
    "bytes received": _counter("received_bytes", "Bytes of frames received"),
    "frames sent": _counter("sent_frames", "Frames sent"),
    "messages received": _counter("received_messages", "Messages received"),
    "messages dropped": _counter("dropped_messages", "Messages dropped by a full queue of a link"),
    "bulk messages dropped": _counter(
        "dropped_bulk_messages", "Messages that may wait, dropped by a full queue of a link"
    ),
    "messages to itself dropped": _counter(
        "dropped_own_messages", "Messages of a node to itself, dropped by a full queue"
    ),
    "frames undelivered": _counter("undelivered_frames", "Frames discarded with their link"),
    "replies lost": _counter("lost_replies", "Replies to peers that went away or do not read"),
    "sessions lost": _counter("lost_sessions", "Peers that were connected and went silent"),
    "links broken": _counter("broken_links", "Links that were open and broke"),
    "links closed": _counter("closed_links", "Links that were closed"),
    "attempts failed": _counter("failed_links", "Attempts to open a link that failed"),
    "refused by peers": _counter("refused_links", "Links that the peer refused"),
    "addresses forgotten": _counter("forgotten_addresses", "Addresses that a bound pushed out"),
    "datagrams sent": _counter("sent_datagrams", "Datagrams sent"),
    "datagrams received": _counter("received_datagrams", "Datagrams received"),
    "datagrams not sent": _counter("unsent_datagrams", "Datagrams that the system did not take"),
    "datagrams past their group": _counter(
        "stray_datagrams", "Datagrams of groups that were not joined"
    ),
    "datagram copies": _counter("copied_datagrams", "Second copies of multicast datagrams"),
    "udp errors": _counter("udp_errors", "Errors of datagram sockets"),
    "udp ports not free": _counter("udp_ports_taken", "Datagram ports that were taken"),
    "groups not joined": _counter("unjoined_groups", "Multicast groups that could not be joined"),
}
OTHER_DRIVER = _counter("other_driver_events", "Counters of the driver without a name", "what")
REFUSED = _counter("refused_messages", "What was received and refused, by reason", "reason")
CONTROL = _counter("control_requests", "Requests at the control socket, by outcome", "outcome")
EVENTS = _counter("dropped_events", "Events that an application read too slowly")
TRACE_ROWS = _counter("trace_rows", "Rows of traces written")
TRACE_DROPPED = _counter("trace_dropped_rows", "Rows of traces dropped by a full buffer")
TOPIC_MESSAGES = _counter("topic_messages", "Messages of a stream at a node", "topic", "publisher")
TOPIC_BYTES = _counter("topic_bytes", "Bytes of a stream at a node", "topic", "publisher")

INFO = _gauge("node_info", "Always 1; whether a node runs without keys is a label", "insecure")
UPTIME = _gauge("uptime_seconds", "Seconds since the node started")
MEMBERS = _gauge("zone_members", "Members of the zone in this node's view")
DELEGATE = _gauge("delegate", "1 while the node stands for its zone")
GATEWAY = _gauge("gateway_topics", "Topics that the node is its zone's gateway of")
LINKS = _gauge("links", "Outgoing links, by state", "state")
SESSIONS = _gauge("sessions", "Peers that are connected to the node")
WAITING = _gauge("waiting_bytes", "Bytes in queues of links, by lane", "lane")
OFFSET = _gauge("clock_offset_seconds", "Overlay time minus the node's own clock")
ERROR = _gauge("clock_error_seconds", "Seconds that overlay time may be off at most")
DRIFT = _gauge("clock_drift_ratio", "By how much the node's clock is slow")
STRATUM = _gauge("clock_stratum", "Steps to the root of time; 16 knows no time")
SHARDS = _gauge("dht_shards", "Shards of the hash table kept here")
LEADS = _gauge("dht_led_shards", "Shards led here")
KEYS = _gauge("dht_keys", "Keys kept here")
STORED = _gauge("dht_stored_bytes", "Bytes kept here")
MOVING = _gauge("dht_moving_shards", "Shards that are still to be moved")
LOST_MAJORITY = _gauge("dht_refused_shards", "Shards without a majority: refused")
BEHIND = _gauge("topic_behind_messages", "Messages that the slowest subscriber lacks", "topic")
TREE = _gauge("colony_individuals", "Individuals of the colony that the node leads")

PAGES = Name("overlay_dashboard_pages", "gauge", "Pages that are open", ())
PAGE_BYTES = Name("overlay_dashboard_sent_bytes", "counter", "Bytes sent to open pages", ())
PAGES_REFUSED = Name(
    "overlay_dashboard_refused_requests", "counter", "Requests refused", ("reason",)
)
WATCHED = Name("overlay_dashboard_watched_nodes", "gauge", "Nodes that answer", ())
SCRAPE = Name(
    "overlay_dashboard_scrape_seconds", "gauge", "Seconds that this answer took to collect", ()
)

PLAIN = (
    *DRIVER.values(),
    *(OTHER_DRIVER, REFUSED, CONTROL, EVENTS, TRACE_ROWS, TRACE_DROPPED, TOPIC_MESSAGES),
    *(TOPIC_BYTES, INFO, UPTIME, MEMBERS, DELEGATE, GATEWAY, LINKS, SESSIONS, WAITING, OFFSET),
    *(ERROR, DRIFT, STRATUM, SHARDS, LEADS, KEYS, STORED, MOVING, LOST_MAJORITY, BEHIND, TREE),
    *(PAGES, PAGE_BYTES, PAGES_REFUSED, WATCHED, SCRAPE),
)


def counter_of(protocol: str, field: str) -> Name:
    """The metric of one field of a protocol's counts."""
    known = protocol_counters().get((protocol, field))
    if known is not None:
        return known
    return Name(f"overlay_{_plain(protocol)}_{_plain(field)}", "counter", field, PROTOCOL)


def _plain(text: str) -> str:
    return re.sub(r"\W+", "_", text)


@cache
def protocol_counters() -> dict[tuple[str, str], Name]:
    """Every counter that a protocol keeps, by the protocol's name and the field's."""
    found: dict[tuple[str, str], Name] = {}
    for package in iter_modules(protocols.__path__):
        if package.ispkg:
            for machine, counts in _counts_in(f"{protocols.__name__}.{package.name}"):
                for field, comment in helps_of(counts).items():
                    name = f"overlay_{_plain(machine.name)}_{field}"
                    said = f"{machine.name}, {field.replace('_', ' ')}"
                    said += comment and f": {comment}"
                    found[machine.name, field] = Name(name, "counter", said, PROTOCOL)
    return found


def _counts_in(package: str) -> list[tuple[type[OverlayProtocol], type]]:
    """Each protocol of a package with its counts: those of its module, or the package's only."""
    machines: list[type[OverlayProtocol]] = []
    counts: list[type] = []
    for module in iter_modules(import_module(package).__path__, f"{package}."):
        for one in vars(import_module(module.name)).values():
            if isinstance(one, type) and one.__module__ == module.name:
                if issubclass(one, OverlayProtocol) and not inspect.isabstract(one):
                    machines.append(one)
                elif one.__name__.endswith("Counts") and not inspect.isabstract(one):
                    counts.append(one)
    pairs = []
    for machine in machines:
        same = [one for one in counts if one.__module__ == machine.__module__]
        near = same or counts
        if len(near) == 1:
            pairs.append((machine, near[0]))
    return pairs


def helps_of(counts: type) -> dict[str, str]:
    """The comment beside each field; empty where there is none."""
    comments: dict[int, str] = {}
    lines = inspect.getsource(counts)
    for token in tokenize.generate_tokens(io.StringIO(lines).readline):
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.string.lstrip("# ").strip()
    helps = {}
    for number, line in enumerate(lines.splitlines(), 1):
        field = re.match(r"\s+(\w+): int\b", line)
        if field:
            helps[field[1]] = comments.get(number, "")
    return {name: helps.get(name, "") for name in inspect.get_annotations(counts)}


def all_names() -> list[Name]:
    """Every metric that a scrape may show."""
    return [*PLAIN, *protocol_counters().values()]
