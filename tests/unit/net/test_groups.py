"""Copies of one datagram by several interfaces, and what is known of interfaces."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from overlay.net.groups import REMEMBERED, SAME_FOR, Copies
from overlay.net.interfaces import LOOK_EVERY, Interfaces, index_of_ipv6

if TYPE_CHECKING:
    import pytest

ETH0, ETH1, ETH2 = 2, 3, 4


def test_the_same_bytes_by_another_interface_are_a_copy() -> None:
    copies = Copies()
    assert not copies.is_copy(b"beacon", ETH0, 0.0)
    assert copies.is_copy(b"beacon", ETH1, 0.1)
    assert copies.is_copy(b"beacon", ETH2, 0.1)
    assert not copies.is_copy(b"other", ETH1, 0.1)


def test_by_the_same_interface_they_were_sent_again() -> None:
    copies = Copies()
    for second in range(5):
        assert not copies.is_copy(b"beacon", ETH0, second)
        assert copies.is_copy(b"beacon", ETH1, second + 0.1)


def test_after_a_while_they_were_sent_again_by_whatever_interface() -> None:
    copies = Copies()
    assert not copies.is_copy(b"beacon", ETH0, 0.0)
    assert copies.is_copy(b"beacon", ETH1, SAME_FOR - 0.01)
    assert not copies.is_copy(b"beacon", ETH1, SAME_FOR)
    assert copies.is_copy(b"beacon", ETH0, SAME_FOR)


def test_what_is_remembered_is_bounded_and_the_oldest_goes_first() -> None:
    copies = Copies()
    for number in range(REMEMBERED + 1):
        assert not copies.is_copy(str(number).encode(), ETH0, 0.0)
    assert copies.is_copy(b"1", ETH1, 0.0)
    assert not copies.is_copy(b"0", ETH1, 0.0)


def test_the_kernel_is_asked_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    present = [(1, "lo")]
    asked: list[float] = []
    now = 100.0

    def name_index() -> list[tuple[int, str]]:
        asked.append(now)
        return present

    monkeypatch.setattr(socket, "if_nameindex", name_index)
    interfaces = Interfaces(lambda: now)
    assert interfaces.names() == {1: "lo"}
    present = [(1, "lo"), (7, "late0")]
    assert (interfaces.name(1), interfaces.name(7)) == ("lo", "")
    now += LOOK_EVERY
    assert interfaces.name(7) == "late0"
    assert asked == [100.0, 100.0 + LOOK_EVERY]


def test_addresses_of_this_machines_loopback() -> None:
    index = socket.if_nametoindex("lo")
    interfaces = Interfaces(lambda: 0.0)
    assert interfaces.ipv4(index) == socket.inet_aton("127.0.0.1")
    assert interfaces.ipv4(0) is None
    assert index_of_ipv6("2001:db8::77") == 0
    assert index_of_ipv6("::1") in (index, 0)  # a kernel may lack IPv6
