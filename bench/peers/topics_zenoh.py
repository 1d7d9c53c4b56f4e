"""Zenoh: two peers without a server; reliable, and a publisher waits rather than drops."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from time import sleep
from typing import TYPE_CHECKING, ClassVar

from bench.peers.carrier import TOPIC, Carrier, Load, until_received

if TYPE_CHECKING:
    import zenoh


class ZenohTopics(Carrier):
    """The subscriber listens, the publisher connects.

    Messages are read in a loop: 1.1 million/s where a callback had 0.9, at the same latency.
    """

    name: ClassVar[str] = "zenoh"
    packages: ClassVar[Mapping[str, str]] = {"zenoh": "eclipse-zenoh"}
    messages: ClassVar[int] = 800_000

    def receive(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        """Until all are read."""
        with _session("listen", port) as session, session.declare_subscriber(TOPIC) as samples:
            ready()
            for sample in samples:
                if not take(sample.payload.to_bytes()):
                    return

    def send(self, port: int, load: Load) -> None:
        """Once the subscriber is seen."""
        import zenoh

        with _session("connect", port) as session:
            out = session.declare_publisher(
                TOPIC,
                congestion_control=zenoh.CongestionControl.BLOCK,
                reliability=zenoh.Reliability.RELIABLE,
            )
            while not out.matching_status.matching:
                sleep(0.01)
            put = out.put
            for message in load.messages():
                put(message)
            until_received()


def _session(side: str, port: int) -> zenoh.Session:
    import zenoh

    config = zenoh.Config()
    for key, value in {
        "mode": "peer",
        "listen/endpoints": [],
        "scouting/multicast/enabled": False,
        f"{side}/endpoints": [f"tcp/127.0.0.1:{port}"],
    }.items():
        config.insert_json5(key, json.dumps(value))
    return zenoh.open(config)
