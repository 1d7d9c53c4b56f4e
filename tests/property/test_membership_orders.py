"""Whatever members say, in whatever order and however often: views keep their invariants."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.protocol import Event, LinkLost, Message, PeerMet
from protocols.membership.attributes import Attribute, first_version
from protocols.membership.config import MembershipSettings
from protocols.membership.machine import Membership
from protocols.membership.messages import (
    BUCKET_BYTES,
    BUCKETS,
    Ack,
    Gossip,
    IndirectAck,
    Join,
    JoinRefused,
    JoinReply,
    Ping,
    PingRequest,
    Summary,
    Sync,
    SyncRecords,
    SyncSummary,
)
from protocols.membership.records import Record, State
from tests.recording import RecordingEffects

NAMES = ("me", "a", "b", "c", "d")
START = 1_000_000
SETTINGS = MembershipSettings(max_members=4, max_dead=2, max_keys=2, value_bytes=16)

names = st.sampled_from(NAMES)
others = st.sampled_from(NAMES[1:])
small = st.integers(0, 5)
lives = st.integers(0, 3)  # of one name, each born a little later


@st.composite
def records(draw: st.DrawFn, of: st.SearchStrategy[str] = names) -> Record:
    """A claim of a small world, so that claims meet each other."""
    state, life = draw(st.sampled_from(State)), draw(lives)
    born = START + 2 * life
    accusers = tuple(draw(st.lists(others, max_size=3))) if state == State.SUSPECT else ()
    return Record(
        draw(of), born + draw(small), state, life, born, (), accusers, draw(st.booleans())
    )


@st.composite
def attributes(draw: st.DrawFn) -> Attribute:
    version = first_version(START + 2 * draw(lives)) + draw(small)
    value = draw(st.none() | st.integers(0, 3) | st.text(max_size=20))
    return Attribute(draw(names), draw(st.sampled_from(["x", "y", "z", "\n"])), version, value)


news = st.lists(records(), max_size=3).map(tuple)
updates = st.lists(attributes(), max_size=3).map(tuple)
summaries = st.builds(
    Summary, names, st.integers(START, START + 9), lives, st.integers(0, 3), small
)
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(Ping, small, small, news, updates),
    st.builds(Ack, small, lives, small, news, updates),
    st.builds(PingRequest, small, names),
    st.builds(IndirectAck, small, st.booleans(), lives),
    st.builds(Gossip, news, updates),
    st.builds(Join, lives, st.just(START), st.integers(START, START + 9), st.just(()), updates),
    st.builds(JoinReply, lives, small, st.integers(1, 3), st.integers(0, START + 9), news, updates),
    st.builds(JoinRefused, lives, st.just("no")),
    st.builds(Sync, small, st.sampled_from([b"", bytes(BUCKETS * BUCKET_BYTES)])),
    st.builds(
        SyncSummary,
        small,
        st.lists(st.integers(0, BUCKETS - 1), max_size=3).map(tuple),
        st.lists(summaries, max_size=3).map(tuple),
    ),
    st.builds(SyncRecords, small, news, updates, st.lists(names, max_size=2).map(tuple)),
)
host_events: st.SearchStrategy[Event] = st.one_of(
    st.builds(LinkLost, names), st.builds(PeerMet, names, st.just(()))
)
steps: st.SearchStrategy[Any] = st.one_of(
    st.tuples(st.just("hear"), names, messages),
    st.tuples(st.just("host"), host_events),
    st.tuples(st.just("timer"), st.integers(0, 20)),
    st.tuples(st.just("clock"), st.sampled_from([-3600.0, -1.0, 0.2, 0.7, 60.0])),
    st.tuples(st.just("set"), st.sampled_from(["x", "y"]), small),
)


class Member:
    """Plays the driver for one member."""

    def __init__(self) -> None:
        self.now = START / 1000
        self.effects = RecordingEffects()
        self.membership = Membership(
            "me", self.effects, Random(1), SETTINGS, zone="z", contacts=["a"]
        )
        self.membership.on_start(self.now, {})
        self.handlers = self.membership.message_handlers()
        self.hearers = self.membership.event_handlers()
        self.versions: dict[tuple[str, int, str], int] = {}
        self.incarnation = 0

    def take(self, step: Any) -> None:
        """One input; only what a peer did wrong may be raised, and only as that."""
        kind, *what = step
        try:
            if kind == "hear":
                self.handlers[type(what[1])](what[0], what[1], self.now)
            elif kind == "host":
                self.hearers[type(what[0])](what[0], self.now)
            elif kind == "timer":
                self._fire(what[0])
            elif kind == "clock":
                self.now += what[0]
            elif not self.membership.stopped:
                key, value = what
                self.membership.set_attribute(key, value, self.now)
        except RemoteProtocolError:
            assert kind == "hear"
        except LocalProtocolError:  # forged attributes, overruled, used all keys up
            assert kind == "set"
        self.check()

    def _fire(self, which: int) -> None:
        timers = list(self.effects.timers)
        if timers:
            key = timers[which % len(timers)]
            self.now = max(self.now, self.effects.timers.pop(key))
            self.membership.on_timer(key, self.now)

    def check(self) -> None:
        membership = self.membership
        membership.check_invariants()
        membership.audit()
        assert membership.incarnation >= self.incarnation, "my own incarnation went back"
        self.incarnation = membership.incarnation
        assert len(membership.view) <= SETTINGS.max_members
        table = membership._core.table
        assert len(table.gone()) <= SETTINGS.max_dead
        for record in table.records():
            held = table.attribute_set(record.name)
            assert len(held) <= SETTINGS.max_keys
            for attribute in held:
                life = (record.name, record.life, attribute.key)
                assert attribute.version >= self.versions.get(life, 0), "a version went back"
                self.versions[life] = attribute.version
        if not membership.stopped:
            assert "me" in membership.view


@given(st.lists(steps, max_size=30))
def test_any_order_of_inputs_keeps_the_invariants(inputs: list[Any]) -> None:
    member = Member()
    for step in inputs:
        member.take(step)


def view_of(claims: list[Record]) -> dict[str, tuple[int, int, State]]:
    """What somebody holds who heard these claims in this order, one by one."""
    effects = RecordingEffects()
    membership = Membership("me", effects, Random(1), MembershipSettings(), zone="z", contacts=[])
    membership.on_start(START / 1000, {})
    hear = membership.message_handlers()[Gossip]
    for claim in claims:
        hear("a", Gossip((claim,)), START / 1000)
    for sequence, probe in list(membership._prober._probes.items()):
        if probe.claim is not None:  # a verdict without a suspicion: nobody answers, so it is true
            membership.on_timer(("wait", sequence), effects.timers["wait", sequence])
    return {
        record.name: (record.incarnation, record.life, record.state)
        for record in membership._core.table.records()
        if record.name != "me"
    }


@given(st.lists(records(others), max_size=12), st.randoms(use_true_random=False))
def test_all_who_heard_the_same_claims_hold_the_same_view(
    claims: list[Record], rng: Random
) -> None:
    shuffled = claims + claims[: len(claims) // 2]  # some come twice
    rng.shuffle(shuffled)
    assert view_of(claims) == view_of(shuffled)


@given(st.lists(attributes(), max_size=20), st.randoms(use_true_random=False))
def test_all_who_heard_the_same_attributes_hold_the_newest(
    claims: list[Attribute], rng: Random
) -> None:
    claims = [claim for claim in claims if claim.key != "\n" and claim.key != "z"]
    by_version = {(claim.member, claim.key, claim.version): claim for claim in claims}
    claims = list(by_version.values())  # an owner never gives one version to two values
    held = []
    for _ in range(2):
        membership = Membership(
            "me", RecordingEffects(), Random(1), MembershipSettings(), zone="z", contacts=[]
        )
        membership.on_start(START / 1000, {})
        hear = membership.message_handlers()[Gossip]
        present = tuple(Record(name, START, State.ALIVE, 1, START) for name in NAMES[1:])
        hear("a", Gossip(present), START / 1000)
        for claim in claims:
            hear("a", Gossip((), (claim,)), START / 1000)
        held.append({name: membership.view.attributes(name) for name in NAMES[1:]})
        rng.shuffle(claims)
    assert held[0] == held[1]
    newest: dict[tuple[str, str], Attribute] = {}
    for claim in sorted(claims, key=lambda one: one.version):
        newest[claim.member, claim.key] = claim
    for (member, key), claim in newest.items():
        if member != "me":
            assert held[0][member].get(key) == claim.value
