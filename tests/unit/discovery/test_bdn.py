"""A BDN: what it stores, what it forgets, whom it serves, and where it injects."""

from typing import Any

import pytest

from overlay.errors import RemoteProtocolError
from overlay.protocol import ContactLearned, Group
from protocols.discovery import BrokerDelisted, BrokerListed
from protocols.discovery.bdn import EXPIRE, HOLD, PROBE
from protocols.discovery.credentials import digests_of, prove
from protocols.discovery.messages import (
    Advertisement,
    AdvertisementAck,
    BdnAnnouncement,
    Hold,
    Inject,
    Probe,
    ProbeReply,
    Request,
    RequestAck,
)
from tests.recording import Cast, Send
from tests.unit.discovery.node import CLIENT_AT, BdnNode, at, request, where


def ack_of(bdn: BdnNode) -> AdvertisementAck:
    ((_, ack),) = bdn.casts(AdvertisementAck)
    bdn.drain()
    return ack


def measure(bdn: BdnNode, now: float, **round_trips: float) -> None:
    """Answer the probes after so long."""
    replies = []
    while PROBE in bdn.effects.timers and bdn.effects.timers[PROBE] <= now + 1:
        bdn.fire(PROBE, max(now, bdn.effects.timers[PROBE]))
        for effect in bdn.effects.drain():
            if isinstance(effect, Cast) and isinstance(effect.msg, Probe):
                name = next(one for one in round_trips if at(one) == effect.address)
                replies.append((name, effect.msg.nonce))
    sent = {one.advertisement.name: one.probed_at for one in bdn.machine._registry}
    for name, nonce in replies:
        bdn.datagram(name, at(name), ProbeReply(nonce), sent[name] + round_trips[name])


def injected(bdn: BdnNode, now: float, number: int = 1) -> list[str]:
    asked = bdn.proven(request(number), now)
    bdn.datagram("client", CLIENT_AT, asked, now)
    names = [to for to, _ in bdn.sends(Inject)]
    bdn.drain()
    return names


def test_an_advertisement_is_stored_and_acknowledged() -> None:
    bdn = BdnNode()
    bdn.advertise("b1", 1.0, region="north", endpoints=("tcp://b1:7400",))
    assert bdn.emitted(BrokerListed)[0].advertisement.region == "north"
    assert bdn.emitted(ContactLearned) == [ContactLearned("b1", ("tcp://b1:7400",))]
    assert ack_of(bdn) == AdvertisementAck(1, "stored")
    assert [(told.name, address, rtt) for told, address, rtt in bdn.machine.brokers()] == [
        ("b1", at("b1"), None)
    ]


def test_it_is_forgotten_after_its_lease_and_a_renewal_prolongs_it() -> None:
    bdn = BdnNode()
    bdn.advertise("b1", 0.0, lease=10.0)
    bdn.advertise("b1", 8.0, lease=10.0, sequence=2)
    bdn.fire(EXPIRE, 17.0)
    assert len(bdn.machine.brokers()) == 1
    bdn.drain()
    bdn.fire(EXPIRE, 18.0)
    assert bdn.machine.brokers() == []
    assert bdn.emitted(BrokerDelisted) == [BrokerDelisted("b1")]


def test_a_lease_is_bounded_by_the_bdn() -> None:
    bdn = BdnNode(max_lease=5.0)
    bdn.advertise("b1", 0.0, lease=80_000.0)
    bdn.fire(EXPIRE, 5.0)
    assert bdn.machine.brokers() == []


def test_an_outdated_advertisement_changes_nothing() -> None:
    bdn = BdnNode()
    bdn.advertise("b1", 0.0, sequence=5, region="new")
    bdn.advertise("b1", 1.0, sequence=4, region="old")
    assert bdn.machine.brokers()[0][0].region == "new"
    assert bdn.machine.counts.outdated == 1


def test_a_broker_that_goes_is_forgotten_at_once() -> None:
    bdn = BdnNode()
    bdn.advertise("b1", 0.0)
    bdn.advertise("b1", 1.0, sequence=2, lease=0.0)
    assert bdn.machine.brokers() == []


def test_nobody_advertises_in_the_name_of_another() -> None:
    bdn = BdnNode()
    with pytest.raises(RemoteProtocolError, match="advertisement-forged"):
        bdn.datagram("mallory", at("m"), Advertisement("b1", 1, 10.0), 0.0)


@pytest.mark.parametrize(
    ("policy", "told", "status"),
    [
        ({"regions": ("us",)}, {"region": "us"}, "stored"),
        ({"regions": ("us",)}, {"region": "eu"}, "ignored"),
        ({"realms": ("10.0.1.0/24",)}, {}, "stored"),
        ({"realms": ("10.7.0.0/16",)}, {}, "ignored"),
        ({"realms": ("lab",)}, {"realm": "lab"}, "stored"),
        ({"credentials": ("secret",)}, {}, "credentials"),
        (
            {"credentials": ("secret",)},
            {"proof": prove("secret", (1).to_bytes(8), "b1")},
            "stored",
        ),
        (
            {"credentials": ("secret",)},
            {"proof": prove("secret", (1).to_bytes(8), "b2")},
            "credentials",
        ),
    ],
)
def test_policy(policy: dict[str, Any], told: dict[str, Any], status: str) -> None:
    bdn = BdnNode(**policy)
    bdn.advertise("b1", 0.0, **told)
    assert ack_of(bdn).status == status
    assert len(bdn.machine.brokers()) == (status == "stored")


