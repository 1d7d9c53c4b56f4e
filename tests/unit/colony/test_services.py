"""When two services overlap (§3)."""

from __future__ import annotations

import pytest

from overlay.errors import RemoteProtocolError
from protocols.colony.services import overlap, read, same_text
from tests.unit.colony.units import service


@pytest.mark.parametrize(
    ("one", "other", "do"),
    [
        ('type = "CPU", time < 10', 'type = "CPU", time > 5', True),  # the paper's pair
        ('type = "CPU", time < 5', 'type = "CPU", time > 5', False),
        ('type = "CPU"', 'type = "disk"', False),
        ('type = "CPU", time < 10', 'type = "CPU"', True),  # what one does not name is free
        ("time < 10", "size > 3", True),
        ('name prefix "ab"', 'name = "abc"', True),
    ],
)
def test_overlap_is_symmetric(one: str, other: str, do: bool) -> None:
    assert overlap(service(one), service(other)) is do
    assert overlap(service(other), service(one)) is do


def test_equal_services_have_one_text() -> None:
    assert same_text('time<10,type="CPU"') == same_text('type = "CPU", time < 10')


def test_nonsense_of_a_peer_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="bad-service"):
        read("type =")
