"""What delegates tell of storage zones, and what is made of a tier that cannot be read."""

from __future__ import annotations

import pytest

from protocols.dht.core import read_offer
from protocols.dht.zoning import read_tier


def test_a_tier_is_read_in_one_order() -> None:
    assert read_tier("2f;b=2,a=1") == ((("a", 1), ("b", 2)), 0x2F)
    assert read_tier("0;") == ((), 0)


@pytest.mark.parametrize(
    "said",
    ["", "nonsense", "zz;a=0,b=-1,c=x,=3,d", "-5;a=99999999", ";;;", "1;=,=,=,", "0;a=１"],
)
def test_what_cannot_be_read_is_left_out(said: str) -> None:
    tier, oldest = read_tier(said)
    assert tier == ()
    assert oldest >= 0


@pytest.mark.parametrize("said", [None, 7, "", "x:y", "1", "1:", ":1", "1" * 50])
def test_an_offer_that_cannot_be_read_is_none(said: object) -> None:
    assert read_offer(said) is None


def test_an_offer_names_a_life_and_a_table() -> None:
    assert read_offer("ff:10") == (255, 16)
