"""What must never reach a machine, and what must not grow in one."""

from random import Random

import msgspec
import pytest

from overlay.errors import RemoteProtocolError
from overlay.limits import Limits
from overlay.rates import SOURCES, RateLimit
from overlay.wire.datagrams import read_datagram
from overlay.wire.reader import BatchReader
from protocols.discovery import Bdn, Broker, Requester
from protocols.discovery.credentials import Cookies, in_realms, split_digests
from protocols.discovery.messages import (
    Advertisement,
    Ping,
    Request,
    RequestAck,
    Response,
    Usage,
)
from protocols.discovery.recent import RecentRequests
from tests.unit.discovery.node import CLIENT_AT, at

READER = BatchReader(
    dict.fromkeys((*Bdn.messages, *Broker.messages, *Requester.messages)), Limits()
)
NAN = float("nan")


def refusal(message: object) -> str:
    body = msgspec.msgpack.encode((1, "", message))
    with pytest.raises(RemoteProtocolError) as refused:
        read_datagram(body, READER)
    return refused.value.reason


def test_a_million_links_are_refused_before_they_are_read() -> None:
    links = tuple(f"b{number}" for number in range(1_000_000))
    assert refusal(Advertisement("b1", 1, 10.0, links=links)) == "datagram-too-large"


@pytest.mark.parametrize(
    "message",
    [
        Advertisement("b1", 1, 10.0, links=("b",) * 65),
        Advertisement("b1", 1, 10.0, endpoints=("tcp://a:1",) * 5),
        Advertisement("b1", 1, 10.0, region="x" * 65),
        Advertisement("b1", -1, 10.0),
        Advertisement("b1", 1, NAN),
        Advertisement("b1", 1, 1e9),
        Advertisement("", 1, 10.0),
        Request(bytes(15)),
        Request(bytes(16), 64),
        Request(bytes(16), heard=bytes(4 * 257)),
        Request(bytes(16), padding=bytes(2000)),
        RequestAck(bytes(16), 0, "maybe"),  # type: ignore[arg-type]
        RequestAck(bytes(16), 0, "prove", cookie=bytes(17)),
        Response(bytes(16), 0, NAN, Usage()),
        Response(bytes(16), 0, float("inf"), Usage()),
        Response(bytes(16), 0, 0.0, Usage(cpu=1.5)),
        Response(bytes(16), 0, 0.0, Usage(memory_total=1 << 61)),
        Ping(bytes(7), 0.0),
        Ping(bytes(8), NAN),
    ],
)
def test_what_is_out_of_bounds_is_refused_at_the_edge(message: object) -> None:
    assert refusal(message) == "wrong-shape"


def test_every_message_fits_its_datagram_at_its_bounds() -> None:
    text = "ü" * 64
    whole = Advertisement(
        "b" * 64, 1 << 62, 86_400.0, links=("n" * 64,) * 64, endpoints=("e" * 128,) * 4,
        logical=text, region=text, institution=text, realm=text, proof=bytes(16),
    )  # fmt: skip
    body = msgspec.msgpack.encode((1, "", whole))
    assert read_datagram(body, READER) == ("", whole)


def test_a_rest_of_digests_is_left_out() -> None:
    assert split_digests(b"aaaabbbbcc") == [b"aaaa", b"bbbb"]


def test_realms_match_networks_by_address_and_words_by_claim() -> None:
    realms = ("10.0.9.0/24", "lab")
    assert in_realms(realms, "", CLIENT_AT)
    assert in_realms(realms, "lab", at("b1"))
    assert not in_realms(realms, "10.0.9.0/24", at("b1")), "a network is never believed"
    assert not in_realms(("fe80::/10",), "", CLIENT_AT)


def test_cookies_of_another_node_or_empty_ones_do_not_hold() -> None:
    ours, others = Cookies(Random(1)), Cookies(Random(2))
    assert ours.holds(ours.make("a", CLIENT_AT, 59.0), "a", CLIENT_AT, 61.0)
    assert not ours.holds(others.make("a", CLIENT_AT, 59.0), "a", CLIENT_AT, 59.0)
    assert not ours.holds(b"", "a", CLIENT_AT, 59.0)


def test_rates_are_bounded_in_memory_and_survive_a_clock_set_back() -> None:
    rates = RateLimit(1.0, 2.0, 1e6)
    for number in range(2 * SOURCES):
        rates.admits(f"source{number}", 100.0)
    assert len(rates) == SOURCES
    assert [rates.admits("x", 100.0) for _ in range(3)] == [True, True, False]
    assert not rates.admits("x", 50.0)
    assert rates.admits("x", 51.0)


def test_all_together_have_a_rate_too() -> None:
    rates = RateLimit(10.0, 10.0, 3.0)
    assert [rates.admits(f"s{number}", 0.0) for number in range(5)].count(True) == 3


def test_a_stranger_cannot_use_up_the_id_of_a_request() -> None:
    recent = RecentRequests(10)
    assert recent.is_new("mallory", bytes(16), 9)
    assert recent.is_new("client", bytes(16), 0)