def test_who_may_not_be_a_broker_is_ignored() -> None:
    bdn = BdnNode(may_be=lambda name, role: name == "b1" and role == "broker")
    bdn.advertise("b1", 0.0)
    assert ack_of(bdn).status == "stored"
    bdn.advertise("b2", 0.0)
    assert ack_of(bdn).status == "ignored"


def test_capacity_is_a_bound_and_renewals_still_count() -> None:
    bdn = BdnNode(capacity=2)
    for name in ("b1", "b2", "b3"):
        bdn.advertise(name, 0.0)
    assert [told.name for told, _, _ in bdn.machine.brokers()] == ["b1", "b2"]
    bdn.drain()
    bdn.advertise("b1", 1.0, sequence=2)
    assert ack_of(bdn).status == "stored"


def test_the_topic_needs_an_address_and_its_own_publisher() -> None:
    bdn = BdnNode()
    told = Advertisement("b1", 1, 10.0, where(at("b1")))
    assert bdn.machine.learn(told, "mallory", 0.0) == "ignored"
    assert bdn.machine.learn(Advertisement("b1", 1, 10.0), "b1", 0.0) == "ignored"
    assert bdn.machine.learn(told, "b1", 0.0) == "stored"


def test_a_request_is_propagated_only_for_an_address_that_answers() -> None:
    bdn = BdnNode()
    bdn.advertise("b1", 0.0)
    bdn.drain()
    bdn.datagram("client", CLIENT_AT, request(), 1.0)
    (challenge,) = bdn.effects.drain()
    assert isinstance(challenge, Cast)
    assert challenge.reader == "client"
    assert isinstance(challenge.msg, RequestAck)
    assert (challenge.address, challenge.msg.status) == (CLIENT_AT, "prove")
    proven = request(cookie=challenge.msg.cookie, realm="lab")
    bdn.datagram("client", CLIENT_AT, proven, 1.1)
    handed = Request(proven.id, address=where(CLIENT_AT), realm="lab")
    accepted = RequestAck(
        proven.id, 0, "accepted", total=1, injected=digests_of(["b1"]), sent_at=1.1
    )
    assert bdn.effects.drain() == [
        Send("b1", Inject("client", handed)),
        Cast(CLIENT_AT, accepted, "client"),
    ]


def test_a_cookie_is_no_use_elsewhere_or_much_later() -> None:
    bdn = BdnNode()
    bdn.advertise("b1", 0.0)
    asked = bdn.proven(request(), 0.0)
    for name, address, now in (
        ("client", at("x"), 1.0),
        ("other", CLIENT_AT, 1.0),
        ("client", CLIENT_AT, 130.0),
    ):
        bdn.datagram(name, address, asked, now)
    assert bdn.sends(Inject) == []
    assert [ack.status for _, ack in bdn.casts(RequestAck)] == ["prove"] * 3


def test_a_retransmission_is_acknowledged_and_only_a_new_attempt_propagated() -> None:
    bdn = BdnNode()
    bdn.advertise("b1", 0.0)
    asked = bdn.proven(request(), 0.0)
    for _ in range(3):
        bdn.datagram("client", CLIENT_AT, asked, 0.0)
    assert len(bdn.sends(Inject)) == 1
    assert [ack.status for _, ack in bdn.casts(RequestAck)] == ["accepted"] * 3
    again = request(attempt=1, cookie=asked.cookie)
    bdn.datagram("client", CLIENT_AT, again, 0.0)
    assert len(bdn.sends(Inject)) == 2


@pytest.mark.parametrize(
    ("policy", "status"),
    [({"credentials": ("s",)}, "credentials"), ({"realms": ("192.168.0.0/16",)}, "refused")],
)
def test_a_private_bdn_tells_what_it_wants(policy: dict[str, Any], status: str) -> None:
    bdn = BdnNode(**policy)
    bdn.drain()
    bdn.datagram("client", CLIENT_AT, request(), 0.0)
    assert [ack.status for _, ack in bdn.casts(RequestAck)] == [status]
    assert bdn.sends(Inject) == []


