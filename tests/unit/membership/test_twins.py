"""Two processes with one name: the newer one stops, however the two find out."""

from __future__ import annotations

from random import Random

import pytest

from overlay.protocol import Event
from protocols.membership.config import MembershipSettings
from protocols.membership.events import NameTaken
from protocols.membership.machine import Membership
from tests.recording import Emit, RecordingEffects, Send

LATENCY = 0.001
STEP = 0.01  # s; how often the mesh looks for timers that are due


class Process:
    """One running member; its name may be another one's too."""

    def __init__(self, name: str, seed: int, contacts: list[str], now: float) -> None:
        self.name = name
        self.effects = RecordingEffects()
        self.events: list[Event] = []
        self.membership = Membership(
            name, self.effects, Random(seed), MembershipSettings(), zone="z", contacts=contacts
        )
        self.handlers = self.membership.message_handlers()
        self.membership.on_start(now, {})


class Mesh:
    """Delivers by name; where two have it, by chance, as reconnecting links would."""

    def __init__(self, seed: int) -> None:
        self.now = 1000.0
        self.rng = Random(seed)
        self.processes: list[Process] = []
        self.cut: tuple[tuple[Process, ...], tuple[Process, ...]] = ((), ())
        self._under_way: list[tuple[float, Process, Send]] = []

    def start(self, name: str, contacts: list[str]) -> Process:
        process = Process(name, self.rng.getrandbits(32), contacts, self.now)
        self.processes.append(process)
        return process

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            self.now += STEP
            for process in self.processes:
                due = [key for key, at in process.effects.timers.items() if at <= self.now]
                for key in due:
                    if process.effects.timers.get(key, self.now + 1) <= self.now:
                        del process.effects.timers[key]
                        process.membership.on_timer(key, self.now)
                process.membership.check_invariants()
            arriving, self._under_way = self._under_way, []
            for _, source, send in arriving:
                self._deliver(source, send)
            for process in self.processes:
                self._collect(process)

    def _collect(self, process: Process) -> None:
        for effect in process.effects.drain():
            if isinstance(effect, Send):
                self._under_way.append((self.now + LATENCY, process, effect))
            elif isinstance(effect, Emit):
                process.events.append(effect.event)

    def _deliver(self, source: Process, send: Send) -> None:
        here, there = self.cut
        targets = [
            process
            for process in self.processes
            if process.name == send.to
            and process is not source
            and not (source in here and process in there)
            and not (source in there and process in here)
        ]
        if targets:
            target = self.rng.choice(targets)
            target.handlers[type(send.msg)](source.name, send.msg, self.now)


def taken(process: Process) -> list[NameTaken]:
    return [event for event in process.events if isinstance(event, NameTaken)]


@pytest.mark.parametrize("seed", range(5))
def test_a_second_node_of_one_name_stops_and_the_first_stays(seed: int) -> None:
    mesh = Mesh(seed)
    ada, eve = mesh.start("ada", []), mesh.start("eve", ["ada"])
    first = mesh.start("bob", ["ada"])
    mesh.run(2)
    second = mesh.start("bob", ["ada", "eve"])
    mesh.run(20)
    assert second.membership.stopped
    (why,) = taken(second)
    assert "called 'bob'" in why.reason
    assert taken(first) == []
    assert not first.membership.stopped
    mesh.processes.remove(second)
    mesh.run(20)
    for observer in (ada, eve):
        record = observer.membership.view.record("bob")
        assert record is not None
        assert record.present
        assert record.incarnation == first.membership.incarnation
        assert observer.membership.view.members() == first.membership.view.members()


@pytest.mark.parametrize("seed", range(5))
def test_twins_of_two_partitions_meet_and_the_older_one_stays(seed: int) -> None:
    mesh = Mesh(seed)
    left = [mesh.start("ada", []), mesh.start("bob", ["ada"])]
    mesh.run(1)
    right = [mesh.start("eve", []), mesh.start("bob", ["eve"])]
    mesh.cut = (tuple(left), tuple(right))
    mesh.run(2)
    mesh.cut = ((), ())
    left[0].membership.join(["eve"], mesh.now)
    mesh.run(60)
    older, newer = left[1], right[1]
    assert newer.membership.stopped
    assert "was there first" in taken(newer)[0].reason or "called 'bob'" in taken(newer)[0].reason
    assert not older.membership.stopped
