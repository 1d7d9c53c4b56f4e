"""What zones may be called, and settings that do not fit together."""

from __future__ import annotations

import pytest

from overlay.errors import ConfigError, LocalProtocolError
from protocols.zones import MANAGEMENT, ZonesSettings, check_zone_name
from tests.unit.zones.node import FixedMembership, ZonesNode


@pytest.mark.parametrize("name", ["lab", "lab-2", "Zürich", "a" * 64])
def test_a_zone_is_named_like_a_node(name: str) -> None:
    assert check_zone_name(name) == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "empty"),
        ("a b", "whitespace"),
        ("a\x07", "unprintable"),
        ("a/b", "has a '/'"),
        ("a" * 65, "65 bytes"),
        (MANAGEMENT, "reserved"),
        ("@lab", "reserved"),
    ],
)
def test_other_names_are_refused_with_a_reason(name: str, why: str) -> None:
    with pytest.raises(LocalProtocolError, match=why):
        check_zone_name(name)


def test_the_management_zone_is_nobodys_base_zone() -> None:
    node = ZonesNode()
    with pytest.raises(LocalProtocolError, match="reserved"):
        type(node.zones)(
            "me",
            node.effects,
            node.zones.rng,
            node.zones.config,
            base=FixedMembership(MANAGEMENT, "me"),
        )


def test_only_the_management_zone_can_be_entered_and_once() -> None:
    node = ZonesNode()
    node.serve()
    with pytest.raises(LocalProtocolError, match="already"):
        node.zones.enter_management(node.management, node.now)
    other = ZonesNode()
    with pytest.raises(LocalProtocolError, match="not the management zone"):
        other.zones.enter_management(other.base, 0.0)


def test_times_must_fit_into_each_other() -> None:
    with pytest.raises(ConfigError, match="seek_retry = 9"):
        ZonesSettings(seek_retry=9.0, seek_period=8.0)
    with pytest.raises(ConfigError, match="vanish_after = 1"):
        ZonesSettings(vanish_after=1.0, appoint_after=2.0)
