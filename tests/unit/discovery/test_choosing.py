"""Weights, ranking, and what a liar gains."""

from typing import Any

import msgspec
import pytest

from overlay.errors import ConfigError
from overlay.intervals import Interval
from overlay.protocol import UdpAddress
from protocols.discovery import DiscoverySettings, Usage
from protocols.discovery.choosing import Heard, load_weight, rank
from protocols.discovery.config import parse_address
from protocols.discovery.interface import UNKNOWN
from protocols.discovery.messages import Response
from tests.unit.discovery.node import at

GIB = 1 << 30
RIGHT = Interval(0.0, 0.0)  # our clock shows overlay time


def within(error: float) -> Interval:
    return Interval(-error, error)


def heard(name: str, delay: float, elapsed: float = 0.1, usage: Usage | None = None) -> Heard:
    response = Response(bytes(16), 0, elapsed - delay, usage or Usage())
    return Heard(name, at(name), response, elapsed, elapsed)


def test_a_weight_is_between_0_and_1_whatever_the_memory() -> None:
    config = DiscoverySettings()
    idle = load_weight(Usage(memory_total=GIB), GIB, config)
    full = load_weight(Usage(10**9, 10**9, 1.0, GIB, GIB), 1 << 60, config)
    assert idle == pytest.approx(1.0)
    assert 0.0 <= full < 0.01
    assert load_weight(Usage(memory_used=5), 0, config) < 1.0, "who hides its memory gains nothing"


def test_only_the_weights_that_are_set_count() -> None:
    weights: dict[str, Any] = dict.fromkeys(
        ("weight_free_memory", "weight_total_memory", "weight_connections", "weight_links"), 0.0
    )
    config = DiscoverySettings(weight_cpu=5.0, **weights)
    assert load_weight(Usage(10**6, 99, 0.25, 10, 10), GIB, config) == 0.75
    with pytest.raises(ConfigError, match="all weights are 0"):
        DiscoverySettings(weight_cpu=0.0, **weights)


def test_near_and_idle_brokers_come_first() -> None:
    config = DiscoverySettings()
    busy = Usage(900, 20, 0.95, GIB, GIB)
    idle = Usage(memory_total=GIB)
    ranked = rank(
        [
            heard("far", 0.09, usage=idle),
            heard("busy", 0.010, usage=busy),
            heard("idle", 0.011, usage=idle),
        ],
        config,
        RIGHT,
    )
    assert [one.name for one in ranked] == ["idle", "busy", "far"]


@pytest.mark.parametrize("lie", [-3600.0, -0.02, 0.2, 3600.0])
def test_an_impossible_delay_is_taken_for_the_longest_possible(lie: float) -> None:
    ranked = rank(
        [heard("liar", lie, 0.05), heard("near", 0.02)], DiscoverySettings(), within(0.005)
    )
    assert [(one.name, one.plausible) for one in ranked] == [("near", True), ("liar", False)]
    assert ranked[1].estimated_delay == pytest.approx(lie), "people are shown what it claimed"


def test_the_clocks_error_makes_a_small_negative_delay_plausible() -> None:
    (one,) = rank([heard("near", -0.01)], DiscoverySettings(), within(0.02))
    assert one.plausible
    # It took no less than nothing, and no more than its timestamp and the clocks allow.
    assert (one.estimated_delay, one.delay_error) == pytest.approx((0.005, 0.005))


def test_who_knows_no_time_tells_no_more_than_that_it_answered() -> None:
    lost = msgspec.structs.replace(heard("lost", 5000.0).response, error=UNKNOWN)
    (one,) = rank([Heard("lost", at("lost"), lost, 0.1, 0.1)], DiscoverySettings(), RIGHT)
    assert one.plausible
    assert (one.estimated_delay, one.delay_error) == pytest.approx((0.05, 0.05))


def test_addresses() -> None:
    assert parse_address("10.0.0.1:7400") == UdpAddress("10.0.0.1", 7400)
    assert parse_address("udp://[fe80::1]:7400") == UdpAddress("fe80::1", 7400)
    for bad in ("", "host", "host:", ":1", "host:0", "host:70000", "host:²"):
        with pytest.raises(ConfigError):
            parse_address(bad)
