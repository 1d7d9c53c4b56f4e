"""A partition that is shorter than the failure time: the stream waits for those it cut off."""

from __future__ import annotations

from tests.netns.lab import Lab
from tests.netns.newsroom import RATE, Newsroom

CUT = 2.0  # s: less than suspicion_min, so that nobody is removed, and than fail_after


def test_a_short_partition_heals_without_loss(lab: Lab) -> None:
    room = Newsroom(lab, {"a": 3, "b": 2, "c": 2}, "ack")
    room.gather()
    room.begin()
    room.read_on(int(RATE))
    rest = room.zone("a") + room.zone("b")
    lab.partition(rest, room.zone("c"))
    far = [reader for reader in room.readers if reader.zone == "c"]
    room.publish_on(CUT)
    behind = room.publisher.last
    assert all(reader.last < behind - CUT * RATE / 2 for reader in far)
    lab.heal()
    room.read_on(int(RATE))
    history = room.finish()
    history.check(gaps_allowed=False)
    assert [reader for reader in history.readers if reader.told] == []
