"""Publishers, subscriptions and listeners of two peers on real sockets."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from nodes.peer import Peer
from nodes.topics import (
    Gap,
    Message,
    PublisherAppeared,
    PublisherFailed,
    PublisherGone,
    Replay,
    StreamEnded,
    SubscriberFailed,
    SubscriberJoined,
    SubscriberLeft,
    SubscriberSlow,
    SubscriptionFailed,
    TopicSubscription,
    WouldWait,
)
from overlay.errors import ConfigError, LocalProtocolError
from protocols.topics import Topics
from tests.net.zone import DEADLINE, Zone, crashing, until

MODES = ("ack", "nack", "ordered", "unordered")
SMALL: dict[str, Any] = {"history_bytes": 4096, "history_messages": 100}


@asynccontextmanager
async def two(folder: Path, **more: Any) -> AsyncIterator[tuple[Peer, Peer]]:
    """Two members who know each other."""
    zone = Zone(folder, secure=False)
    with trio.fail_after(DEADLINE):
        async with zone.peer("ada", **more) as ada, zone.peer("bob", ada, **more) as bob:
            await ada.joined(count=2)
            await bob.joined(count=2)
            yield ada, bob


def playing(folder: Path, play: Callable[[Peer, Peer], Awaitable[None]], **more: Any) -> None:
    async def main() -> None:
        async with two(folder, **more) as (ada, bob):
            await play(ada, bob)

    trio.run(main)


async def take(messages: TopicSubscription, count: int) -> list[Message]:
    """The next so many."""
    found: list[Message] = []
    async for message in messages:
        found.append(message)
        if len(found) == count:
            break
    return found


# -- the four modes -------------------------------------------------------------------------------


@pytest.mark.parametrize("reliability", MODES)
def test_every_mode_brings_what_was_published(tmp_path: Path, reliability: str) -> None:
    sent = [{"celsius": 21.5}, b"\x00\xff", "grüße", None, [1, {"a": b"b"}], 2**63, *range(200)]

    async def play(ada: Peer, bob: Peer) -> None:
        async with (
            bob.subscribe("sensors/*/temperature") as messages,
            ada.publisher("sensors/7/temperature", reliability=reliability) as out,
        ):
            await out.wait_for_subscribers()
            assert out.subscribers == ("bob",)
            await out.publish(sent[0])
            out.publish_nowait(sent[1])
            await out.publish_many(sent[2:])
            await out.flush()
            got = await take(messages, len(sent))
            assert [message.data for message in got] == sent
            assert [message.sequence for message in got] == list(range(1, len(sent) + 1))
            assert {(m.topic, m.publisher) for m in got} == {("sensors/7/temperature", "ada")}
            assert got[0].sent_at == pytest.approx(got[-1].sent_at, abs=DEADLINE)
            assert out.published == len(sent)
            assert (messages.gaps, messages.lost) == ((), 0)
            if reliability == "ack":
                assert out.unacknowledged == 0

    playing(tmp_path, play)


def test_a_loop_that_was_left_goes_on_where_it_was(tmp_path: Path) -> None:
    async def play(ada: Peer, bob: Peer) -> None:
        async with bob.subscribe("t") as messages, ada.publisher("t") as out:
            await out.wait_for_subscribers()
            await out.publish_many(range(10))
            await out.flush()
            assert [m.data for m in await take(messages, 3)] == [0, 1, 2]
            assert [m.data for m in await take(messages, 2)] == [3, 4]
            async for batch in messages.batches():
                assert (batch.first, batch.items) == (6, [5, 6, 7, 8, 9])
                break
            with trio.CancelScope() as scope:
                scope.cancel()
                async for _ in messages:
                    raise AssertionError("there is none")
            await out.publish("after")
            assert (await messages.get()).data == "after"

    playing(tmp_path, play)


def test_a_peer_hears_itself(tmp_path: Path) -> None:
    async def play(ada: Peer, bob: Peer) -> None:
        for mode in MODES:
            async with ada.subscribe("**") as messages, ada.publisher("t", reliability=mode) as out:
                await out.wait_for_subscribers()
                await out.publish(mode)
                assert [m.data for m in await take(messages, 1)] == [mode]

    playing(tmp_path, play)


# -- events and callbacks -------------------------------------------------------------------------


def test_both_sides_hear_of_each_other(tmp_path: Path) -> None:
    at_publisher: list[Any] = []
    at_subscriber: list[Any] = []

    async def play(ada: Peer, bob: Peer) -> None:
        with ada.watch_topics() as watched:
            out = ada.publisher("t", on_event=at_publisher.append)
            async with out:
                async with bob.subscribe("*", on_event=at_subscriber.append) as messages:
                    await out.wait_for_subscribers()
                    await out.publish(1)
                    await take(messages, 1)
                await until(lambda: not out.subscribers)
                again = bob.subscribe("t", on_event=at_subscriber.append)
                async with again:
                    await out.wait_for_subscribers()
                    await out.wait_closed()
                    assert not out.is_open
                    await until(lambda: PublisherGone in map(type, at_subscriber))
            kinds = [type(event) for event in at_publisher]
            assert kinds == [SubscriberJoined, SubscriberLeft, SubscriberJoined, *kinds[3:]]
            assert kinds[-1] is StreamEnded
            assert at_publisher[-1].complete
            assert await anext(watched) == at_publisher[0]
        kinds = [type(event) for event in at_subscriber]
        assert kinds == [PublisherAppeared, PublisherAppeared, PublisherGone]

    playing(tmp_path, play)


def test_a_second_subscription_is_told_who_is_there_already(tmp_path: Path) -> None:
    heard: list[Any] = []

    async def play(ada: Peer, bob: Peer) -> None:
        async with bob.subscribe("t"), ada.publisher("t") as out:
            await out.wait_for_subscribers()
            await out.publish(1)
            await out.flush()
            async with bob.subscribe("**", on_event=heard.append):
                assert [(type(one), one.publisher) for one in heard] == [(PublisherAppeared, "ada")]

    playing(tmp_path, play)


def test_a_listener_answers_within_the_tick(tmp_path: Path) -> None:
    async def play(ada: Peer, bob: Peer) -> None:
        async with bob.publisher("pong") as pong, ada.publisher("ping") as ping:
            answer = bob.on_message("ping", lambda message: pong.publish_nowait(message.data))
            assert answer.is_open
            async with ada.subscribe("pong") as answers:
                await ping.wait_for_subscribers()
                await pong.wait_for_subscribers()
                await ping.publish_many(range(5))
                assert [m.data for m in await take(answers, 5)] == [0, 1, 2, 3, 4]
            answer.close()
            await until(lambda: not ping.subscribers)
            assert not answer.is_open

    playing(tmp_path, play)


def test_an_error_in_a_callback_is_raised_by_the_block(tmp_path: Path) -> None:
    async def play(ada: Peer, bob: Peer) -> None:
        def fail(_message: Message) -> None:
            raise ZeroDivisionError("of the application")

        carol = Zone(tmp_path, secure=False).peer("carol", ada)
        with pytest.raises(ZeroDivisionError):
            async with carol, ada.publisher("t") as out:
                carol.on_message("t", fail)
                await out.wait_for_subscribers()
                await out.publish(1)
                await carol.run()
        assert ada.node.is_running

    playing(tmp_path, play)


def test_a_publisher_that_dies_is_told(tmp_path: Path) -> None:
    heard: list[Any] = []
    zone = Zone(tmp_path, secure=False)

    async def main() -> None:
        with trio.fail_after(DEADLINE):
            async with zone.peer("bob") as bob:
                messages = bob.subscribe("t", on_event=heard.append)
                async with messages, crashing(ada := zone.peer("ada", bob)) as life:
                    await ada.joined(count=2)
                    out = ada.publisher("t")
                    out.open()
                    await out.wait_for_subscribers()
                    await out.publish(1)
                    assert [m.data for m in await take(messages, 1)] == [1]
                    life.cancel()
                    await until(lambda: PublisherFailed in map(type, heard))

    trio.run(main)


# -- replay and policies --------------------------------------------------------------------------


@pytest.mark.parametrize("reliability", ["ack", "nack", "ordered"])
def test_who_joins_late_gets_what_it_asks_for(tmp_path: Path, reliability: str) -> None:
    async def play(ada: Peer, bob: Peer) -> None:
        async with ada.publisher("t", reliability=reliability, keep=1000) as out:
            await out.publish_many(range(5))
            await out.flush()
            await out.publish_many(range(5, 10))
            await out.flush()
            chunk = out._out.history.at(6)
            assert chunk is not None
            for replay, expected in (
                (Replay.last(3), [7, 8, 9]),
                (Replay.all(), list(range(10))),
                (Replay.since(chunk.sent_at), [5, 6, 7, 8, 9]),
                (Replay.since(chunk.sent_at + DEADLINE), []),
                (None, []),
            ):
                async with bob.subscribe("t", replay=replay) as messages:
                    await out.wait_for_subscribers()
                    await out.publish(mark := f"after {replay}")
                    got = []
                    async for message in messages:
                        got.append(message.data)
                        if message.data == mark:
                            break
                    assert [one for one in got if isinstance(one, int)] == expected
                await until(lambda: not out.subscribers)

    playing(tmp_path, play)


@pytest.mark.parametrize("reliability", ["ack", "nack", "ordered"])
def test_a_second_subscription_gets_its_replay_too(tmp_path: Path, reliability: str) -> None:
    async def play(ada: Peer, bob: Peer) -> None:
        async with (
            bob.subscribe("t") as first,
            ada.publisher("t", reliability=reliability, keep=1000) as out,
        ):
            await out.wait_for_subscribers()
            await out.publish_many(range(10))
            assert [m.data for m in await take(first, 10)] == list(range(10))
            async with bob.subscribe("t", replay=Replay.last(4)) as second:
                await out.publish_many(range(10, 20))
                assert [m.data for m in await take(second, 14)] == list(range(6, 20))
            assert [m.data for m in await take(first, 10)] == list(range(10, 20))

    playing(tmp_path, play)


def test_a_subscription_chooses_its_publishers(tmp_path: Path) -> None:
    heard: list[Any] = []

    def only_ada(publisher: str, topic: str) -> bool:
        return publisher == "ada" and topic == "t"

    async def play(ada: Peer, bob: Peer) -> None:
        async with (
            bob.subscribe("t", accept=only_ada, on_event=heard.append) as messages,
            bob.publisher("t") as unwanted,
            ada.publisher("t") as out,
        ):
            await out.wait_for_subscribers()
            await unwanted.publish("not this")
            await unwanted.flush()
            await out.publish("this")
            assert [m.data for m in await take(messages, 1)] == ["this"]
            assert not unwanted.subscribers
            assert bob.node.protocol(Topics).counts.refused_publishers > 0
            assert {event.publisher for event in heard} == {"ada"}

    playing(tmp_path, play)


# -- pressure -------------------------------------------------------------------------------------


def test_a_publisher_waits_for_a_slow_reader(tmp_path: Path) -> None:
    heard: list[Any] = []

    async def play(ada: Peer, bob: Peer) -> None:
        async with (
            bob.subscribe("t", capacity=4096) as messages,
            ada.publisher("t", on_event=heard.append, **SMALL) as out,
        ):
            await out.wait_for_subscribers()

            async def publish(name: str) -> None:
                for number in range(100):
                    await out.publish([name, number, b"x" * 100])

            async with trio.open_nursery() as nursery:
                for name in "abc":  # several tasks may wait at once
                    nursery.start_soon(publish, name)
                await until(lambda: SubscriberSlow in map(type, heard))
                assert out.published < 300
                with pytest.raises(WouldWait):
                    out.publish_nowait(b"x" * 4000)
                got = await take(messages, 300)
            assert [m.sequence for m in got] == list(range(1, 301))
            for name in "abc":
                assert [m.data[1] for m in got if m.data[0] == name] == list(range(100))
            assert out._out.history.bytes <= SMALL["history_bytes"]

    playing(tmp_path, play, sets=["zones.settle=600", "topics.slow_after=0.05"])


def test_drop_oldest_tells_the_slow_reader_of_the_gap(tmp_path: Path) -> None:
    async def play(ada: Peer, bob: Peer) -> None:
        async with (
            bob.subscribe("t", capacity=1024) as messages,
            ada.publisher("t", slow="drop-oldest", window_bytes=1024, **SMALL) as out,
        ):
            await out.wait_for_subscribers()
            for _ in range(300):
                await out.publish(b"x" * 100)
                await trio.lowlevel.checkpoint()
            await out.publish(b"last")
            numbers = []
            async for message in messages:
                numbers.append(message.sequence)
                if message.data == b"last":
                    break
            assert numbers == sorted(set(numbers))
            lost = [n for n in range(numbers[0], 302) if n not in set(numbers)]
            told = [n for gap in messages.gaps for n in range(gap.first, gap.last + 1)]
            assert isinstance(messages.gaps[0], Gap)
            assert told == lost
            assert messages.lost == len(lost) > 0

    playing(tmp_path, play)


def test_disconnect_lets_go_of_the_slow_reader_who_comes_back(tmp_path: Path) -> None:
    at_publisher: list[Any] = []
    at_subscriber: list[Any] = []

    async def play(ada: Peer, bob: Peer) -> None:
        async with (
            bob.subscribe("t", capacity=1024, on_event=at_subscriber.append) as messages,
            ada.publisher("t", slow="disconnect", on_event=at_publisher.append, **SMALL) as out,
        ):
            await out.wait_for_subscribers()
            while SubscriberFailed not in map(type, at_publisher):
                await out.publish(b"x" * 100)
                await trio.lowlevel.checkpoint()
            await until(lambda: SubscriptionFailed in map(type, at_subscriber))
            await until(lambda: out.subscribers)
            await out.publish(b"last")
            numbers = []
            async for message in messages:
                numbers.append(message.sequence)
                if message.data == b"last":
                    break
            assert numbers == sorted(set(numbers))
            assert messages.lost == numbers[-1] - numbers[0] + 1 - len(numbers)

    playing(tmp_path, play)


# -- the end --------------------------------------------------------------------------------------


def test_a_closed_publisher_lingers_for_who_did_not_read(tmp_path: Path) -> None:
    async def play(ada: Peer, bob: Peer) -> None:
        async with bob.subscribe("t", capacity=1024) as messages:
            out = ada.publisher("t", window_bytes=1024)
            out.open()
            await out.wait_for_subscribers()
            await out.publish_many([b"x" * 100] * 100)
            out.close()
            assert not out.is_open
            with pytest.raises(LocalProtocolError, match="publisher of 't' is closed"):
                await out.publish(1)
            assert len(await take(messages, 100)) == 100
            await out.wait_closed()
            assert not ada.node.protocol(Topics).publishers

    playing(tmp_path, play)


def test_streams_end_when_their_peer_stops(tmp_path: Path) -> None:
    async def play(ada: Peer, bob: Peer) -> None:
        async with bob.subscribe("t") as messages, ada.publisher("t", **SMALL) as out:
            await out.wait_for_subscribers()
            await out.publish(1)
            await out.flush()
            bob.stop()
            assert [m.data async for m in messages] == [1]
            assert not messages.is_open
            ada.stop()
            with pytest.raises(LocalProtocolError):
                await out.wait_for_subscribers(5)
            with pytest.raises(LocalProtocolError):
                for _ in range(1000):
                    await out.publish(b"x" * 100)

    playing(tmp_path, play)


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "problem"),
    [
        ("", "empty level"),
        ("a//b", "empty level"),
        ("x" * 257, "257 bytes: at most 256"),
        ("caf\udce9", "unprintable"),
        ("a/*/b", "wildcard"),
        ("a/b*", "not 'b"),
        ("/".join("a" * 33), "over 32 levels"),
    ],
)
def test_bad_topics_are_refused_at_once(tmp_path: Path, topic: str, problem: str) -> None:
    async def play(ada: Peer, bob: Peer) -> None:
        with pytest.raises(LocalProtocolError, match=problem):
            async with ada.publisher(topic):
                raise AssertionError("it was opened")
        if problem != "wildcard":
            with pytest.raises(LocalProtocolError, match=problem):
                async with ada.subscribe(topic):
                    raise AssertionError("it was opened")
            with pytest.raises(LocalProtocolError, match=problem):
                ada.on_message(topic, print)

    playing(tmp_path, play)


def test_bad_messages_and_settings_are_refused_and_the_rest_goes_on(tmp_path: Path) -> None:
    async def play(ada: Peer, bob: Peer) -> None:
        with pytest.raises(ConfigError, match=r"no such key: did you mean topic\.reliability\?"):
            ada.publisher("t", relibility="ack")
        with pytest.raises(ConfigError, match="reliability = 'sure'"):
            ada.publisher("t", reliability="sure")
        with pytest.raises(LocalProtocolError, match="not open"):
            ada.publisher("t").publish_nowait(b"x")
        with pytest.raises(LocalProtocolError, match="not open"):
            await ada.publisher("t").publish_many([b"x", b"y"])
        async with ada.publisher("t", history_bytes=1024) as out:
            with pytest.raises(LocalProtocolError, match="1500 bytes for 't': history_bytes"):
                await out.publish(b"x" * 1500)
        async with bob.subscribe("t") as messages, ada.publisher("t") as out:
            await out.wait_for_subscribers()
            with pytest.raises(LocalProtocolError, match="MessagePack cannot say this"):
                await out.publish(object())
            with pytest.raises(LocalProtocolError, match=r"topics\.message_bytes allows 2000"):
                await out.publish_many([b"before", b"x" * 2030, b"after"])
            await out.publish(b"last")
            assert [m.data for m in await take(messages, 2)] == [b"before", b"last"]

    sets = ["zones.settle=600", "topics.message_bytes=2000"]
    playing(tmp_path, play, sets=sets)
