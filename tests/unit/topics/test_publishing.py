"""A publisher at its bounds, whom it begins where, and who needs which right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import msgspec
import pytest

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.protocol import LinkUp
from protocols.gateways.interface import RemoteGateway
from protocols.topics import SubscriberSlow, TopicConfig, Topics, TopicsSettings
from protocols.topics.interest import OwnInterest
from protocols.topics.messages import REPLAY_LAST, Accept, Ack, Begin, Offer
from protocols.topics.publishing import ITEM_BYTES, Publisher
from tests.recording import Emit, RecordingEffects, Send, TickEnd
from tests.unit.topology.fixed_view import FixedView, Roster

May = Callable[[str, str, str], bool]


class FixedBook:
    """A zone whose gateway is gus, or nobody; no other zone is interested."""

    gateway: str | None = "gus"

    def declare(self, topic: str, *, publishes: bool, subscribes: bool, now: float) -> None:
        """Nobody listens."""

    def gateway_of(self, topic: str) -> str | None:
        return self.gateway

    def is_gateway(self, topic: str) -> bool:
        return False

    def remote_gateways(self, topic: str) -> Mapping[str, RemoteGateway]:
        return {}

    def local_publishers(self, topic: str) -> tuple[str, ...]:
        return ()

    def local_subscribers(self, topic: str) -> tuple[str, ...]:
        return ()

    def knows_remote(self, topic: str) -> bool:
        return True


class Base:
    """The membership of the zone: bob subscribes to everything."""

    def __init__(self) -> None:
        own = OwnInterest(1000)
        own.subscribe("**")
        self.roster = Roster(["ada", "bob", "gus"])
        self.roster.attributes["bob"] = dict(own.attributes())
        self.view = FixedView("ada", self.roster)
        self.running = True

    def set_attribute(self, key: str, value: str | float | bool, now: float) -> None:
        if not self.running:
            raise LocalProtocolError("start it first")
        self.roster.set("ada", key, value)

    def remove_attribute(self, key: str, now: float) -> None:
        self.set_attribute(key, "", now)


class NoLinks:
    """Topics ask for links only when they build trees."""


class Ada:
    """The topics of ada."""

    def __init__(self, may: May = lambda *_: True, **settings: int) -> None:
        self.effects = RecordingEffects()
        self.base = Base()
        self.may = may
        self.book = FixedBook()
        self.topics = Topics(
            "ada",
            self.effects,
            Random(1),
            msgspec.convert(settings, TopicsSettings),
            base=self.base,
            links=NoLinks(),  # type: ignore[arg-type]
            book=self.book,
            may=lambda *asked: self.may(*asked),
        )

    def publish(self, **config: object) -> Publisher:
        return self.topics.publish("t", TopicConfig(**config), 0.0)  # type: ignore[arg-type]

    def receive(self, src: str, msg: Accept | Ack, now: float = 1.0) -> None:
        self.topics.message_handlers()[type(msg)](src, msg, now)

    def accept(self, src: str, out: Publisher, **more: object) -> None:
        self.receive(src, Accept(*out.key, 7, 0, **more))  # type: ignore[arg-type]

    def sent(self, to: str, kind: type) -> list[object]:
        return [
            one.msg
            for one in self.effects.recorded
            if isinstance(one, Send) and one.to == to and isinstance(one.msg, kind)
        ]

    def end_tick(self, now: float) -> None:
        for one in self.effects.drain():
            if isinstance(one, TickEnd):
                one.callback(now)


def item(size: int) -> tuple[bytes, int]:
    return b"x" * size, size + ITEM_BYTES


def test_room_for_a_small_message_is_no_room_for_a_large_one() -> None:
    ada = Ada()
    ada.book.gateway = None
    out = ada.publish(history_bytes=1024)
    ada.accept("bob", out)
    assert out.put(*item(600), 1.0)
    assert not out.put(*item(600), 1.0)
    assert not out.has_room, "a task that looked again at once would never give way"
    assert out.put(*item(100), 1.0)
    woken: list[bool] = []
    out.on_room(lambda: woken.append(out.has_room))
    ada.effects.drain()
    out.on_slow_timer(2.0)
    assert [one for one in ada.effects.drain() if isinstance(one, Emit)] == [
        Emit(SubscriberSlow("t", "bob", out.key[1], 1))
    ]
    assert not out.put(*item(600), 2.0)
    ada.receive("bob", Ack(*out.key, 7, 2), 3.0)
    assert woken == [True]
    assert out.put(*item(600), 3.0)


def test_a_message_over_the_limit_finds_no_fast_path() -> None:
    ada = Ada(message_bytes=2000)
    out = ada.publish()
    assert out.left <= 2000 + ITEM_BYTES
    with pytest.raises(LocalProtocolError, match=r"2001 bytes for 't': topics\.message_bytes"):
        out.put(*item(2001), 1.0)
    items, sizes = zip(*(item(size) for size in (10, 2001)), strict=True)
    with pytest.raises(LocalProtocolError, match=r"2001 bytes"):
        out.put_many([*items], [sizes[0], sum(sizes)], 0, 1.0)
    assert out.put(*item(2000), 1.0)


def test_acknowledgements_come_as_often_as_the_history_needs() -> None:
    ada = Ada()
    ada.publish(history_bytes=1 << 16, window_bytes=1 << 22)
    offers = ada.sent("bob", Offer)
    assert [one.window for one in offers if isinstance(one, Offer)] == [1 << 16]


def test_the_last_ones_are_those_before_the_subscriber_was_known() -> None:
    ada = Ada()
    out = ada.publish(keep=100, reliability="nack")
    for _ in range(10):
        out.put(*item(1), 0.0)
        out.flush(0.0)
    out._since["bob"] = 10
    out.put(*item(1), 0.5)
    out.flush(0.5)
    ada.effects.drain()
    ada.accept("bob", out, replay=REPLAY_LAST, amount=3)
    begins = ada.sent("bob", Begin)
    assert [one.start for one in begins if isinstance(one, Begin)] == [8]


def test_a_subscriber_needs_the_right_and_a_gateway_does_not() -> None:
    ada = Ada()
    out = ada.publish()
    ada.may = lambda name, what, topic: what == "publish"
    with pytest.raises(RemoteProtocolError, match="may-not-subscribe: bob"):
        ada.accept("bob", out)
    with pytest.raises(RemoteProtocolError, match="may-not-subscribe: bob"):
        ada.accept("bob", out, relay=True)
    ada.accept("gus", out, relay=True)
    assert ada.sent("gus", Begin)
    with pytest.raises(RemoteProtocolError, match="may-not-subscribe: gus"):
        ada.accept("gus", out)


def test_a_certificate_that_a_link_shows_ends_what_it_does_not_allow() -> None:
    ada = Ada()
    out = ada.publish(reliability="nack")
    assert out.receivers == ("bob",)
    ada.may = lambda name, what, topic: name != "bob"
    ada.effects.drain()
    ada.topics.event_handlers()[LinkUp](LinkUp("gus"), 1.0)
    assert out.receivers == ("bob",)
    assert not ada.effects.drain()
    ada.topics.event_handlers()[LinkUp](LinkUp("bob"), 1.0)
    ada.end_tick(1.0)
    assert not out.receivers


def test_who_unsubscribes_and_stops_within_a_tick_says_nothing_more() -> None:
    ada = Ada()
    one = ada.topics.subscribe("t", 0.0)
    ada.end_tick(0.0)
    ada.topics.unsubscribe(one, 1.0)
    ada.topics.on_stop(1.0)
    ada.base.running = False
    ada.end_tick(1.0)
