"""Gateways die under load, on a network that loses frames: no reader loses or doubles a message."""

from __future__ import annotations

from tests.netns.lab import Lab
from tests.netns.newsroom import RATE, Newsroom

SIZES = {"a": 3, "b": 3, "c": 2}
LOSS = 5  # % of all frames
WHILE = 1.5  # s of messages that all read before, between and after the deaths


def kill_gateways(room: Newsroom, lab: Lab) -> None:
    """The gateway of a zone of readers dies in mid-stream, then that of the publisher's zone."""
    room.gather()
    lab.loss(LOSS)
    room.begin()
    room.read_on(int(WHILE * RATE))
    for zone in ("b", "a"):
        room.kill_gateway(zone)
        room.read_on(int(WHILE * RATE))


def test_ack_mode_loses_nothing_when_gateways_are_killed(lab: Lab) -> None:
    room = Newsroom(lab, SIZES, "ack")
    kill_gateways(room, lab)
    history = room.finish()
    history.check(gaps_allowed=False)
    assert [reader for reader in history.readers if reader.told] == []


def test_nack_mode_loses_nothing_in_silence_when_gateways_are_killed(lab: Lab) -> None:
    room = Newsroom(lab, SIZES, "nack")
    kill_gateways(room, lab)
    history = room.finish()
    history.check(gaps_allowed=True)
