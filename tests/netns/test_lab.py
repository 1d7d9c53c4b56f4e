"""The lab: hosts reach each other, as far as its faults let them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

import pytest

from tests.netns import datagrams
from tests.netns.host import Host
from tests.netns.lab import Lab
from tests.netns.process import HostProcess
from tests.netns.waiting import until

PORT = 9000  # every lab has its own ports
DATAGRAMS = [sys.executable, "-I", datagrams.__file__]


def listen(host: Host, address: str, interface: str = "eth0") -> HostProcess:
    listener = host.start([*DATAGRAMS, "listen", address, str(PORT), interface])
    listener.line("^ready$")
    return listener


def send(host: Host, address: str, count: int, interface: str = "eth0") -> None:
    host.run([*DATAGRAMS, "send", address, str(PORT), interface, str(count)])


def numbers(listener: HostProcess) -> list[int]:
    lines = [line.split() for line in listener.lines]
    return [int(words[1]) for words in lines if len(words) == 2 and words[1] != "end"]


def fastest_ping(host: Host, address: str, count: int = 5) -> float:
    """The shortest round trip in milliseconds."""
    words = ["ping", "-n", "-q", "-c", str(count), "-i", "0.02", "-W", "30", address]
    found = re.search(r"rtt min/\S+ = ([0-9.]+)/", host.run(words).stdout)
    assert found is not None
    return float(found[1])


def cut_off(pairs: Iterable[tuple[Host, Host]]) -> set[tuple[str, str]]:
    return {(a.name, b.name) for a, b in pairs if not a.reaches(b.address)}


def test_hosts_reach_each_other_by_both_versions_of_ip(lab: Lab) -> None:
    a, b = lab.hosts("a", "b")
    assert a.reaches(b.address, tries=3)
    assert a.reaches(b.address6, tries=3)
    assert not a.reaches("10.77.1.99")


def test_a_second_lab_with_the_same_addresses_is_another_world(lab: Lab) -> None:
    a, b = lab.hosts("a", "b")
    with Lab() as other:
        (lonely,) = other.hosts("a")
        assert lonely.address == a.address
        assert not lonely.reaches(b.address)
        assert a.reaches(b.address, tries=3)


def test_networks_meet_only_in_hosts_that_are_on_both(lab: Lab) -> None:
    left = lab.host("left", ["west"])
    middle = lab.host("middle", ["west", "east"])
    right = lab.host("right", ["east"])
    assert left.reaches(middle.port("west").ipv4, tries=3)
    assert right.reaches(middle.port("east").ipv4, tries=3)
    assert right.reaches(middle.port("east").ipv6, tries=3)
    assert not left.reaches(right.address)


@pytest.mark.parametrize("group", ["239.77.0.1", "ff02::7700"])
def test_a_group_reaches_three_hosts(lab: Lab, group: str) -> None:
    a, b, c = lab.hosts("a", "b", "c")
    listeners = [listen(host, group) for host in (b, c)]
    send(a, group, 5)
    for listener in listeners:
        assert listener.wait() == 0
        assert numbers(listener) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("delayed", [False, True])
def test_loss_loses_about_that_share(lab: Lab, delayed: bool) -> None:
    a, b = lab.hosts("a", "b")
    if delayed:
        lab.delay(2)
    assert a.reaches(b.address, tries=3)  # the address is resolved before anything can be lost
    lab.loss(20)
    listener = listen(b, b.address)
    send(a, b.address, 500)
    assert listener.wait() == 0
    # 400 are expected, with a standard deviation of 9: six of them are one false alarm in 10^9.
    assert 346 <= len(numbers(listener)) <= 454
    lab.loss(0)
    assert a.reaches(b.address, tries=3)


def test_loss_of_one_host_spares_the_others(lab: Lab) -> None:
    a, b, c = lab.hosts("a", "b", "c")
    lab.loss(100, [a])
    assert not a.reaches(b.address)
    assert not b.reaches(a.address)
    assert b.reaches(c.address, tries=3)


@pytest.mark.parametrize("delayed", [False, True])
def test_a_partition_cuts_and_heals(lab: Lab, delayed: bool) -> None:
    a, b, c = lab.hosts("a", "b", "c")
    if delayed:
        lab.delay(1)
    lab.partition([a], [b, c])
    assert cut_off([(a, b), (c, a)]) == {("a", "b"), ("c", "a")}
    assert b.reaches(c.address, tries=3)
    lab.heal()
    until(lambda: not cut_off([(a, b), (c, a)]), what="the partition to heal")


def test_a_partition_may_cut_one_way_only(lab: Lab) -> None:
    a, b = lab.hosts("a", "b")
    assert a.reaches(b.address, tries=3)  # both know each other's hardware address
    lab.partition([a], [b], one_way=True)
    from_a, from_b = listen(b, b.address), listen(a, a.address)
    send(a, b.address, 3)
    send(b, a.address, 3)
    assert from_b.wait() == 0
    assert numbers(from_b) == [0, 1, 2]
    assert numbers(from_a) == []


def test_isolated_hosts_reach_all_but_each_other(lab: Lab) -> None:
    a, b, c = lab.hosts("a", "b", "c")
    lab.isolate(a, b)
    assert cut_off([(a, b)]) == {("a", "b")}
    assert a.reaches(c.address, tries=3)
    lab.delay(1)  # its bridge port is now another one
    assert cut_off([(a, b)]) == {("a", "b")}
    lab.heal()
    until(lambda: a.reaches(b.address), what="the isolation to end")


def test_an_unplugged_host_keeps_its_routes(lab: Lab) -> None:
    a, b = lab.hosts("a", "b")
    lab.unplug(a)
    assert not a.reaches(b.address)
    assert "default via" in a.run(["ip", "route"]).stdout
    lab.heal()
    until(lambda: a.reaches(b.address), what="the cable to work again")


def test_delay_is_measured_and_ends(lab: Lab) -> None:
    a, b = lab.hosts("a", "b")
    lab.delay(30)
    assert fastest_ping(a, b.address) >= 60  # each way 30
    c = lab.host("c")  # a delay everywhere is also for who comes later
    assert fastest_ping(c, b.address) >= 60
    lab.delay(0)
    until(lambda: fastest_ping(a, b.address) < 30, what="the delay to end")


def test_a_delay_of_one_host_is_for_what_it_sends(lab: Lab) -> None:
    a, b, c = lab.hosts("a", "b", "c")
    lab.delay(50, hosts=[a])
    assert fastest_ping(b, a.address) >= 50
    until(lambda: fastest_ping(b, c.address) < 25, what="a prompt answer")


@pytest.mark.parametrize("reorder", [False, True])
def test_jitter_keeps_the_order_unless_told(lab: Lab, reorder: bool) -> None:
    a, b = lab.hosts("a", "b")
    assert a.reaches(b.address, tries=3)
    lab.delay(40, 40, reorder=reorder)
    listener = listen(b, b.address)
    send(a, b.address, 200)
    assert listener.wait() == 0
    arrived = numbers(listener)
    # 200 random times in order by chance: never.
    assert (arrived == sorted(arrived)) is not reorder
    assert (lab.switched()["overtaking"] > 0) is reorder
    if not reorder:
        assert arrived == list(range(200))


def test_loss_hurts_tcp_honestly(lab: Lab) -> None:
    (a,) = lab.hosts("a")
    found = a.run(["cat", "/proc/sys/net/ipv4/tcp_congestion_control"]).stdout.strip()
    assert found in ("cubic", "reno")


def test_a_process_tells_its_lines_and_its_end(lab: Lab) -> None:
    (a,) = lab.hosts("a")
    process = a.start(["sh", "-c", "echo one; echo two >&2; exit 3"])
    assert process.line("^t(.)o$")[1] == "w"
    assert process.wait() == 3
    assert sorted(process.lines) == ["one", "two"]
    with pytest.raises(AssertionError, match=r"no line with 'three' \(it ended\)"):
        process.line("three")


def test_a_command_that_fails_says_so(lab: Lab) -> None:
    (a,) = lab.hosts("a")
    with pytest.raises(AssertionError, match=r"on a ended with 7:\nso what"):
        a.run(["sh", "-c", "echo so what >&2; exit 7"])
    assert a.run(["false"], check=False).returncode == 1
