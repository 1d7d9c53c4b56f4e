"""A link to a peer with several addresses: which is tried when, for how long, and what is news."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from random import Random

import pytest
import zmq

from overlay.limits import Limits
from overlay.net.addresses import Endpoint
from overlay.net.config import NetSettings
from overlay.net.descriptors import Descriptors
from overlay.net.link import Link, State
from overlay.net.links import Links
from overlay.net.trust import OpenTrust
from overlay.protocol import Event, LinkLost
from overlay.wire.frames import FRAMEWORK_MESSAGES, Goodbye, Hello, Welcome
from overlay.wire.sizes import Sizes

NOW = 1000.0


class Desk:
    """Links whose clock stands still, what they announced, and a peer that never says a word."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], west: Endpoint, east: Endpoint):
        self.west, self.east = west, east
        self.news: list[Event] = []
        limits = Limits()
        self.links = Links(
            context,
            OpenTrust("me", "overlay"),
            NetSettings(connect_within=5.0),
            limits,
            Sizes(FRAMEWORK_MESSAGES, limits),
            Random(1),
            Descriptors(),
            me="me",
            hello=lambda: Hello(1, 1, "overlay", "me", bytes(8)),
            now=lambda: NOW,
            unix_now=lambda: NOW,
            announce=lambda event, _: self.news.append(event),
            refuse=lambda *_: None,
            ask_who=lambda *_: True,
            due=lambda _: None,
        )

    def attempt(self, link: Link) -> None:
        link.deadline = NOW
        self.links.step(link, NOW)

    def welcome(self, link: Link) -> None:
        self.links.welcomed(link, Welcome(1, "ada", bytes(8), b""), NOW)


@pytest.fixture
def desk() -> Iterator[Desk]:
    with ExitStack() as silent:
        hosts = ("127.0.0.1", "127.0.0.2")
        listeners = [silent.enter_context(socket.create_server((host, 0))) for host in hosts]
        west, east = (Endpoint("tcp", *listener.getsockname()) for listener in listeners)
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        desk = Desk(context, west, east)
        yield desk
        desk.links.close(0)
        desk.links.descriptors.close()
        context.destroy(linger=0)


@pytest.fixture
def link(desk: Desk) -> Link:
    desk.links.learn("ada", [desk.west, desk.east])
    return desk.links.to("ada")


def test_each_address_gets_a_short_turn_and_then_longer_ones(desk: Desk, link: Link) -> None:
    tried = []
    for _ in range(8):
        tried.append((link.endpoint, link.deadline - NOW))
        link.fail("no answer", NOW)
        desk.attempt(link)
    turns = [1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 5.0, 5.0]
    assert tried == list(zip([desk.west, desk.east] * 4, turns, strict=True))


def test_a_peer_may_stay_away_for_ever(desk: Desk, link: Link) -> None:
    link.failures = link.attempts = 100_000
    link.fail("no answer", NOW)
    assert NOW + 2.5 <= link.deadline <= NOW + 5.0  # net.retry_longest, half of it at random
    desk.attempt(link)
    assert link.deadline == NOW + 5.0


def test_a_peer_with_one_address_gets_all_the_time(desk: Desk) -> None:
    desk.links.learn("bob", [desk.west])
    assert desk.links.to("bob").deadline == NOW + 5.0


def test_a_peer_is_lost_once_no_address_answers_and_only_once(desk: Desk, link: Link) -> None:
    link.fail("no answer", NOW)
    assert desk.news == []
    for _ in range(4):
        desk.attempt(link)
        link.fail("no answer", NOW)
    assert desk.news == [LinkLost("ada", "no answer", closed=False)]


def test_what_answered_is_first_when_the_link_breaks_and_opens_anew(desk: Desk, link: Link) -> None:
    link.fail("no answer", NOW)
    desk.attempt(link)
    desk.welcome(link)
    assert (link.state, link.endpoint) == (State.OPEN, desk.east)
    desk.news.clear()
    link.fail("disconnected", NOW)
    assert desk.news == [LinkLost("ada", "disconnected")]
    desk.attempt(link)
    assert link.endpoint == desk.east
    assert desk.links.endpoints_of("ada") == (desk.east, desk.west)


def test_a_call_from_another_address_redirects_the_attempt(desk: Desk, link: Link) -> None:
    assert link.endpoint == desk.west
    desk.links.heard_from("ada", desk.east.host)
    assert (link.state, link.endpoint, link.deadline) == (State.CONNECTING, desk.east, NOW + 1.0)
    assert desk.news == []


def test_a_call_leaves_an_open_link_and_a_right_attempt_alone(desk: Desk, link: Link) -> None:
    desk.welcome(link)
    desk.links.heard_from("ada", desk.east.host)
    assert (link.state, link.endpoint) == (State.OPEN, desk.west)
    desk.links.heard_from("ada", "127.0.0.99")  # behind a router that translates: nobody listens
    assert link.candidates == (desk.east, desk.west)


def test_a_call_of_a_peer_that_nobody_wrote_to_opens_nothing(desk: Desk) -> None:
    desk.links.learn("bob", [desk.west, desk.east])
    desk.links.heard_from("bob", desk.east.host)
    assert "bob" not in desk.links.by_name
    assert desk.links.endpoints_of("bob") == (desk.east, desk.west)


def test_what_waits_for_one_who_is_dead_is_dropped_and_nobody_tries_to_reach_it(
    desk: Desk, link: Link
) -> None:
    link.writer.put("", Goodbye(idle=False))
    desk.links.give_up("ada")
    desk.links.give_up("eve")
    assert desk.links.by_name == {"ada": link}, "not in the middle of a tick"
    desk.links.sweep(NOW)
    assert desk.links.by_name == {}
    assert desk.links.counts["frames undelivered"] == 1
    assert link.endpoint is not None
    assert link.state is State.WAITING


def test_an_open_link_to_one_who_is_held_to_be_dead_stays(desk: Desk, link: Link) -> None:
    desk.welcome(link)
    desk.links.give_up("ada")
    desk.links.sweep(NOW)
    assert desk.links.by_name == {"ada": link}
    assert link.state is State.OPEN
