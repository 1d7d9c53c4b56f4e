"""A broker: whom it answers, to whom it hands requests on, and where it advertises."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from overlay.errors import RemoteProtocolError
from overlay.protocol import LinkLost, UdpAddress
from protocols.discovery import Advertised, AdvertisementChanged
from protocols.discovery.advertising import ADVERTISE
from protocols.discovery.broker import GREET
from protocols.discovery.credentials import digest_of, digests_of, prove
from protocols.discovery.interface import Moment
from protocols.discovery.messages import (
    PADDED_TO,
    Advertisement,
    AdvertisementAck,
    BdnAnnouncement,
    BrokerLink,
    Hold,
    Inject,
    Ping,
    Pong,
    Probe,
    ProbeReply,
    Request,
    RequestAck,
    Response,
    Usage,
)
from tests.recording import Cast, Send
from tests.unit.discovery.node import BDN_AT, CLIENT_AT, BrokerNode, at, request, where


def inject(number: int = 1, **told: Any) -> Inject:
    asked = Request(number.to_bytes(16), address=where(CLIENT_AT), **told)
    return Inject("client", asked)


def linked(*names: str, **options: Any) -> BrokerNode:
    broker = BrokerNode(**options)
    for name in names:
        broker.message(name, BrokerLink(30.0), 0.0)
    broker.drain()
    return broker


def ahead(now: float) -> Moment:
    return Moment(now + 100, 0.25)


def test_an_injected_request_is_handed_on_and_answered_by_udp() -> None:
    usage = Usage(connections=3, cpu=0.25)
    broker = linked("b2", "b3", usage=lambda: usage, clock=ahead, region="north")
    broker.message("b2", inject(), 1.0)
    assert broker.effects.drain() == [
        Send("b3", msgspec.structs.replace(inject(), hops=1)),
        Cast(
            CLIENT_AT,
            Response(
                inject().request.id,
                0,
                101.0,
                usage,
                ("tcp://b1:7400",),
                region="north",
                forwarded=digests_of(["b3"]),
                error=0.25,
            ),
            "client",
        ),
    ]


def test_the_same_attempt_is_handled_once_and_the_next_one_again() -> None:
    broker = linked("b2", "b3")
    broker.message("b2", inject(), 1.0)
    broker.message("b3", inject(), 1.1)
    assert (len(broker.sends(Inject)), len(broker.casts(Response))) == (1, 1)
    broker.message("b2", inject(attempt=1), 1.2)
    assert (len(broker.sends(Inject)), len(broker.casts(Response))) == (2, 2)
    assert broker.machine.counts.duplicates == 1


def test_who_was_heard_hands_on_and_does_not_answer() -> None:
    broker = linked("b2", "b3")
    broker.message("b2", inject(attempt=1, heard=digest_of("b9") + digest_of("b1")), 1.0)
    assert [to for to, _ in broker.sends(Inject)] == ["b3"]
    assert broker.casts(Response) == []


def test_only_the_last_requests_are_remembered() -> None:
    broker = linked(remembered=3)
    for number in (1, 2, 3, 4, 1):
        broker.message("bdn", inject(number), 1.0)
    assert len(broker.casts(Response)) == 5, "the first one was forgotten"


def test_only_brokers_and_bdns_may_inject() -> None:
    broker = linked(may_be=lambda name, role: (name, role) == ("bdn", "bdn"))
    broker.message("bdn", inject(), 1.0)
    with pytest.raises(RemoteProtocolError, match="discovery-no-right"):
        broker.message("peer", inject(2), 1.0)
    with pytest.raises(RemoteProtocolError, match="bad-inject"):
        broker.message("bdn", Inject("client", Request(bytes(16))), 1.0)


def test_a_requester_by_multicast_is_answered_at_once_and_asked_for_proof() -> None:
    broker = linked("b2")
    broker.datagram("client", CLIENT_AT, request(), 1.0)
    ((_, ack),) = broker.casts(RequestAck)
    assert ack.status == "prove"
    ((address, response),) = broker.casts(Response)
    assert (address, response.forwarded) == (CLIENT_AT, b"")
    assert broker.sends(Inject) == [], "its address is not proven"
    broker.drain()
    broker.datagram("client", CLIENT_AT, request(cookie=ack.cookie), 1.1)
    assert broker.sends(Inject) == [("b2", inject())]
    assert broker.casts(RequestAck) == [
        (
            CLIENT_AT,
            RequestAck(
                request().id, 0, "accepted", total=1, injected=digests_of(["b2"]), sent_at=1.1
            ),
        )
    ]
    assert broker.casts(Response) == [], "it answered this attempt already"


def test_a_broker_without_neighbours_asks_for_no_proof_and_says_so() -> None:
    broker = linked()
    broker.datagram("client", CLIENT_AT, request(), 1.0)
    assert broker.casts(RequestAck) == []
    ((_, response),) = broker.casts(Response)
    assert response.alone


def test_an_answer_is_never_longer_than_twice_an_unproven_request() -> None:
    text = "x" * 64
    broker = BrokerNode(
        region=text, institution=text, logical=text, usage=lambda: Usage(10**9, 10**9, 0.5, 1, 1)
    )
    broker.drain()
    broker.datagram("client", CLIENT_AT, Request(bytes(16)), 1.0)
    assert broker.casts(Response) == []
    assert broker.machine.counts.too_small == 1
    broker.datagram("client", CLIENT_AT, request(2), 1.0)
    ((_, response),) = broker.casts(Response)
    assert len(msgspec.msgpack.encode(response)) <= 2 * PADDED_TO


@pytest.mark.parametrize(
    ("policy", "told", "answers"),
    [
        ({"answer_realms": ("10.0.9.0/24",)}, {}, True),
        ({"answer_realms": ("10.0.8.0/24",)}, {}, False),
        ({"answer_realms": ("lab",)}, {"realm": "lab"}, True),
        ({"answer_realms": ("lab",)}, {"realm": "office"}, False),
        ({"answer_credentials": ("s",)}, {}, False),
        (
            {"answer_credentials": ("r", "s")},
            {"proof": prove("s", (1).to_bytes(16), "client")},
            True,
        ),
    ],
)
def test_response_policy(policy: dict[str, Any], told: dict[str, Any], answers: bool) -> None:
    broker = linked("b2", "b3", **policy)
    broker.message("b2", inject(**told), 1.0)
    assert len(broker.casts(Response)) == answers
    assert len(broker.sends(Inject)) == 1, "who does not answer still hands on"


def test_pings_and_probes_come_back_no_longer_than_they_went() -> None:
    broker = linked()
    broker.datagram("client", CLIENT_AT, Ping(bytes(8), 1.5), 2.0)
    broker.datagram("bdn", BDN_AT, Probe(bytes(8)), 2.0)
    assert broker.effects.drain() == [
        Cast(CLIENT_AT, Pong(bytes(8), 1.5)),
        Cast(BDN_AT, ProbeReply(bytes(8))),
    ]


def test_a_flood_is_cut() -> None:
    broker = linked(source_rate=10.0)
    for _ in range(50):
        broker.datagram("client", CLIENT_AT, Ping(bytes(8), 1.0), 2.0)
    assert len(broker.casts(Pong)) == 10
    broker.datagram("client", CLIENT_AT, Ping(bytes(8), 1.0), 2.5)
    assert len(broker.casts(Pong)) == 11


def test_neighbours_greet_each_other_and_expire() -> None:
    broker = BrokerNode(links=("b2",), link_lease=30.0)
    assert broker.sends(BrokerLink) == [("b2", BrokerLink(30.0, greeting=True))]
    assert broker.machine.neighbours() == [], "it has not said anything yet"
    broker.drain()
    broker.message("b2", BrokerLink(30.0), 1.0)
    broker.message("b3", BrokerLink(30.0, greeting=True), 1.0)
    assert broker.sends(BrokerLink) == [("b3", BrokerLink(30.0))]
    assert broker.machine.neighbours() == ["b2", "b3"]
    broker.message("b3", BrokerLink(0.0), 2.0)
    assert broker.machine.neighbours() == ["b2"]
    broker.fire(GREET, 31.0)
    assert broker.machine.neighbours() == []
    assert broker.effects.timers[GREET] == 41.0


def test_neighbours_are_bounded_and_must_be_brokers() -> None:
    broker = BrokerNode(max_links=1, may_be=lambda name, role: name != "peer")
    broker.message("b2", BrokerLink(30.0), 1.0)
    with pytest.raises(RemoteProtocolError, match="discovery-full"):
        broker.message("b3", BrokerLink(30.0), 1.0)
    with pytest.raises(RemoteProtocolError, match="discovery-no-right"):
        broker.message("peer", BrokerLink(30.0), 1.0)


def test_a_neighbour_whose_link_broke_gets_requests_but_nobody_waits_for_it() -> None:
    broker = linked("b2", "b3")
    broker.machine.event_handlers()[LinkLost](LinkLost("b3"), 1.0)
    broker.message("bdn", inject(), 2.0)
    assert [to for to, _ in broker.sends(Inject)] == ["b2", "b3"]
    ((_, response),) = broker.casts(Response)
    assert response.forwarded == digests_of(["b2"])
    broker.message("b3", BrokerLink(30.0), 3.0)
    broker.drain()
    broker.message("bdn", inject(2), 4.0)
    assert broker.casts(Response)[0][1].forwarded == digests_of(["b2", "b3"])


# -- advertising --------------------------------------------------------------------------------


def advertising(**options: Any) -> BrokerNode:
    options.setdefault("bdns", ("10.0.0.1:7400",))
    return BrokerNode(lease=90.0, advertise_retry=0.5, **options)


def test_it_advertises_until_a_bdn_acknowledges_then_by_its_lease() -> None:
    broker = advertising(region="north", credential="s")
    now = broker.effects.timers[ADVERTISE]
    broker.fire(ADVERTISE, now)
    ((address, told),) = broker.casts(Advertisement)
    assert address == BDN_AT
    assert (told.name, told.lease, told.region) == ("b1", 90.0, "north")
    assert told.endpoints == ("tcp://b1:7400",)
    assert told.proof == prove("s", told.sequence.to_bytes(8), "b1")
    times = advertised_until(broker, now, 20.0)
    assert times[0] - now < 1.0
    assert max(later - one for one, later in pairwise(times)) <= 6.0, "nobody is silent for long"
    broker.drain()
    broker.datagram("bdn", BDN_AT, AdvertisementAck(told.sequence, "stored"), 20.0)
    assert broker.emitted(Advertised) == [Advertised("bdn", "stored", "")]
    renewed = advertised_until(broker, 20.0, 51.0)[0]
    assert 24.0 <= renewed - 20.0 <= 30.0


def advertised_until(broker: BrokerNode, now: float, end: float) -> list[float]:
    """Let time pass; when the broker advertised."""
    times = []
    while broker.effects.timers[ADVERTISE] <= end:
        now = max(now, broker.effects.timers[ADVERTISE])
        broker.drain()
        broker.fire(ADVERTISE, now)
        times += [now for _ in broker.casts(Advertisement)]
    return times


def test_a_stray_acknowledgement_changes_nothing() -> None:
    broker = advertising()
    broker.fire(ADVERTISE, 0.1)
    before = dict(broker.effects.timers)
    broker.datagram("bdn", UdpAddress("10.9.9.9", 1), AdvertisementAck(0, "stored"), 0.2)
    broker.datagram("bdn", BDN_AT, AdvertisementAck(77, "stored"), 0.2)
    assert broker.effects.timers == before


def test_a_new_neighbour_is_advertised_soon() -> None:
    broker = advertising()
    broker.fire(ADVERTISE, 0.1)
    ((_, first),) = broker.casts(Advertisement)
    broker.datagram("bdn", BDN_AT, AdvertisementAck(first.sequence, "stored"), 0.2)
    broker.message("b2", BrokerLink(30.0), 5.0)
    broker.drain()
    assert broker.effects.timers[ADVERTISE] < 5.1
    broker.fire(ADVERTISE, 5.1)
    ((_, second),) = broker.casts(Advertisement)
    assert second.links == ("b2",)
    assert second.sequence > first.sequence
    assert broker.emitted(AdvertisementChanged) == [AdvertisementChanged(second)]


def test_a_bdn_that_announces_itself_is_advertised_to_for_its_lease() -> None:
    broker = advertising(bdns=(), learned_bdns=1)
    broker.datagram("bdn", BDN_AT, BdnAnnouncement(60.0), 0.0)
    broker.datagram("other", at("o"), BdnAnnouncement(60.0), 0.0)
    broker.drain()
    broker.fire(ADVERTISE, 0.1)
    assert [address for address, _ in broker.casts(Advertisement)] == [BDN_AT]
    broker.drain()
    broker.fire(ADVERTISE, 61.0)
    assert broker.casts(Advertisement) == []


def test_a_private_bdn_is_left_alone_without_a_credential() -> None:
    broker = advertising(bdns=())
    broker.datagram("bdn", BDN_AT, BdnAnnouncement(60.0, private=True), 0.0)
    broker.fire(ADVERTISE, 0.1)
    assert broker.casts(Advertisement) == []


def test_a_broker_that_stops_withdraws() -> None:
    broker = advertising()
    broker.message("b2", BrokerLink(30.0), 0.0)
    broker.drain()
    broker.machine.on_stop(9.0)
    ((address, told),) = broker.casts(Advertisement)
    assert (address, told.lease) == (BDN_AT, 0.0)
    assert broker.sends(BrokerLink) == [("b2", BrokerLink(0.0))]


def test_a_bdn_that_holds_its_link_changes_nothing() -> None:
    broker = linked("b2")
    broker.message("bdn", Hold(), 1.0)
    assert broker.effects.drain() == []


def test_an_acknowledgement_promises_no_neighbour_whose_link_broke() -> None:
    broker = linked("b2", "b3")
    broker.machine.event_handlers()[LinkLost](LinkLost("b3"), 0.5)
    broker.drain()
    broker.datagram("client", CLIENT_AT, request(), 1.0)
    ((_, ack),) = broker.casts(RequestAck)
    broker.drain()
    broker.datagram("client", CLIENT_AT, request(cookie=ack.cookie), 1.1)
    assert [name for name, _ in broker.sends(Inject)] == ["b2", "b3"], "it may live yet"
    ((_, accepted),) = broker.casts(RequestAck)
    assert (accepted.total, accepted.injected) == (1, digests_of(["b2"]))
