"""Handing something over to a peer: it is kept, and repeated until the peer tells its end.

Routes and ranges share this. The receiver answers `Taken` at once, unless it can tell the end right
away; a repetition finds what it did with the first copy. So a transfer survives the loss of any
message, and a peer that answers nothing is noticed without waiting for membership.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

import msgspec

from overlay.ids import NodeId
from overlay.protocol import Effects, Message
from protocols.routing.config import RoutingSettings
from protocols.routing.messages import Ask, Taken
from protocols.routing.recent import Recent

OnLost: TypeAlias = Callable[[int, NodeId, float], None]  # (transfer, its peer, now)


class Transfer(msgspec.Struct):
    """Something handed to a peer whose end is not known yet."""

    peer: NodeId
    message: Message
    on_lost: OnLost
    due: float  # when the peer owes an answer
    tries: int = 1  # since the peer last answered
    taken: bool = False


class Outgoing:
    """What this node handed over."""

    def __init__(self, effects: Effects, rng: Random, config: RoutingSettings) -> None:
        self._effects = effects
        self._config = config
        self._open: dict[int, Transfer] = {}
        # A random start, so that an answer to an earlier life of this node matches nothing.
        self._next = rng.getrandbits(48)
        self.repeated = 0
        self.lost = 0

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, number: object) -> bool:
        return number in self._open

    def hand(
        self, peer: NodeId, make: Callable[[int], Message], on_lost: OnLost, now: float
    ) -> int:
        """Send what `make(transfer)` returns; `on_lost` is called if the peer is not there."""
        number = self._next
        self._next += 1
        message = make(number)
        self._open[number] = Transfer(peer, message, on_lost, now + self._config.take_timeout)
        self._effects.send(peer, message)
        return number

    def on_taken(self, src: NodeId, msg: Taken, now: float) -> None:
        """The peer has it; ask for the end later, in case that message is lost."""
        transfer = self._open.get(msg.transfer)
        if transfer is not None and transfer.peer == src:
            transfer.taken = True
            transfer.tries = 0
            transfer.due = now + self._config.ask_again

    def ended(self, src: NodeId, number: int) -> bool:
        """Whether this peer tells the end of an open transfer, which it closes; otherwise stray."""
        transfer = self._open.get(number)
        if transfer is None or transfer.peer != src:
            return False
        del self._open[number]
        return True

    def close(self, number: int) -> None:
        """Care no longer."""
        self._open.pop(number, None)

    def sweep(self, now: float) -> None:
        """Repeat what a peer owes an answer for, or take it for lost."""
        overdue = [number for number, transfer in self._open.items() if transfer.due <= now]
        for number in overdue:
            transfer = self._open.get(number)
            if transfer is None:
                continue  # one that was lost before it took this one with it
            if transfer.tries >= self._config.take_tries:
                self._lose(number, transfer, now)
                continue
            transfer.due = now + self._config.take_timeout * 2**transfer.tries
            transfer.tries += 1
            self.repeated += 1
            again = Ask(number) if transfer.taken else transfer.message
            self._effects.send(transfer.peer, again)

    def peer_gone(self, peer: NodeId, now: float) -> None:
        """Membership says so: do not wait."""
        for number, transfer in list(self._open.items()):
            if transfer.peer == peer and number in self._open:
                self._lose(number, transfer, now)

    def set_back(self, now: float) -> None:
        """The clock was set back: nobody shall wait for the time in between."""
        for transfer in self._open.values():
            transfer.due = min(transfer.due, now + self._config.ask_again)

    def _lose(self, number: int, transfer: Transfer, now: float) -> None:
        self.lost += 1
        del self._open[number]
        transfer.on_lost(number, transfer.peer, now)


Handed: TypeAlias = tuple[NodeId, int]
"""Who handed something to this node, and under which number of its own."""


class Incoming:
    """What peers handed to this node: whether it is under way here, or how it ended."""

    def __init__(self, effects: Effects, config: RoutingSettings) -> None:
        self._effects = effects
        self._config = config
        self._ends: Recent[Handed, Message] = Recent(config.remembered, config.remember_for)
        self._under_way: dict[Handed, int] = {}  # bytes of its payload
        self.bytes = 0
        self.turned_away = 0  # for want of room

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def forgotten(self) -> int:
        """Ends that were forgotten for want of room."""
        return self._ends.forgotten

    def begin(self, handed: Handed, size: int) -> bool:
        """Whether to begin with it; otherwise it is answered, or no room is left for it."""
        if self._answer(handed):
            return False
        config = self._config
        if len(self._under_way) >= config.max_open or self.bytes + size > config.max_bytes:
            self.turned_away += 1  # in silence: the peer tries again, then takes another way
            return False
        self._under_way[handed] = size
        self.bytes += size
        return True

    def on_ask(self, src: NodeId, msg: Ask, now: float) -> None:
        """Tell what became of it. Silence when it is unknown, as after a restart."""
        self._answer((src, msg.transfer))

    def _answer(self, handed: Handed) -> bool:
        end = self._ends.get(handed)
        if end is not None:
            self._effects.send(handed[0], end)
        elif handed in self._under_way:
            self.take(handed)
        else:
            return False
        return True

    def take(self, handed: Handed) -> None:
        """Tell the peer that the end will take a while."""
        self._effects.send(handed[0], Taken(handed[1]))

    def end(self, handed: Handed, message: Message, now: float) -> None:
        """Tell the peer the end, and remember it: the message may be lost."""
        self.bytes -= self._under_way.pop(handed)
        self._ends.put(handed, message, now)
        self._effects.send(handed[0], message)