def test_a_credential_is_shown_for_one_request_of_one_requester() -> None:
    bdn = BdnNode(credentials=("s", "t"))
    bdn.advertise("b1", 0.0, proof=prove("t", (1).to_bytes(8), "b1"))
    good = request(proof=prove("t", request().id, "client"))
    asked = bdn.proven(good, 0.0)
    bdn.datagram("client", CLIENT_AT, asked, 0.0)
    assert len(bdn.sends(Inject)) == 1
    bdn.drain()
    bdn.datagram("other", CLIENT_AT, good, 0.0)
    bdn.datagram("client", CLIENT_AT, request(2, proof=good.proof), 0.0)
    assert [ack.status for _, ack in bdn.casts(RequestAck)] == ["credentials"] * 2


def test_unconnected_brokers_all_get_it() -> None:
    bdn = BdnNode()
    for name in ("b1", "b2", "b3"):
        bdn.advertise(name, 0.0)
    assert sorted(injected(bdn, 0.0)) == ["b1", "b2", "b3"]


def test_of_linked_brokers_the_closest_and_the_farthest_get_it() -> None:
    bdn = BdnNode()
    for name in ("b2", "b3", "b4"):
        bdn.advertise(name, 0.0, "b1")
    bdn.advertise("b1", 0.0)
    assert len(injected(bdn, 0.0)) == 1, "nothing is measured yet: any of them will do"
    measure(bdn, 0.0, b1=0.02, b2=0.01, b3=0.05, b4=0.03)
    assert injected(bdn, 2.0, number=2) == ["b2", "b3"]


def test_each_component_gets_it_also_when_an_unlisted_broker_connects_it() -> None:
    bdn = BdnNode()
    bdn.advertise("b1", 0.0, "hidden")
    bdn.advertise("b2", 0.0, "hidden")
    bdn.advertise("b3", 0.0)
    measure(bdn, 0.0, b1=0.01, b2=0.02, b3=0.015)
    assert injected(bdn, 2.0) == ["b1", "b2", "b3"]
    bdn.advertise("b4", 3.0, "b5")
    bdn.advertise("b5", 3.0)
    measure(bdn, 3.0, b1=0.01, b2=0.02, b3=0.015, b4=0.018, b5=0.019)
    assert injected(bdn, 5.0, number=2) == ["b1", "b2", "b3", "b4"], "one of b4 and b5"


def test_a_silent_broker_loses_its_distance() -> None:
    bdn = BdnNode()
    bdn.advertise("b1", 0.0)
    measure(bdn, 0.0, b1=0.01)
    assert bdn.machine.brokers()[0][2] == pytest.approx(0.01)
    now = 0.0
    for _ in range(5):
        now = max(now, bdn.effects.timers[PROBE])
        bdn.fire(PROBE, now)
    assert bdn.machine.brokers()[0][2] is None


def test_a_probe_of_another_or_of_yesterday_measures_nothing() -> None:
    bdn = BdnNode()
    bdn.advertise("b1", 0.0)
    bdn.fire(PROBE, 0.0)
    ((_, probe),) = bdn.casts(Probe)
    bdn.datagram("mallory", at("b1"), ProbeReply(probe.nonce), 0.01)
    bdn.datagram("b1", at("b1"), ProbeReply(bytes(8)), 0.01)
    assert bdn.machine.brokers()[0][2] is None


def test_probes_keep_to_their_rate() -> None:
    bdn = BdnNode(probe_rate=40.0, source_rate=1000.0)
    for number in range(500):
        bdn.advertise(f"broker{number}", 0.0)
    now = 0.0
    while now < 2.0:
        now = bdn.effects.timers[PROBE]
        bdn.fire(PROBE, now)
    assert 60 <= bdn.machine.counts.probes <= 90


def test_a_flood_of_one_address_leaves_room_for_others() -> None:
    bdn = BdnNode(source_rate=5.0)
    bdn.advertise("b1", 0.0)
    for number in range(100):
        bdn.datagram("flooder", at("f"), request(number), 0.0)
    bdn.drain()
    assert bdn.machine.counts.rate_limited == 95
    assert injected(bdn, 0.0) == ["b1"]


def test_it_announces_itself() -> None:
    bdn = BdnNode(credentials=("s",), group="239.1.2.3:4444", announce=10.0)
    assert bdn.casts(BdnAnnouncement) == [
        (Group("239.1.2.3", 4444), BdnAnnouncement(60.0, private=True))
    ]


def test_links_to_those_that_requests_are_handed_to_are_held() -> None:
    bdn = BdnNode(held_links=2, hold_every=20.0)
    for name in ("b1", "b2", "b3"):
        bdn.advertise(name, 0.0)
    assert bdn.effects.timers[HOLD] == 1.0, "soon, once they are measured"
    bdn.drain()
    bdn.fire(HOLD, 1.0)
    assert bdn.sends(Hold) == [("b1", Hold()), ("b2", Hold())]
    assert bdn.effects.timers[HOLD] == 21.0
    bdn.advertise("b4", 20.5)
    assert bdn.effects.timers[HOLD] == 21.0, "it is due sooner than a second"


def test_no_links_are_held_when_none_are_wanted() -> None:
    bdn = BdnNode(held_links=0)
    bdn.advertise("b1", 0.0)
    assert HOLD not in bdn.effects.timers
