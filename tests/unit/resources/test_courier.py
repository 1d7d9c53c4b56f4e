"""The courier: each message once and in order, whatever the link does."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from overlay.ids import NodeId
from protocols.resources.config import ResourcesSettings
from protocols.resources.counts import ResourceCounts
from protocols.resources.courier import EARLY, RESEND, Courier
from protocols.resources.messages import (
    NO_SLIP,
    Carried,
    Done,
    Receipt,
    Request,
    RequestId,
    Slip,
)
from protocols.resources.models import ModelType
from tests.recording import RecordingEffects, Send, SetTimer, TickEnd


class End:
    """One end of a link."""

    def __init__(self, seed: int = 1, config: ResourcesSettings | None = None) -> None:
        self.effects = RecordingEffects()
        self.counts = ResourceCounts()
        self.lost: list[tuple[NodeId, list[RequestId], float]] = []
        config = config or ResourcesSettings(resend=0.5, patience=4.0)
        self.courier = Courier(self.effects, Random(seed), config, self.counts, self.on_lost)

    def on_lost(self, peer: NodeId, kept: Collection[RequestId], since: float, now: float) -> None:
        self.lost.append((peer, list(kept), since))

    def sent(self) -> list[Carried | Receipt]:
        """What left, receipts at the end of the tick included."""
        out: list[Carried | Receipt] = []
        while effects := self.effects.drain():
            for effect in effects:
                if isinstance(effect, Send):
                    out.append(effect.msg)  # type: ignore[arg-type]
                elif isinstance(effect, TickEnd):
                    effect.callback(0.0)
        return out


def done(number: int) -> Done:
    return Done(NO_SLIP, RequestId("b", number), ModelType.DYNAMIC, complete=True)


def request(number: int) -> Request:
    return Request(NO_SLIP, RequestId("a", number), ModelType.DYNAMIC, ())


def numbers(messages: list[Carried]) -> list[int]:
    return [one.id.number for one in messages if not hasattr(one, "resource")]


def test_messages_are_numbered_and_kept_until_they_are_confirmed() -> None:
    end = End()
    end.courier.send("b", done(7), 1.0)
    (send, timer) = end.effects.drain()
    assert isinstance(send, Send)
    assert isinstance(send.msg, Done)
    assert send.msg.slip[1:] == (1, 1)
    assert timer == SetTimer(RESEND, 1.5)
    end.courier.send("b", done(8), 1.1)
    ((second),) = end.sent()
    assert isinstance(second, Done)
    assert second.slip[1:] == (2, 1)
    assert end.courier.unconfirmed == 2
    end.courier.on_receipt("b", Receipt(send.msg.slip.series, 2), 1.2)
    assert end.courier.unconfirmed == 1


def test_what_is_not_confirmed_is_sent_again_each_time_later() -> None:
    end = End()
    end.courier.send("b", done(7), 0.0)
    end.effects.drain()
    end.courier.on_timer(0.5)
    assert [type(one) for one in end.effects.drain()] == [Send, SetTimer]
    assert end.effects.timers[RESEND] == 1.5
    end.courier.on_timer(1.5)
    assert end.effects.timers[RESEND] == 3.5
    assert end.counts.resent == 2
    end.courier.on_timer(4.1)
    assert end.lost == [("b", [], 4.1)]
    assert end.courier.unconfirmed == 0


def test_they_are_handed_over_once_and_in_order() -> None:
    one, other = End(1), End(2)
    for number in range(5):
        one.courier.send("b", done(number), 0.0)
    messages = [msg for msg in one.sent() if isinstance(msg, Done)]
    assert numbers(other.courier.take("a", messages[1], 0.0)) == []
    assert numbers(other.courier.take("a", messages[2], 0.0)) == []
    assert numbers(other.courier.take("a", messages[1], 0.0)) == []  # again
    assert numbers(other.courier.take("a", messages[0], 0.0)) == [0, 1, 2]
    assert numbers(other.courier.take("a", messages[0], 0.0)) == []
    assert numbers(other.courier.take("a", messages[3], 0.0)) == [3]
    series = messages[0].slip.series
    assert other.sent() == [Receipt(series, 5)]  # one for all of a tick
    assert other.counts.repeats_dropped == 2


def test_too_early_is_dropped_and_counted() -> None:
    other = End()
    far = Done(Slip(9, EARLY + 1, 1), RequestId("a", 1), ModelType.DYNAMIC, complete=True)
    assert other.courier.take("a", far, 0.0) == []
    assert other.counts.early_dropped == 1


def test_a_new_life_of_the_receiver_gets_again_what_it_has_not_confirmed() -> None:
    one, other, reborn = End(1), End(2), End(3)
    one.courier.send("b", done(1), 0.0)
    (first,) = one.sent()
    other.courier.take("a", first, 0.0)  # type: ignore[arg-type]
    (receipt,) = other.sent()
    one.courier.on_receipt("b", receipt, 0.1)  # type: ignore[arg-type]
    one.courier.send("b", request(2), 1.0)
    one.courier.send("b", done(3), 1.0)
    for msg in one.sent():
        assert reborn.courier.take("a", msg, 1.0) == []  # type: ignore[arg-type]
    denial = reborn.sent()[0]
    assert denial == Receipt(first.slip.series, 0)  # type: ignore[union-attr]
    one.courier.on_receipt("b", denial, 1.1)
    assert one.lost == [("b", [RequestId("a", 2)], 1.1)]
    ready = [
        msg
        for again in one.sent()
        for msg in reborn.courier.take("a", again, 1.1)  # type: ignore[arg-type]
    ]
    assert numbers(ready) == [2, 3]


def test_a_new_life_of_the_sender_is_noticed() -> None:
    one, reborn, other = End(1), End(2), End(3)
    one.courier.send("b", done(1), 0.0)
    reborn.courier.send("b", done(2), 5.0)
    (old,), (new,) = one.sent(), reborn.sent()
    assert numbers(other.courier.take("a", old, 0.0)) == [1]  # type: ignore[arg-type]
    assert numbers(other.courier.take("a", new, 5.0)) == [2]  # type: ignore[arg-type]
    assert other.lost == [("a", [], 5.0)]
    assert other.courier.take("a", old, 6.0) == []  # type: ignore[arg-type]
    assert other.lost == [("a", [], 5.0)]  # a late copy of the old life changes nothing


def test_who_is_forgotten_begins_anew() -> None:
    one, other = End(1), End(2)
    one.courier.send("b", done(1), 0.0)
    (first,) = one.sent()
    other.courier.take("a", first, 0.0)  # type: ignore[arg-type]
    other.sent()
    other.courier.forget("a")
    assert other.courier.take("a", first, 1.0) == []  # type: ignore[arg-type]
    assert other.sent() == [Receipt(first.slip.series, 0)]  # type: ignore[union-attr]


def test_too_much_unconfirmed_is_a_lost_link() -> None:
    end = End(config=ResourcesSettings(max_unconfirmed=16, resend=0.5))
    for number in range(17):
        end.courier.send("b", done(number), 0.0)
    end.courier.on_timer(0.5)
    assert end.lost == [("b", [], 0.5)]
    assert end.counts.links_lost == 1
