"""The parts of the harness that need no rights: names, rules, delay lines, waiting, skipping."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.netns import rights, switch
from tests.netns.faults import Faults
from tests.netns.host import Host, Network, Port
from tests.netns.naming import LabName, boot, next_name, parse, start_of
from tests.netns.switch import DelayLines, Pace
from tests.netns.waiting import until

LAN = Network("lan", 1)


def host(name: str, number: int) -> Host:
    port = Port(number, LAN, "eth0", LAN.ipv4(number), LAN.ipv6(number))
    return Host(name, name, Path("."), [port])


A, B, C = host("a", 1), host("b", 2), host("c", 3)


def test_names_tell_their_maker() -> None:
    name = next_name()
    assert parse(name.namespace("a")) == parse(str(name)) == name
    assert name.pid == os.getpid()
    assert not name.is_orphan
    assert next_name() != name
    assert parse("somebody-elses") is None
    assert parse("ovl-12.a") is None


def test_a_pid_that_is_used_again_or_another_boot_makes_an_orphan() -> None:
    started = start_of(os.getpid())
    assert started is not None
    assert LabName(boot(), os.getpid(), started - 1, 1).is_orphan
    assert LabName("00000000", os.getpid(), started, 1).is_orphan


def test_a_partition_of_two_cuts_both_ways() -> None:
    faults = Faults()
    faults.partition([[A], [B, C]], one_way=False)
    assert list(faults.cuts) == [(A, B), (A, C), (B, A), (C, A)]


def test_a_one_way_partition_cuts_the_first_from_the_second() -> None:
    faults = Faults()
    faults.partition([[A], [B]], one_way=True)
    assert faults.rules()[2:] == ['iifname { "p1", "u1" } oifname { "p2", "u2" } counter drop']


@pytest.mark.parametrize(
    ("groups", "one_way"), [([[A]], False), ([[A], [B], [C]], True), ([[A, B], [B]], False)]
)
def test_a_partition_that_makes_no_sense_is_refused(
    groups: list[list[Host]], one_way: bool
) -> None:
    with pytest.raises(ValueError, match="groups"):
        Faults().partition(groups, one_way=one_way)


def test_loss_is_drawn_in_hundredths_of_a_percent() -> None:
    faults = Faults()
    faults.lose(0.5)
    assert faults.rules()[2:] == ["numgen random mod 10000 < 50 counter drop"]
    faults.lose(0)
    assert faults.rules()[2:] == []
    with pytest.raises(ValueError, match="0 to 100"):
        faults.lose(101)


@pytest.fixture
def delay_line() -> Iterator[DelayLine]:
    network_end, far = os.pipe()
    near, host_end = os.pipe()
    os.set_blocking(near, False)
    taps = {"t1": near, "u1": far}
    lines = DelayLines(lambda name: taps[name], random.Random(1))
    lines.add(1)
    yield DelayLine(lines, near, host_end, network_end)
    for end in (network_end, far, near, host_end):
        os.close(end)


class DelayLine(NamedTuple):
    """One port of the user-space switch, on pipes."""

    lines: DelayLines
    near: int
    host_end: int
    network_end: int

    def send(self, now: float) -> None:
        os.write(self.host_end, b"frame")
        self.lines.take(self.near, now)


def test_a_frame_is_held_for_its_pace_and_a_full_line_drops(
    monkeypatch: pytest.MonkeyPatch, delay_line: DelayLine
) -> None:
    monkeypatch.setattr(switch, "HELD_FRAMES", 2)
    lines = delay_line.lines
    lines.set_pace([1], Pace(0.5))
    for moment in (10.0, 10.1, 10.2):
        delay_line.send(moment)
    assert lines.counts["overflowed"] == 1
    assert lines.release(10.0) == pytest.approx(0.5)
    assert lines.release(10.55) == pytest.approx(0.05)
    assert os.read(delay_line.network_end, 100) == b"frame"
    assert lines.release(10.6) is None


def test_a_copied_frame_comes_twice(delay_line: DelayLine) -> None:
    lines = delay_line.lines
    lines.set_pace([1], Pace(0.5, copied=1.0))
    delay_line.send(10.0)
    assert lines.counts["copied"] == 1
    assert lines.release(10.5) is None
    assert os.read(delay_line.network_end, 100) == b"frameframe"


def test_waiting_returns_what_it_found_and_says_what_it_missed() -> None:
    seen = iter([0, 0, 7])
    assert until(lambda: next(seen)) == 7
    with pytest.raises(AssertionError, match=r"waited 0 s for rain; last seen: \[\]"):
        until(list, within=0, what="rain")


def test_missing_rights_skip_at_home_and_fail_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    rights.require("", ci=True)
    with pytest.raises(pytest.skip.Exception, match="no root"):
        rights.require("no root", ci=False)
    with pytest.raises(pytest.fail.Exception, match="in CI: no root"):
        rights.require("no root", ci=True)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert rights.obstacle.__wrapped__().endswith("run these tests as root")
    monkeypatch.setenv("CI", "true")
    assert rights.in_ci()
