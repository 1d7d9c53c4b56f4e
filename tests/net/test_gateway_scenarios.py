"""Gateways over ZeroMQ: the scenarios of the simulator, unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial

import pytest
import trio

from nodes.peer import Peer
from nodes.scenarios.registry import find
from nodes.stage import play
from protocols.gateways import Gateways
from tests.net.drivers import until

TOPIC = "news/today"


@pytest.mark.parametrize(
    ("name", "secure"),
    [("gateways-interest", False), ("gateways-gateway-crash", True)],
)
def test_gateways_hold_over_zeromq(name: str, secure: bool) -> None:
    entry = find(name)
    trio.run(partial(play, entry.script, size=9, seed=1, secure=secure))


def test_gateways_of_two_zones_find_each_other_by_one_address() -> None:
    zones = {"ada": "east", "eve": "east", "bob": "west", "bea": "west"}

    async def main() -> None:
        seeds: Sequence[str] = ()
        books: dict[str, list[Gateways]] = {"east": [], "west": []}
        async with AsyncExitStack() as peers:
            for name, zone in zones.items():
                joining = Peer.join(
                    name=name, zone=zone, seeds=seeds, insecure=True, bind=["127.0.0.1:0"]
                )
                peer = await peers.enter_async_context(joining)
                seeds = seeds or peer.node.endpoints
                book = peer.node.protocol(Gateways)
                peer.node.call(partial(declare, book))
                books[zone].append(book)

            def known(here: str, there: str) -> bool:
                gateway = books[there][0].gateway_of(TOPIC)
                return any(
                    book.me == book.gateway_of(TOPIC) and gateway in book.remote_gateways(TOPIC)
                    for book in books[here]
                )

            await until(
                lambda: known("east", "west") and known("west", "east"),
                "gateways that know each other",
                within=60,
            )

    trio.run(main)


def declare(book: Gateways, now: float) -> None:
    book.declare(TOPIC, publishes=True, subscribes=True, now=now)
