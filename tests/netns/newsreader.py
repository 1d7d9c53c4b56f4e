"""A program for hosts: a peer that reads one topic, or publishes to it, and tells all of it.

    newsreader.py TOPIC [--publish MODE --rate N] -- OPTIONS OF `overlay peer`

Lines of JSON: events as `overlay peer --events` prints them, with those of topics;
`{"stream": [NAME, NUMBER]}` of a publisher, once it is open; `{"published": LAST}` and
`{"got": [NAME, NUMBER], "runs": [[FIRST, LAST], …]}`, what is new since the line before, as runs of
consecutive messages in the order in which they came. A publisher obeys `begin` and `finish` at its
control socket; `{"finished": LAST}` says that all subscribers acknowledged (ack mode).

Each message names its publisher, stream and number: a reader believes that, not the protocol.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import trio

from nodes.facts import event_facts
from nodes.peer import MEMBER_EVENTS, Peer
from nodes.peer_options import PeerOptions, parse
from nodes.peer_process import config_of
from protocols.gateways import GatewayAppointed, GatewayDismissed, GatewaysChanged
from protocols.topics import (
    Gap,
    PublisherAppeared,
    PublisherFailed,
    PublisherGone,
    SubscriberFailed,
    SubscriberJoined,
    SubscriptionFailed,
    Topics,
)

TELL_EVERY = 0.1  # s between two lines about what was published or read
PACE = 0.005  # s between two handfuls of messages
PADDING = bytes(80)  # with its names a message has about 100 bytes
TOPIC_EVENTS = (
    GatewayAppointed,
    GatewayDismissed,
    GatewaysChanged,
    Gap,
    PublisherAppeared,
    PublisherFailed,
    PublisherGone,
    SubscriberFailed,
    SubscriberJoined,
    SubscriptionFailed,
)


def _tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


class Records:
    """What was read and not told yet."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int], list[list[int]]] = {}

    def add(self, stream: tuple[str, int], number: int) -> None:
        """A message came."""
        runs = self._runs.setdefault(stream, [])
        if runs and runs[-1][1] + 1 == number:
            runs[-1][1] = number
        else:
            runs.append([number, number])

    def tell(self) -> None:
        """Print what is new."""
        for stream, runs in self._runs.items():
            _tell(got=stream, runs=runs)
        self._runs.clear()


async def read(peer: Peer, topic: str) -> None:
    """Subscribe, and tell what comes; a message that is not what it is said to be ends this."""
    records = Records()

    async def tell_often() -> None:
        while True:
            records.tell()
            await trio.sleep(TELL_EVERY)

    async with peer.subscribe(topic) as messages, trio.open_nursery() as nursery:
        nursery.start_soon(tell_often)
        async for message in messages:
            publisher, stream, number, padding = message.data
            if (publisher, number, padding) != (message.publisher, message.sequence, PADDING):
                raise SystemExit(f"{message.sequence} of {message.publisher} is {message.data}")
            records.add((publisher, stream), number)


class Press:
    """Publishes so many messages per second from `begin` to `finish`."""

    def __init__(self, peer: Peer, topic: str, mode: str, rate: float) -> None:
        self._peer = peer
        self._topic = topic
        self._mode = mode
        self._rate = rate
        self._begin, self._finish = trio.Event(), trio.Event()
        peer.node.control.register("begin", self._begin.set)
        peer.node.control.register("finish", self._finish.set)

    async def run(self) -> None:
        """Publish, finish, and stay to serve who lacks something."""
        node = self._peer.node
        async with self._peer.publisher(self._topic, reliability=self._mode) as out:
            (publisher,) = node.protocol(Topics).publishers
            stream = publisher.key
            _tell(stream=stream)
            await self._begin.wait()
            began = told = trio.current_time()
            done = 0
            while not self._finish.is_set():
                now = trio.current_time()
                due = int((now - began) * self._rate)
                await out.publish_many(
                    [[*stream, number, PADDING] for number in range(done + 1, due + 1)]
                )
                done = due
                if now - told >= TELL_EVERY:
                    _tell(published=done)
                    told = now
                await trio.sleep(PACE)
            _tell(published=done)
            await out.flush()
            _tell(finished=done)
            await trio.sleep_forever()


async def tell_events(events: Any) -> None:
    """Print each event."""
    async for event in events:
        print(json.dumps(event_facts(event)), flush=True)


async def main(told: argparse.Namespace, options: PeerOptions) -> None:
    """Run until killed."""
    peer = Peer(config_of(options))
    press = Press(peer, told.topic, told.publish, told.rate) if told.publish else None
    events = peer.node.events(*MEMBER_EVENTS, *TOPIC_EVENTS)
    async with peer, trio.open_nursery() as nursery:
        nursery.start_soon(tell_events, events)
        if press is None:
            nursery.start_soon(read, peer, told.topic)
        else:
            nursery.start_soon(press.run)


def options_of(words: Sequence[str]) -> tuple[argparse.Namespace, PeerOptions]:
    """The two halves of the command line."""
    at = words.index("--")
    parser = argparse.ArgumentParser()
    parser.add_argument("topic")
    parser.add_argument("--publish", default="")
    parser.add_argument("--rate", type=float, default=0.0)
    options = parse(words[at + 1 :])
    if options is None:
        raise SystemExit(f"{words[at + 1 :]}: no options of `overlay peer`")
    return parser.parse_args(words[:at]), options


if __name__ == "__main__":
    trio.run(main, *options_of(sys.argv[1:]))
