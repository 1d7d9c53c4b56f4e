"""Beacons under any order of beacons, members, times and rubbish: bounded, and never stuck."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.strategies import floats, integers, lists, sampled_from, text, tuples

from overlay.ids import check_name
from overlay.protocol import NetworkChanged
from protocols.beacon import Answer, BeaconSettings, Query
from protocols.beacon.last_known import STORED, LastKnown, pack, unpack
from tests.recording import Store
from tests.unit.beacon.node import ZONE, BeaconNode, announcement, presence

TIGHT = BeaconSettings(parallel=3, waiting=4, remembered=3, answer_rate=4.0, host_rate=20.0)
NAMES = sampled_from(["ada", *(f"n{index}" for index in range(12))])
ZONES = sampled_from([ZONE, ZONE, ZONE, "west", "@management"])
HOSTS = sampled_from(["10.0.0.1", "10.0.0.2", "127.0.0.1", "fe80::1%2", "name"])
ENDPOINTS = sampled_from(
    [(), ("tcp://10.0.0.1:1",), ("tcp://127.0.0.1:1", "tcp://[::1]:2"), ("ipc:///x",), ("rubbish",)]
)
OVERLAYS = sampled_from(["lab", "lab", "lab", "office"])


class BeaconUnderChaos(RuleBasedStateMachine):
    """One node hears what it likes, and its view changes as it likes."""

    @initialize(seed=integers(0, 99), stored=sampled_from([b"", b"rubbish", b"lab# hall\nx y"]))
    def start(self, seed: int, stored: bytes) -> None:
        self.node = BeaconNode(TIGHT, seed=seed)
        self.now = 1000.0
        self.node.start(self.now, {STORED: stored})

    @rule(
        name=NAMES, zone=ZONES, at=HOSTS, told=ENDPOINTS, overlay=OVERLAYS, attempt=integers(0, 3)
    )
    def query(
        self, name: str, zone: str, at: str, told: tuple[str, ...], overlay: str, attempt: int
    ) -> None:
        who = presence(name, zone=zone, endpoints=told, overlay=overlay)
        before = self.node.beacon.counts.answered
        self.node.hear(Query(who, self.node.beacon.counts.heard, attempt), self.now, name, at)
        casts = self.node.casts()
        assert len(casts) == self.node.beacon.counts.answered - before
        assert all(isinstance(cast.msg, Answer) for cast in casts)
        assert not casts or (overlay == "lab" and name != "ada")

    @rule(name=NAMES, zone=ZONES, at=HOSTS, told=ENDPOINTS, number=integers(0, 10))
    def answer(self, name: str, zone: str, at: str, told: tuple[str, ...], number: int) -> None:
        open_queries = [*self.node.beacon._open, number]
        chosen = open_queries[number % len(open_queries)]
        self.node.hear(
            Answer(presence(name, zone=zone, endpoints=told), chosen), self.now, name, at
        )
        assert self.node.casts() == []

    @rule(name=NAMES, zone=ZONES, at=HOSTS, told=ENDPOINTS)
    def announce(self, name: str, zone: str, at: str, told: tuple[str, ...]) -> None:
        who = presence(name, zone=zone, endpoints=told)
        self.node.hear(announcement(who), self.now, name, at)
        assert self.node.casts() == []

    @rule(name=NAMES)
    def join(self, name: str) -> None:
        if name not in self.node.view:
            self.node.join(name, self.now)

    @rule(name=NAMES, left=sampled_from([True, False]))
    def go(self, name: str, left: bool) -> None:
        if name in self.node.view and name != "ada":
            self.node.fail(name, self.now, left=left)

    @rule()
    def change_network(self) -> None:
        self.node.beacon.event_handlers()[NetworkChanged](NetworkChanged(), self.now)

    @rule(by=floats(0.0, 20.0))
    def wait(self, by: float) -> None:
        end = self.now + by
        for _ in range(200):
            due = min(self.node.effects.timers.values(), default=end + 1)
            if due > end:
                break
            key = next(key for key, at in self.node.effects.timers.items() if at == due)
            self.now = max(self.now, due)
            del self.node.effects.timers[key]
            self.node.beacon.on_timer(key, self.now)
            self.node.beacon.check_invariants()
        self.now = end

    @rule(by=floats(0.0, 3600.0))
    def set_clock_back(self, by: float) -> None:
        self.now -= by

    @invariant()
    def it_never_falls_silent(self) -> None:
        if hasattr(self, "node"):
            self.node.beacon.check_invariants()
            timers = self.node.effects.timers
            assert ("query" in timers) == self.node.beacon.alone
            assert ("interval" in timers) != self.node.beacon.alone
            for one in self.node.drain():
                if isinstance(one, Store) and one.value is not None:
                    realm, zone = self.node.beacon.realm, ZONE
                    assert len(unpack(one.value, realm, zone, 99)) <= TIGHT.remembered


BeaconUnderChaos.TestCase.settings = settings(max_examples=60, stateful_step_count=50)
TestBeaconUnderChaos = BeaconUnderChaos.TestCase


@given(
    lists(tuples(text("abc/ .\n", min_size=1, max_size=5), text("xyz \n", max_size=5)), max_size=5),
    integers(0, 6),
)
def test_whatever_is_packed_only_peers_come_back(written: list[tuple[str, str]], most: int) -> None:
    peers = [LastKnown(name, (endpoint,)) for name, endpoint in written]
    found = unpack(pack("lab#", "hall", peers), "lab#", "hall", most)
    assert len(found) <= most
    assert all(check_name(one.name) and all(one.endpoints) for one in found)
