"""The blocking client, from plain threads and from asyncio programs."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nodes import blocking
from overlay.errors import ConfigError, LocalProtocolError, SecurityError

OPTIONS: dict[str, Any] = {
    "zone": "west",
    "insecure": True,
    "control": False,
    "profile": "local",
    "bind": ["127.0.0.1:0"],
}
WITHIN = 30.0


@contextmanager
def two() -> Iterator[tuple[blocking.Peer, blocking.Peer]]:
    with (
        blocking.Peer(name="ada", **OPTIONS) as ada,
        blocking.Peer(name="bob", seeds=ada.endpoints, attributes={"gpu": 4}, **OPTIONS) as bob,
    ):
        ada.joined(count=2, timeout=WITHIN)
        bob.joined(count=2, timeout=WITHIN)
        yield ada, bob


def test_threads_publish_and_read() -> None:
    with two() as (ada, bob):
        assert set(ada.members()) == {"ada", "bob"}
        with bob.subscribe("t/*", timeout=WITHIN) as messages, ada.publisher("t/1") as out:
            out.wait_for_subscribers(timeout=WITHIN)

            def publish(name: str) -> None:
                for number in range(500):
                    out.publish([name, number])

            with ThreadPoolExecutor(4) as threads:
                list(threads.map(publish, "abcd"))
            out.flush(timeout=WITHIN)
            got = [message for _, message in zip(range(2000), messages, strict=False)]
            assert [m.sequence for m in got] == list(range(1, 2001))
            for name in "abcd":
                assert [m.data[1] for m in got if m.data[0] == name] == list(range(500))
            ada.publish("t/2", b"once", timeout=WITHIN)
            assert messages.get(timeout=WITHIN).data == b"once"
            out.publish_many(range(10))
            assert messages.get(timeout=WITHIN).data == 0
            assert [item for batch in _until(messages, 9) for item in batch.items][-1] == 9
            with pytest.raises(TimeoutError, match=r"no message to 't/\*' for 0.01 s"):
                messages.get(timeout=0.01)
        assert not out.is_open
        with pytest.raises(LocalProtocolError, match="is closed"):
            out.publish(1)
        with pytest.raises(LocalProtocolError, match="is closed"):
            messages.get(timeout=WITHIN)


def _until(messages: blocking.Subscription, last: int) -> Iterator[Any]:
    for batch in messages.batches():
        yield batch
        if batch.items[-1] == last:
            return


def test_a_reader_that_is_behind_holds_the_publisher_up() -> None:
    with two() as (ada, bob):
        with bob.subscribe("t") as messages, ada.publisher("t", history_bytes=1 << 16) as out:
            out.wait_for_subscribers(timeout=WITHIN)
            big = b"x" * 50_000
            sent = 0
            with pytest.raises(TimeoutError, match="subscribers are behind"):
                while sent < 2000:
                    out.publish(big, timeout=0.3)
                    sent += 1
            assert sent * len(big) < 64 << 20
            for number in range(1, sent + 1):
                assert messages.get(timeout=WITHIN).sequence == number


def test_errors_are_raised_where_they_belong(tmp_path: Path) -> None:
    with pytest.raises(SecurityError):
        blocking.Peer(name="ada", keys=tmp_path).__enter__()
    unused = blocking.Peer(name="ada", **OPTIONS)
    with pytest.raises(LocalProtocolError, match="use it in `with`"):
        unused.joined()
    with blocking.Peer(name="ada", **OPTIONS) as ada:
        with pytest.raises(LocalProtocolError, match="lives once"):
            ada.__enter__()
        with pytest.raises(LocalProtocolError, match="wildcard"):
            ada.publisher("a/*")
        with pytest.raises(LocalProtocolError, match="empty level"):
            ada.subscribe("")
        with pytest.raises(ConfigError, match=r"did you mean topic\.reliability"):
            ada.publisher("t", relibility="ack")
        with pytest.raises(TimeoutError):
            ada.joined(count=2, timeout=0.01)
        out = ada.publisher("t", history_bytes=1024)
        with pytest.raises(LocalProtocolError, match="history_bytes allows"):
            out.publish(b"x" * 2000)
        messages = ada.subscribe("t")
        ended: list[bool] = []
        reader = threading.Thread(target=lambda: ended.append(list(messages) == []))
        reader.start()
    reader.join(WITHIN)
    assert ended == [True]
    with pytest.raises(LocalProtocolError):
        out.publish(1)
    with pytest.raises(LocalProtocolError, match="ada stopped"):
        ada.joined()
    out.close()
    messages.close()


def test_an_asyncio_program() -> None:
    async def main() -> None:
        async with (
            blocking.Peer(name="ada", **OPTIONS) as ada,
            blocking.Peer(name="bob", seeds=ada.endpoints, **OPTIONS) as bob,
        ):
            await asyncio.to_thread(ada.joined, count=2, timeout=WITHIN)
            async with bob.subscribe("t") as messages, ada.publisher("t") as out:
                await asyncio.to_thread(out.wait_for_subscribers, timeout=WITHIN)

                async def publish() -> None:
                    for number in range(1000):
                        await out.publish_async(number)

                writing = asyncio.create_task(publish())
                got: list[int] = []
                async with asyncio.timeout(WITHIN):
                    async for message in messages:
                        got.append(message.data)
                        if len(got) == 1000:
                            break
                await writing
                assert got == list(range(1000))
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        async for _ in messages:
                            raise AssertionError("there is none")
                assert messages._waiters == [], "who waited in vain is forgotten"
                await asyncio.to_thread(out.publish, "from a thread")
                got_one = await asyncio.to_thread(messages.get, timeout=WITHIN)
                assert got_one.data == "from a thread"

    asyncio.run(main())
