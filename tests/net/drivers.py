"""Bare drivers on real sockets, with a protocol that remembers all it hears."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import trio

from overlay.limits import Limits
from overlay.net.config import NetSettings
from overlay.net.driver import Driver
from overlay.net.link import Link, State
from overlay.protocol import (
    DatagramHandler,
    Event,
    EventHandler,
    Group,
    Handler,
    LinkLost,
    LinkUp,
    Message,
    Origin,
    OverlayProtocol,
    UdpAddress,
)
from overlay.security.authority import Authority
from overlay.security.credentials import Credentials
from overlay.security.rights import Rights

WITHIN = 60.0  # s: generous, since only a failure ever waits so long
LOOK_AGAIN = 0.002  # s
OVERLAY = "lab"


class Word(Message, frozen=True, tag=10_100):
    """Numbered, so that order and loss show."""

    number: int
    payload: bytes = b""


class Heap(Message, frozen=True, tag=10_101):
    """The same for what may wait."""

    bulk: ClassVar[bool] = True
    number: int
    payload: bytes = b""


class Talk(OverlayProtocol):
    """Says what the test tells it, and remembers everything that it hears."""

    name: ClassVar[str] = "talk"
    messages: ClassVar[tuple[type[Message], ...]] = (Word, Heap)

    def __init__(self, *made_with: Any) -> None:
        super().__init__(*made_with)
        self.heard: list[tuple[str, int, bytes]] = []
        self.heard_at: list[float] = []
        self.cast_to_us: list[tuple[Origin, int, bytes]] = []
        self.ups: list[str] = []
        self.losses: list[LinkLost] = []
        self.stored: list[Hashable] = []
        self.kept: Mapping[bytes, bytes] = {}
        self.on_fire: Callable[[Hashable, float], None] | None = None

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        return {Word: self._on_word, Heap: self._on_word}

    def datagram_handlers(self) -> Mapping[type[Message], DatagramHandler]:
        return {Word: self._on_datagram}

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        return {
            LinkUp: lambda event, now: self.ups.append(event.peer),
            LinkLost: lambda event, now: self.losses.append(event),
        }

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        self.kept = dict(kept)

    def on_timer(self, key: Hashable, now: float) -> None:
        if self.on_fire is not None:
            self.on_fire(key, now)

    def on_stored(self, token: Hashable, now: float) -> None:
        self.stored.append(token)

    def _on_word(self, src: str, msg: Word | Heap, now: float) -> None:
        self.heard.append((src, msg.number, msg.payload))
        self.heard_at.append(now)

    def _on_datagram(self, origin: Origin, msg: Word, now: float) -> None:
        self.cast_to_us.append((origin, msg.number, msg.payload))

    # -- commands -----------------------------------------------------------------------------

    def say(
        self, to: str | Sequence[str], numbers: Sequence[int], payload: bytes, now: float
    ) -> None:
        for number in numbers:
            self.effects.send(to, Word(number, payload))

    def heave(
        self, to: str | Sequence[str], numbers: Sequence[int], payload: bytes, now: float
    ) -> None:
        for number in numbers:
            self.effects.send(to, Heap(number, payload))

    def keep(self, key: bytes, value: bytes, now: float) -> None:
        self.effects.store(key, value, key)

    def cast(self, address: UdpAddress | Group, number: int, payload: bytes, now: float) -> None:
        self.effects.cast(address, Word(number, payload))


class Speaker:
    """One driver with its `Talk`."""

    def __init__(self, driver: Driver, protocol: type[Talk] = Talk) -> None:
        self.driver = driver
        self.talk = driver.host.add(protocol, None)

    @property
    def name(self) -> str:
        return self.driver.name

    def say(self, to: str | Sequence[str], *numbers: int, payload: bytes = b"") -> None:
        """Send these words in one call."""
        self.driver.call(self.talk.say, to, numbers, payload)

    def heave(self, to: str | Sequence[str], *numbers: int, payload: bytes = b"") -> None:
        """Send these by the bulk lane."""
        self.driver.call(self.talk.heave, to, numbers, payload)

    def cast(self, address: UdpAddress | Group, number: int, payload: bytes = b"") -> None:
        self.driver.call(self.talk.cast, address, number, payload)

    def knows(self, *others: Speaker) -> None:
        """Put their addresses into its book."""
        for other in others:
            self.driver.learn(other.name, other.driver.endpoints)

    @property
    def numbers(self) -> list[int]:
        """What was heard over links."""
        return [number for _, number, _ in self.talk.heard]

    def count(self, counter: str) -> int:
        return self.driver.status().counters.get(counter, 0)

    def link(self, peer: str) -> Link:
        return self.driver.links.by_name[peer]

    def is_open(self, peer: str) -> bool:
        link = self.driver.links.by_name.get(peer)
        return link is not None and link.state is State.OPEN


def speaker(
    name: str,
    *,
    credentials: Credentials | None = None,
    limits: Limits | None = None,
    state: Path | None = None,
    bind: tuple[str, ...] = ("tcp://127.0.0.1:0",),
    protocol: type[Talk] = Talk,
    **net: Any,
) -> Speaker:
    """A driver that does not run yet; `net` are its settings."""
    settings = NetSettings(bind=bind, **net)
    driver = Driver(
        name, overlay=OVERLAY, credentials=credentials, net=settings, limits=limits, state=state
    )
    return Speaker(driver, protocol)


@asynccontextmanager
async def running(*speakers: Speaker) -> AsyncIterator[None]:
    """Run them, and stop them at the end."""
    async with AsyncExitStack() as stack:
        stack.enter_context(trio.fail_after(2 * WITHIN))
        nursery = await stack.enter_async_context(trio.open_nursery())
        for one in speakers:
            await nursery.start(one.driver.run)
        try:
            yield
        finally:
            for one in speakers:
                one.driver.stop()


async def until(condition: Callable[[], object], what: str, within: float = WITHIN) -> None:
    """Wait for a condition."""
    with trio.move_on_after(within):
        # Most conditions are counters in a status: nothing that one could wait on.
        while not condition():  # noqa: ASYNC110
            await trio.sleep(LOOK_AGAIN)
        return
    raise AssertionError(f"waited {within:g} s in vain for {what}")


class Keys:
    """Credentials for the nodes of a secure overlay."""

    def __init__(self, folder: Path) -> None:
        self._authority = Authority.create(folder, OVERLAY)

    def of(self, name: str) -> Credentials:
        return self._authority.issue(name, Rights(zones=("west",)), 1)
