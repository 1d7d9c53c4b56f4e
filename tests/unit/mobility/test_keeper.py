"""A broker keeps for a subscriber: exact words, bounds, and what is on disk."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from overlay.errors import ConfigError, RemoteProtocolError
from overlay.protocol import ContactLearned
from protocols.mobility import (
    BoxExpired,
    BoxHandedOver,
    KeepingSettings,
    SubscriberAway,
    SubscriberBack,
)
from protocols.mobility.box import AGE, BYTES, COUNT, FORGOTTEN, RESTARTED, SILENT
from protocols.mobility.keeping_messages import (
    Away,
    Batch,
    Drained,
    Fetch,
    Here,
    Hosted,
    Kept,
    Place,
    Stand,
    Taken,
)
from tests.unit.mobility.keeping import HOT, SETTINGS, Node, batch, kept

HERE = Here(5, 1, (HOT,))


def hosting(settings: KeepingSettings = SETTINGS, **changed: Any) -> Node:
    """A broker that keeps for sue."""
    node = Node(settings=replace(settings, **changed))
    node.hear("sue", HERE)
    return node


def old(node: Node) -> int:
    """How many lines are in the only box."""
    (box,) = node.keeper.boxes()
    return len(box.lines)


def test_what_matches_is_sent_at_once_and_forgotten_when_it_was_taken() -> None:
    node = Node()
    assert node.hear("sue", HERE) == [("sue", Hosted(5, 1, 1))]
    assert list(map(str, node.routing.wanted.values())) == ["celsius > 30"]
    assert node.delivered(1) == [("sue", batch(5, 1, kept(1)))]
    assert node.delivered(2) == [("sue", batch(5, 2, kept(2)))]
    assert old(node) == 2
    assert node.hear("sue", Taken("sue", 5, 3)) == []
    assert old(node) == 0


def test_what_is_not_taken_is_sent_again_from_where_it_stopped() -> None:
    node = hosting()
    node.delivered(1)
    node.delivered(2)
    node.hear("sue", Taken("sue", 5, 2))
    node.now += SETTINGS.resend
    sent = node.later(SETTINGS.resend)
    assert ("sue", batch(5, 2, kept(2), taken=2, oldest=2)) in sent


def test_a_silent_subscriber_is_away_and_gets_everything_when_it_speaks() -> None:
    node = hosting()
    said = node.later(SETTINGS.lease + 1)
    assert [one for one in said if isinstance(one, SubscriberAway)] == [SubscriberAway("sue", True)]
    assert node.delivered(1) == []
    assert node.delivered(2) == []
    assert node.hear("sue", Taken("sue", 5, 1)) == [
        SubscriberBack("sue"),
        ("sue", batch(5, 1, kept(1), kept(2))),
    ]


def test_who_says_that_it_goes_is_kept_for_as_long_as_it_said() -> None:
    node = hosting()
    assert node.hear("sue", Away(5, 1, 20.0)) == [SubscriberAway("sue", False)]
    node.delivered(1)
    assert BoxExpired("sue", 1) not in node.later(19.0)
    assert BoxExpired("sue", 1) in node.later(2.0)
    assert not node.routing.wanted
    assert node.hear("sue", Taken("sue", 5, 1)) == [("sue", Hosted(5, 0, reason="unknown"))]


def test_who_does_not_come_back_is_forgotten_at_once() -> None:
    node = hosting()
    node.delivered(1)
    assert node.hear("sue", Away(5, 1, 0.0)) == []
    assert not list(node.keeper.boxes())
    assert not node.routing.wanted


@pytest.mark.parametrize(
    ("changed", "reason", "lost"),
    [({"max_kept": 3}, COUNT, 2), ({"max_bytes": 1024}, BYTES, 0), ({"max_total": 1024}, BYTES, 0)],
)
def test_bounds_put_the_oldest_out_and_tell_so(
    changed: dict[str, int], reason: str, lost: int
) -> None:
    node = hosting(SETTINGS, **changed)
    node.hear("sue", Away(5, 1, 60.0))
    count = 5 if lost else 60
    for sequence in range(1, count + 1):
        node.delivered(sequence)
    _, told = node.hear("sue", Taken("sue", 5, 1))
    assert isinstance(told, tuple)
    msg = told[1]
    assert isinstance(msg, Batch)
    assert (msg.reason, msg.oldest, msg.taken) == (reason, count - len(msg.entries) + 1, 1)
    assert msg.lost == msg.oldest - 1 > 0
    assert not lost or msg.lost == lost
    counts = node.keeper.counts
    assert counts.over_count + counts.over_bytes == msg.lost


def test_what_is_too_old_goes_and_an_empty_batch_tells_of_it() -> None:
    node = hosting(max_age=10.0)
    node.hear("sue", Away(5, 1, 600.0))
    node.delivered(1)
    node.later(11.0)
    assert node.hear("sue", Taken("sue", 5, 1))[1:] == [
        ("sue", batch(5, 2, oldest=2, lost=1, reason=AGE))
    ]
    assert node.hear("sue", Taken("sue", 5, 2)) == []


def test_a_gap_that_is_put_out_itself_is_counted_for_all_that_it_stood_for() -> None:
    node = hosting(max_kept=2)
    (box,) = node.keeper.boxes()
    node.hear("sue", Away(5, 1, 600.0))
    node.keeper._log.keep(box, Kept("", lost=7, reason=COUNT), node.now)
    for sequence in (1, 2, 3):
        node.delivered(sequence)
    told = node.hear("sue", Taken("sue", 5, 1))
    assert told[1:] == [("sue", batch(5, 3, kept(2), kept(3), oldest=3, lost=8, reason=COUNT))]


def test_other_wishes_are_taken_over_by_a_newer_revision_alone() -> None:
    node = hosting()
    cold = replace(HOT, name="cold")
    node.hear("sue", Here(5, 2, (cold,)))
    assert len(node.routing.wanted) == 1
    node.hear("sue", Here(5, 1, (HOT,)))  # it was overtaken
    assert [box.wants.keys() for box in node.keeper.boxes()] == [{"cold": 0}.keys()]


# -- handing over -------------------------------------------------------------------------------


def test_the_old_broker_goes_on_for_a_while_then_says_that_this_was_all() -> None:
    node = hosting()
    node.delivered(1)
    fetch = Fetch("sue", 5, 1, 9)
    assert node.hear("b2", fetch) == [("b2", batch(5, 1, kept(1)))]
    assert node.delivered(2) == [("b2", batch(5, 2, kept(2)))]
    assert node.hear("sue", Taken("sue", 5, 3)) == []  # it is not here any more
    node.hear("b2", Taken("sue", 5, 3))
    said = node.later(SETTINGS.overlap + SETTINGS.resend)
    assert not node.routing.wanted
    assert said[-1] == ("b2", Drained("sue", 5, 9, 3, (Stand("hot", "ann/t", 1, 2),)))
    assert node.hear("b2", Taken("sue", 5, 3, done=True)) == [BoxHandedOver("sue", "b2")]
    assert node.hear("b2", fetch) == [("b2", Drained("sue", 5, 9, 0, reason="unknown"))]


def test_of_two_that_fetch_the_newer_visit_gets_it() -> None:
    node = hosting()
    node.delivered(1)
    node.hear("b3", Fetch("sue", 5, 1, 12))
    assert node.hear("b2", Fetch("sue", 5, 1, 9)) == [
        ("b2", Drained("sue", 5, 9, 0, reason="superseded"))
    ]
    assert node.hear("b4", Fetch("sue", 5, 1, 15)) == [("b4", batch(5, 1, kept(1)))]


PLACE = Place("b0", 3, 4, True, ("tcp://10.0.0.1:7400",))


def fetching(*since: Place, **changed: Any) -> Node:
    """A broker at which sue just appeared."""
    node = Node(settings=replace(SETTINGS, **changed))
    assert node.hear("sue", Here(5, 1, (HOT,), since or (PLACE,))) == [
        ContactLearned("b0", ("tcp://10.0.0.1:7400",)),
        ("b0", Fetch("sue", 3, 4, 5)),
        ("sue", Hosted(5, 1, 1, complete=False)),
    ]
    return node


def test_the_new_broker_holds_its_own_until_the_old_one_is_done() -> None:
    node = fetching()
    assert node.delivered(7) == []  # it may not be the next
    assert node.delivered(8) == []
    came = node.hear("b0", Batch("sue", 3, 4, 4, 4, 0, "", (kept(6), kept(7))))
    assert came == [
        ("b0", Taken("sue", 3, 6)),
        ("sue", batch(5, 1, kept(6), kept(7))),
    ]
    ended = node.hear("b0", Drained("sue", 3, 5, 6, (Stand("hot", "ann/t", 1, 7),)))
    assert ended == [
        ("b0", Taken("sue", 3, 6, done=True)),
        ("sue", Hosted(5, 1, 1)),  # that nothing is fetched any more
        ("sue", batch(5, 3, kept(8))),
    ]


def test_what_the_old_broker_had_delivered_does_not_come_again() -> None:
    node = fetching()
    node.delivered(7)  # it came late, and sue has it
    ended = node.hear("b0", Drained("sue", 3, 5, 4, (Stand("hot", "ann/t", 1, 7),)))
    assert not any(isinstance(msg, Batch) for _, msg in ended)
    assert node.keeper.counts.repeats == 1


def test_a_gap_of_the_old_broker_keeps_its_place() -> None:
    node = fetching()
    node.hear("b0", Batch("sue", 3, 9, 4, 9, 5, COUNT, (kept(6),)))
    (box,) = node.keeper.boxes()
    assert [line.entry for line in box.lines] == [Kept("", lost=5, reason=COUNT), kept(6)]


@pytest.mark.parametrize(("sure", "gaps"), [(True, 1), (False, 0)])
def test_a_broker_that_forgot_makes_a_gap_if_it_had_promised(sure: bool, gaps: int) -> None:
    node = fetching(replace(PLACE, sure=sure))
    node.delivered(8)
    ended = node.hear("b0", Drained("sue", 3, 5, 0, reason="unknown"))
    entries = (*[Kept("", reason=FORGOTTEN)] * gaps, kept(8))
    assert ended[-1] == ("sue", batch(5, 1, *entries))


def test_a_silent_broker_is_asked_again_then_the_one_before_it() -> None:
    older = Place("b9", 2, 1, True)
    node = fetching(PLACE, older)
    said = node.later(SETTINGS.resend * 2)
    assert ("b0", Fetch("sue", 3, 4, 5)) in said
    node.hear("sue", Taken("sue", 5, 1))
    said = node.later(SETTINGS.fetch_within)
    assert ("b9", Fetch("sue", 2, 1, 5)) in said
    node.hear("sue", Taken("sue", 5, 1))
    node.hear("b9", Drained("sue", 2, 5, 0, reason="unknown"))
    (box,) = node.keeper.boxes()
    assert [line.entry for line in box.lines] == [Kept("", reason=SILENT)]


def test_a_visit_that_was_overtaken_is_closed() -> None:
    node = fetching()
    node.delivered(8)
    assert node.hear("b0", Drained("sue", 3, 5, 0, reason="superseded")) == []
    assert not list(node.keeper.boxes())
    assert not node.routing.wanted


def test_who_comes_back_to_the_same_broker_gets_its_box_on() -> None:
    node = hosting()
    node.hear("sue", Away(5, 1, 60.0))
    node.delivered(1)
    node.delivered(2)
    said = node.hear("sue", Here(8, 1, (HOT,), (Place("b1", 5, 2, True),)))
    assert said == [("sue", Hosted(8, 1, 1)), ("sue", batch(8, 1, kept(2)))]
    assert len(node.routing.wanted) == 1


def test_who_remembers_nothing_is_remembered() -> None:
    node = hosting()
    node.delivered(1)
    said = node.hear("sue", Here(8, 1, (HOT,)))
    assert said[-1] == ("sue", batch(8, 1, kept(1)))
    assert node.hear("sue", Here(7, 1, (HOT,))) == []  # an older word, which came late


# -- on disk ------------------------------------------------------------------------------------


def test_a_restart_keeps_what_was_kept_and_tells_of_what_was_missed() -> None:
    settings = replace(SETTINGS, storage="sqlite")
    node = hosting(settings)
    for sequence in (1, 2, 3):
        node.delivered(sequence)
    node.hear("sue", Taken("sue", 5, 2))
    again = Node(settings=settings, kept=node.disk)
    assert list(map(str, again.routing.wanted.values())) == ["celsius > 30"]
    assert again.delivered(5) == []
    assert again.hear("sue", Taken("sue", 5, 2)) == [
        SubscriberBack("sue"),
        ("sue", Hosted(5, 1, 2)),
        (
            "sue",
            batch(5, 2, kept(2), kept(3), Kept("", reason=RESTARTED), kept(5), taken=2, oldest=2),
        ),
    ]
    again.hear("sue", Taken("sue", 5, 6))
    again.hear("sue", Away(5, 6, 0.0))
    assert again.disk == {}


def test_numbers_go_on_after_a_restart_with_an_empty_box() -> None:
    settings = replace(SETTINGS, storage="sqlite")
    node = hosting(settings)
    node.delivered(1)
    node.hear("sue", Taken("sue", 5, 2))
    again = Node(settings=settings, kept=node.disk)
    told = again.hear("sue", Taken("sue", 5, 2))
    assert told[-1] == ("sue", batch(5, 2, Kept("", reason=RESTARTED), taken=2, oldest=2))


def test_what_was_fetched_is_confirmed_when_it_is_on_disk() -> None:
    node = fetching(storage="sqlite")
    node.stored()
    came = node.hear("b0", Batch("sue", 3, 4, 4, 4, 0, "", (kept(6),)))
    assert not any(isinstance(msg, Taken) for _, msg in came)
    assert node.stored() == [("b0", Taken("sue", 3, 5))]


# -- bad input ----------------------------------------------------------------------------------


def test_bounds_refuse_with_a_reason() -> None:
    node = hosting(max_subscribers=1, max_wants=1)
    (_, hosted), *_ = node.hear("tom", Here(5, 1, (HOT,)))
    assert (hosted.revision, hosted.reason) == (
        0,
        "no room for another subscriber: see mobility.max_subscribers",
    )
    (_, hosted), *_ = node.hear("sue", Here(5, 2, (HOT, replace(HOT, name="2"))))
    assert (hosted.revision, hosted.reason) == (0, "too many subscriptions: at most 1")
    assert node.keeper.counts.refused == 2
    assert len(node.routing.wanted) == 1


def test_nonsense_is_refused() -> None:
    node = hosting()
    with pytest.raises(RemoteProtocolError, match="mobility-bad-wants"):
        node.hear("sue", Here(5, 2, (HOT, HOT)))
    with pytest.raises(RemoteProtocolError, match="mobility-bad-visit"):
        node.hear("b2", Fetch("sue", 5, 1, 5))
    with pytest.raises(RemoteProtocolError, match="bad-item"):
        fetching().hear("b0", Batch("sue", 3, 4, 4, 4, 0, "", (Kept("hot", "a/b", 1, 1, {"": 1}),)))
    node.hear("eve", Taken("sue", 5, 99))
    node.hear("eve", batch(5, 1, kept(1)))
    assert node.keeper.counts.strays == 2
    with pytest.raises(ConfigError, match="at least two beats"):
        KeepingSettings(beat=3.0, lease=5.0).check()


def test_only_brokers_fetch() -> None:
    node = hosting()
    node.keeper._may_be = lambda name, role: False
    with pytest.raises(RemoteProtocolError, match="mobility-no-right"):
        node.hear("eve", Fetch("sue", 5, 1, 9))
