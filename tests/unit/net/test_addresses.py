"""Endpoints: what people may write, what is told to peers, and which ports are tried."""

from __future__ import annotations

import socket

import pytest

from overlay.errors import ConfigError
from overlay.net import addresses
from overlay.net.addresses import (
    ADVERTISED,
    Endpoint,
    advertised,
    is_loopback,
    is_wildcard,
    local_addresses,
    parse_endpoint,
)
from overlay.protocol import UdpAddress


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("192.168.1.5:7400", Endpoint("tcp", "192.168.1.5", 7400)),
        ("tcp://192.168.1.5:7400", Endpoint("tcp", "192.168.1.5", 7400)),
        ("lab-7.example:0", Endpoint("tcp", "lab-7.example", 0)),
        ("[fd00::2]:65535", Endpoint("tcp", "fd00::2", 65_535)),
        ("[fe80::1%eth0]:7400", Endpoint("tcp", "fe80::1%eth0", 7400)),
        ("ipc:///run/overlay/ada", Endpoint("ipc", "/run/overlay/ada")),
    ],
)
def test_what_people_write(text: str, endpoint: Endpoint) -> None:
    assert parse_endpoint(text) == endpoint
    assert parse_endpoint(str(endpoint)) == endpoint


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nowhere", "write HOST:PORT"),
        (":7400", "write HOST:PORT"),
        ("host:", "write HOST:PORT"),
        ("host:7४00", "write HOST:PORT"),
        ("host:70000", "a port is at most 65535"),
        ("fe80::1:7400", "in brackets"),
        ("[]:7400", "not a name or an address"),
        ("a b:7400", "not a name or an address"),
        ("udp://host:7400", "tcp:// or ipc://"),
        ("ipc://relative", "an ipc path is absolute"),
        ("ipc:///" + "x" * 100, "100 bytes at most"),
    ],
)
def test_what_is_refused_with_a_reason(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_endpoint(text)
    assert complaint in str(caught.value)
    assert repr(text) in str(caught.value)


def test_datagrams_share_the_port_and_ipc_has_none() -> None:
    assert parse_endpoint("[::1]:7400").udp == UdpAddress("::1", 7400)
    assert parse_endpoint("ipc:///run/ada").udp is None


def test_wildcards_and_loopback() -> None:
    assert [host for host in ("0.0.0.0", "::", "*", "127.0.0.1", "::1") if is_wildcard(host)] == [
        "0.0.0.0",
        "::",
        "*",
    ]
    for near in ("localhost", "127.0.0.1", "127.8.9.1", "::1"):
        assert is_loopback(near)
    for far in ("0.0.0.0", "::", "192.168.1.5", "fe80::1%eth0", "lab-7.example"):
        assert not is_loopback(far)


# -- what peers are told ----------------------------------------------------------------------


class Machine:
    """Interfaces as psutil tells them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, first: str = "") -> None:
        self.found: dict[str, list[tuple[socket.AddressFamily, str]]] = {}
        self.down: set[str] = set()
        monkeypatch.setattr("psutil.net_if_addrs", self._addresses)
        monkeypatch.setattr("psutil.net_if_stats", self._states)
        monkeypatch.setattr(addresses, "_default_route_address", lambda family: first)

    def has(self, name: str, *hosts: str, up: bool = True) -> None:
        self.found[name] = [
            (socket.AF_INET6 if ":" in host else socket.AF_INET, host) for host in hosts
        ]
        if not up:
            self.down.add(name)

    def _addresses(self) -> dict[str, list[object]]:
        class Entry:
            def __init__(self, family: socket.AddressFamily, address: str) -> None:
                self.family = family
                self.address = address

        return {name: [Entry(*one) for one in entries] for name, entries in self.found.items()}

    def _states(self) -> dict[str, object]:
        class State:
            def __init__(self, isup: bool) -> None:
                self.isup = isup

        return {name: State(name not in self.down) for name in self.found}


def test_the_address_of_the_default_route_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, first="10.0.0.2")
    machine.has("lo", "127.0.0.1", "::1")
    machine.has("docker0", "172.17.0.1")
    machine.has("eth0", "10.0.0.2", "fd00::2", "fe80::1%eth0")
    machine.has("eth1", "10.9.0.2", up=False)
    bound = [parse_endpoint("0.0.0.0:7400"), parse_endpoint("[::]:7401")]
    assert list(map(str, advertised(bound, ()))) == [
        "tcp://10.0.0.2:7400",
        "tcp://172.17.0.1:7400",
        "tcp://[fd00::2]:7401",
    ]


def test_a_machine_without_a_network_tells_its_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    machine.has("lo", "127.0.0.1", "::1")
    machine.has("eth0", "169.254.3.4", "fe80::1%eth0")  # reachable only with an interface's name
    assert local_addresses(4) == ["127.0.0.1"]
    assert local_addresses(6) == ["::1"]


def test_what_is_bound_to_an_address_tells_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    Machine(monkeypatch).has("eth0", "10.0.0.2")
    bound = [parse_endpoint("127.0.0.1:7400"), parse_endpoint("ipc:///run/ada")]
    assert advertised(bound, ()) == bound


def test_by_hand_replaces_all_and_port_0_is_the_bound_one() -> None:
    bound = [parse_endpoint("ipc:///run/ada"), parse_endpoint("0.0.0.0:41234")]
    by_hand = ("lab-7.example:0", "[fd00::9]:80", "ipc:///run/bob")
    assert list(map(str, advertised(bound, by_hand))) == [
        "tcp://lab-7.example:41234",
        "tcp://[fd00::9]:80",
        "ipc:///run/bob",
    ]


def test_a_machine_with_very_many_addresses_tells_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, first="10.0.0.50")
    machine.has("eth0", *(f"10.0.0.{number}" for number in range(1, 100)))
    told = advertised([parse_endpoint("0.0.0.0:7400")], ())
    assert len(told) == ADVERTISED
    assert told[0].host == "10.0.0.50"


def test_the_kernel_is_asked_for_the_default_route() -> None:
    """Empty where there is none; otherwise one of this machine's own addresses."""
    found = addresses._default_route_address(socket.AF_INET)
    if found:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((found, 0))
