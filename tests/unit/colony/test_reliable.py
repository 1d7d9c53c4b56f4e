"""Reliable requests: acknowledged when safe, sent again until then, taken up after a restart."""

from __future__ import annotations

from protocols.colony import Card, Terms, Wish
from protocols.colony.courier import RESEND
from protocols.colony.messages import (
    Acceptance,
    Ack,
    LogIn,
    ServiceRequest,
    ServiceResponse,
    Want,
    Welcome,
)
from tests.recording import Send, Store
from tests.unit.colony.units import CPU, TAPE, Unit

CLIENT = Card("c")
REQUEST = ServiceRequest(7, CLIENT, (Want(0, (str(CPU),)),), 10.0, "exhaustive", serial=50)


def kept_by(unit: Unit) -> dict[bytes, bytes]:
    return {
        one.key: one.value
        for one in unit.effects.recorded
        if isinstance(one, Store) and one.value is not None
    }


def broker() -> Unit:
    unit = Unit("p", leads=True)
    unit.add("c")
    unit.add("a", CPU)
    return unit


def test_a_client_sends_again_until_the_ack() -> None:
    unit = Unit("c", leader="p")
    unit.machine.ask([Wish((CPU,))], Terms(reliable=True), 0.0)
    (first,) = unit.sent(ServiceRequest)
    assert isinstance(first.msg, ServiceRequest)
    assert unit.fire(RESEND, 0.5) == [first]
    unit.deliver("x", Ack(first.msg.serial))
    assert unit.fire(RESEND, 1.5) == [first], "only its receiver's word counts"
    unit.deliver("p", Ack(first.msg.serial))
    assert unit.fire(RESEND, 3.5) == []


def test_a_broker_acknowledges_what_is_on_disk() -> None:
    unit = broker()
    unit.machine.message_handlers()[ServiceRequest]("c", REQUEST, 1.0)
    done = unit.effects.drain()
    (store,) = [one for one in done if isinstance(one, Store)]
    assert not [one for one in done if isinstance(one, Send) and isinstance(one.msg, Ack)]
    unit.machine.on_stored(store.token, 1.1)
    assert unit.drain() == [Send("c", Ack(50))]
    unit.machine.message_handlers()[ServiceRequest]("c", REQUEST, 1.2)
    assert unit.drain() == [Send("c", Ack(50))], "a copy is safe already"


def test_responses_are_acknowledged_and_sent_again() -> None:
    unit = broker()
    unit.deliver("c", REQUEST)
    answer = ServiceResponse(7, "c", (Acceptance(0, Card("a")),), (), 60)
    acknowledged, told = unit.deliver("a", answer)
    assert acknowledged == Send("a", Ack(60))
    assert isinstance(told, Send)
    assert isinstance(told.msg, ServiceResponse)
    assert told.msg.accepted == answer.accepted
    assert unit.machine.searches == 1, "who asks again is told again"
    assert unit.fire(RESEND, 2.0)[-1] == told
    unit.machine.message_handlers()[Ack]("c", Ack(told.msg.serial), 2.1)
    forgotten = [one for one in unit.effects.drain() if isinstance(one, Store)]
    assert [one.value for one in forgotten] == [None], "it is over: the disk may forget it"


def test_a_restarted_broker_takes_it_up_and_waits_for_its_individuals() -> None:
    before = broker()
    before.machine.message_handlers()[ServiceRequest]("c", REQUEST, 1.0)
    kept = kept_by(before)
    assert kept
    after = Unit("p", leads=True, kept=kept)
    assert after.machine.counts.recovered == 1
    assert after.drain() == [Send("c", Ack(50))], "nothing is rejected while they may return"
    after.deliver("c", LogIn(1, "computer", 1, ()), 1.0)
    done = after.deliver("a", LogIn(1, "computer", 1, (str(CPU),)), 1.0)
    asked = [one for one in done if isinstance(one, Send)]
    assert [type(one.msg) for one in asked] == [Welcome, ServiceRequest], "as soon as it is here"


def test_a_restarted_broker_rejects_what_nobody_came_back_for() -> None:
    before = broker()
    before.machine.message_handlers()[ServiceRequest](
        "c", ServiceRequest(7, CLIENT, (Want(0, (str(TAPE),)),), 10.0, "exhaustive", serial=50), 1.0
    )
    after = Unit("p", leads=True, kept=kept_by(before))
    after.drain()
    (answer,) = after.fire("expire", after.machine.config.lease)
    assert isinstance(answer, Send)
    assert isinstance(answer.msg, ServiceResponse)
    assert (answer.to, answer.msg.rejected) == ("c", (0,))


def test_a_servant_answers_a_copy_as_before() -> None:
    willing = iter((True, False))
    unit = Unit("a", leader="p", offers=[CPU], policy=lambda proposal: next(willing))
    answers = [unit.deliver("p", REQUEST) for _ in range(2)]
    for acknowledged, answer in answers:
        assert acknowledged == Send("p", Ack(50))
        assert isinstance(answer, Send)
        assert isinstance(answer.msg, ServiceResponse)
        assert [one.servant.name for one in answer.msg.accepted] == ["a"]
    assert unit.machine.counts.served == 1
