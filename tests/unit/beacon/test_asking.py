"""Who is alone asks at once, then ever more rarely; who has company does not."""

from __future__ import annotations

import itertools

import pytest

from overlay.errors import ConfigError
from overlay.protocol import ContactLearned, Group, NetworkChanged, PeerMet
from protocols.beacon import Answer, BeaconSettings, NobodyFound, PeerFound, Query
from tests.recording import CancelTimer, Cast, Emit, SetTimer
from tests.unit.beacon.node import GROUP, HERE, ZONE, BeaconNode, presence

AT_BOB = ("tcp://10.0.0.98:7000",)


def query(node: BeaconNode) -> Query:
    (cast,) = node.casts()
    assert isinstance(cast.msg, Query)
    return cast.msg


def test_the_first_query_leaves_at_once() -> None:
    node = BeaconNode()
    first, timer = node.start()
    assert isinstance(first, Cast)
    assert isinstance(first.msg, Query)
    assert first == Cast(GROUP, Query(presence("ada", endpoints=HERE), first.msg.id, 0))
    assert isinstance(timer, SetTimer)
    assert timer.key == "query"
    assert 0.075 <= timer.at <= 0.125


def test_an_answer_of_the_own_zone_is_tried_at_once() -> None:
    node = BeaconNode()
    node.beacon.on_start(0.0, {})
    asked = query(node)
    node.hear(Answer(presence(), asked.id), 0.001)
    assert node.drain() == [
        Emit(ContactLearned("bob", AT_BOB)),
        Emit(PeerMet("bob", AT_BOB, ZONE)),
        Emit(PeerFound("bob", ZONE, AT_BOB, "answer")),
    ]
    node.hear(Answer(presence(), asked.id), 0.002)
    assert node.drain() == []  # it is being tried


def test_an_answer_of_another_zone_is_only_told() -> None:
    node = BeaconNode()
    node.beacon.on_start(0.0, {})
    node.hear(Answer(presence(zone="west"), query(node).id), 0.001)
    assert node.drain() == [
        Emit(PeerMet("bob", AT_BOB, "west")),
        Emit(PeerFound("bob", "west", AT_BOB, "answer")),
    ]


def test_an_answer_to_nothing_is_stray() -> None:
    node = BeaconNode()
    node.start()
    node.hear(Answer(presence(), 7), 0.001)
    assert node.drain() == []
    assert node.beacon.counts.stray == 1


def test_queries_become_rare_and_ask_for_more_answers() -> None:
    node = BeaconNode()
    node.beacon.on_start(0.0, {})
    attempts = [query(node).attempt]
    times = [0.0]
    for _ in range(14):
        times.append(node.ring("query"))
        attempts.append(query(node).attempt)
    assert attempts == [0, 1, 2, *[3] * 12]
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert pauses[0] < 0.13
    assert all(0.75 * 30 <= pause <= 1.25 * 30 for pause in pauses[-3:])


def test_who_was_answered_asks_nobody_else_for_a_second() -> None:
    node = BeaconNode()
    node.beacon.on_start(0.0, {})
    asked = query(node)
    node.hear(Answer(presence(), asked.id), 0.01)
    assert node.ring("query") < 0.13
    assert node.casts() == []
    again = node.ring("query")
    assert 0.75 <= again <= 0.13 + 1.25
    assert query(node).attempt == 1


def test_addresses_that_were_given_come_first() -> None:
    node = BeaconNode(told=True)
    assert node.start(10.0) == [SetTimer("query", 10.0 + node.beacon.config.after_seeds)]
    node.ring("query")
    assert query(node).attempt == 0


def test_nobody_found_is_told_when_the_fallback_is_due() -> None:
    node = BeaconNode()
    node.beacon.on_start(10.0, {})
    told: list[NobodyFound] = []
    now = 10.0
    while not told:
        now = node.ring("query")
        told = node.emitted(NobodyFound)
    assert told == [NobodyFound(ZONE, now - 10.0)]
    assert 0.5 <= now - 10.0 <= 0.6


def test_company_ends_the_search_and_being_alone_begins_it_again() -> None:
    node = BeaconNode()
    node.start()
    node.join("bob", 0.01)
    recorded = node.drain()
    assert CancelTimer("query") in recorded
    assert {"speak", "interval", "remember"} == {*node.effects.timers}
    node.fail("bob", 5.0)
    recorded = node.drain()
    assert {"query", "remember"} == {*node.effects.timers}
    (cast,) = (one for one in recorded if isinstance(one, Cast))
    assert isinstance(cast.msg, Query)
    assert cast.msg.attempt == 0


def test_a_new_address_begins_the_search_again() -> None:
    node = BeaconNode()
    node.start()
    for _ in range(6):
        node.ring("query")
    node.drain()
    node.beacon.event_handlers()[NetworkChanged](NetworkChanged(), 50.0)
    assert query(node).attempt == 0
    assert node.effects.timers["query"] < 50.2


def test_who_leaves_is_not_a_last_known_peer() -> None:
    node = BeaconNode()
    node.start()
    node.join("bob", 0.01)
    node.fail("bob", 0.02, left=True)
    assert "query" in node.effects.timers


@pytest.mark.parametrize(
    ("here", "groups"),
    [
        (("tcp://10.0.0.1:7000",), ["239.255.90.77"]),
        (("tcp://[fd00::1]:7000",), ["ff02::5a4d:5130"]),
        (("tcp://[fd00::1]:7000", "tcp://10.0.0.1:7000"), ["ff02::5a4d:5130", "239.255.90.77"]),
        (("tcp://lab.example:7000",), ["239.255.90.77", "ff02::5a4d:5130"]),
        (("ipc:///run/ada",), []),
        ((), []),
    ],
)
def test_it_casts_by_the_versions_of_ip_that_it_is_reached_by(
    here: tuple[str, ...], groups: list[str]
) -> None:
    node = BeaconNode(here=here)
    node.beacon.on_start(0.0, {})
    assert [cast.address for cast in node.casts()] == [Group(host, 17_400) for host in groups]


def test_a_version_of_ip_can_be_turned_off() -> None:
    node = BeaconNode(BeaconSettings(ipv4_group=""))
    node.beacon.on_start(0.0, {})
    assert node.casts() == []
    assert node.beacon.groups() == (Group("ff02::5a4d:5130", 17_400),)


@pytest.mark.parametrize(
    "told",
    [
        {"ipv4_group": "10.0.0.1"},
        {"ipv4_group": "ff02::1"},
        {"ipv6_group": "239.1.1.1"},
        {"ipv6_group": "here"},
        {"query_first": 5.0, "query_longest": 2.0},
        {"announce_first": 500.0},
    ],
)
def test_settings_that_cannot_work_are_refused(told: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        BeaconSettings(**told)  # type: ignore[arg-type]
