"""What a broker does when clients leave and come: exact messages for each algorithm."""

from __future__ import annotations

import pytest

from overlay.errors import RemoteProtocolError
from protocols.content.messages import AdvertisementLine, Change, GraftLine, Greeting
from protocols.mobility import ClientMovedIn, ClientMovedOut, MobilitySettings
from protocols.mobility.messages import (
    Entry,
    HandedOver,
    Handover,
    MoveIn,
    MoveOut,
    Sound,
    Sounded,
    StandIn,
    TreeReady,
)
from tests.recording import Emit, Send
from tests.unit.content.node import ad, changes, sends, sub
from tests.unit.mobility.node import MobileNode, events_of

GOODBYE = Greeting("client", 0.0, 0, 0, bytes(8))
OTHER = ad("r/1", "z > 0").constraint
ENTRY = Entry("p/1", ad("p/1", "x > 0").constraint)


@pytest.fixture
def node() -> MobileNode:
    """A broker with two neighbours, and a publisher as its client."""
    node = MobileNode()
    node.meet("n1", "n2")
    node.meet("p", role="client")
    node.tell("p", ad("p/1", "x > 0"))
    return node


def told(node: MobileNode, peer: str) -> tuple[int, int]:
    ledger = node.content.router.readers[peer].ledger
    return ledger.series, ledger.stamp


# -- leaving ------------------------------------------------------------------------------------


def test_standard_withdraws_at_once(node: MobileNode) -> None:
    done = node.hear("p", MoveOut("standard", "best-effort"))
    assert events_of(done, ClientMovedOut) == [ClientMovedOut("p")]
    assert changes(node.hear("p", GOODBYE)) == {"n1": ["-p/1"], "n2": ["-p/1"]}


def test_delayed_withdraws_when_the_time_is_over(node: MobileNode) -> None:
    node.hear("p", MoveOut("delayed", "best-effort"))
    assert changes(node.hear("p", GOODBYE)) == {}
    assert changes(node.wait(9.9)) == {}
    assert changes(node.wait(0.2)) == {"n1": ["-p/1"], "n2": ["-p/1"]}


def test_prefetching_tells_the_predicted_broker(node: MobileNode) -> None:
    done = node.hear("p", MoveOut("prefetching", "best-effort", "n9", 77))
    assert sends(done, StandIn) == [("n9", StandIn("p", 77, 15.0, (ENTRY,)))]
    assert changes(node.hear("p", GOODBYE)) == {"n1": ["-p/1"], "n2": ["-p/1"]}


def test_prefetching_and_delayed_names_the_tree_to_use(node: MobileNode) -> None:
    done = node.hear("p", MoveOut("prefetching+delayed", "best-effort", "n9", 77))
    [(to, msg)] = sends(done, StandIn)
    assert to == "n9"
    assert isinstance(msg, StandIn)
    assert [entry.graft for entry in msg.entries] == [1]
    assert changes(node.hear("p", GOODBYE)) == {}


def test_lossless_flushes_before_it_withdraws_and_hands_over(node: MobileNode) -> None:
    node.meet("n3")  # from there nobody wants it: nothing is under way
    for peer in ("n1", "n2"):
        node.tell(peer, sub(f"s/{peer}", "x > 5", peer))
    done = node.hear("p", MoveOut("standard", "lossless"))
    sounds = sends(done, Sound)
    assert [to for to, _ in sounds] == ["n1", "n2"]
    assert changes(node.hear("p", GOODBYE)) == {}
    assert not sends(node.hear("n9", Handover("p", 4, "standard", "lossless")), HandedOver)
    for to, msg in sounds:
        assert isinstance(msg, Sound)
        assert msg.flush
        assert (msg.series, msg.stamp) == told(node, to)
        done = node.hear(to, Sounded("p/1", msg.number, 7, 1))
    assert changes(done) == {"n1": ["-p/1"], "n2": ["-p/1"], "n3": ["-p/1"]}
    assert sends(done, HandedOver) == [("n9", HandedOver("p", 4))]


def test_a_client_that_moved_without_a_word_is_let_go(node: MobileNode) -> None:
    done = node.hear("n9", Handover("p", 4, "delayed", "best-effort"))
    assert node.content.clients() == ()
    assert changes(done) == {}  # its tree is kept
    assert node.mobility.counts.expelled == 1


def test_a_late_word_of_an_earlier_move_does_not_expel_who_came_back(node: MobileNode) -> None:
    # `mobility-lossless`, seed 182: a repeated Handover of the move before.
    node.hear("p", MoveIn(9, "delayed", "lossless", "n9"))
    done = node.hear("n9", Handover("p", 4, "delayed", "lossless"))
    assert sends(done, HandedOver) == [("n9", HandedOver("p", 4))]
    node.wait(1.0)
    assert node.content.clients() == ("p",)
    node.hear("p", MoveIn(4, "delayed", "lossless", "n8"))
    assert node.mobility.counts.strays == 1


def test_an_unknown_client_is_handed_over_at_once(node: MobileNode) -> None:
    done = node.hear("n9", Handover("q", 4, "standard", "lossless"))
    assert sends(done, HandedOver) == [("n9", HandedOver("q", 4))]


# -- standing in --------------------------------------------------------------------------------


def test_a_predicted_broker_advertises_until_the_client_comes(node: MobileNode) -> None:
    entry = Entry("q/1", ad("q/1", "y > 0").constraint)
    done = node.hear("n9", StandIn("q", 77, 15.0, (entry,)))
    assert changes(done) == {"n1": ["+q/1"], "n2": ["+q/1"]}
    node.meet("q", role="client")
    assert changes(node.tell("q", ad("q/1", "y > 0", epoch=77))) == {}
    assert changes(node.wait(60.0)) == {}


def test_who_does_not_come_is_forgotten(node: MobileNode) -> None:
    node.hear("n9", StandIn("q", 77, 15.0, (Entry("q/1", OTHER),)))
    assert changes(node.wait(15.1)) == {"n1": ["-q/1"], "n2": ["-q/1"]}


def test_an_advertisement_of_somebody_else_is_refused(node: MobileNode) -> None:
    with pytest.raises(RemoteProtocolError, match="not-theirs"):
        node.hear("n9", StandIn("q", 77, 15.0, (ENTRY,)))


def test_stand_ins_are_bounded() -> None:
    node = MobileNode(moving=MobilitySettings(max_standing=1))
    node.meet("n1")
    entries = tuple(Entry(f"q/{n}", ENTRY.constraint) for n in range(3))
    node.hear("n9", StandIn("q", 77, 15.0, entries))
    assert node.mobility.counts.not_stood_in == 2


def test_an_anchor_rests_while_there_is_a_source(node: MobileNode) -> None:
    node.hear("p", MoveOut("delayed", "best-effort"))
    node.hear("p", GOODBYE)
    node.stamps["n1"] += 1
    node.hear("n1", Change(7, node.stamps["n1"], grafts=(GraftLine("p/1", 1, True),)))
    done = node.wait(60.0)
    assert changes(done) == {"n1": []}  # no source here any more, and that is all
    node.stamps["n1"] += 1
    node.hear("n1", Change(7, node.stamps["n1"], ungrafted=("p/1",)))
    assert changes(node.wait(5.0)) == {"n1": ["-p/1"], "n2": ["-p/1"]}


# -- coming -------------------------------------------------------------------------------------


def come(node: MobileNode, **changed: object) -> list[Send | Emit]:
    """A publisher comes from n9, in lossless handover."""
    fields = {"previous": "n9", **changed}
    return node.hear("q", MoveIn(5, "standard", "lossless", **fields))  # type: ignore[arg-type]


def test_the_new_tree_waits_for_the_handover_and_is_sounded(node: MobileNode) -> None:
    done = come(node)
    assert events_of(done, ClientMovedIn) == [ClientMovedIn("q", "n9")]
    assert sends(done, Handover) == [("n9", Handover("q", 5, "standard", "lossless"))]
    node.meet("q", role="client")
    assert changes(node.tell("q", ad("q/1", "y > 0", epoch=9))) == {}
    come(node, series=7, stamp=2)
    done = node.hear("n9", HandedOver("q", 5))
    assert changes(done) == {"n1": ["+q/1"], "n2": ["+q/1"]}
    sounds = sends(done, Sound)
    assert [to for to, _ in sounds] == ["n1", "n2"]
    for to, msg in sounds:
        assert isinstance(msg, Sound)
        done = node.hear(to, Sounded("q/1", msg.number, 7, 1))
    assert sends(done, TreeReady) == [("q", TreeReady(5, True))]
    # Asked again, it answers again.
    assert sends(come(node, series=7, stamp=2), TreeReady) == [("q", TreeReady(5, True))]


def test_a_previous_broker_that_never_answers_is_given_up(node: MobileNode) -> None:
    come(node)
    node.meet("q", role="client")
    node.tell("q", ad("q/1", "y > 0", epoch=9))
    come(node, series=7, stamp=2)
    asked = sends(node.wait(9.0), Handover)
    assert len(asked) > 10
    assert "+q/1" in changes(node.wait(1.5))["n1"]
    assert node.mobility.counts.not_handed_over == 1
    assert sends(node.wait(11.0), TreeReady) == [("q", TreeReady(5, False))]


def test_a_client_that_never_attaches_is_forgotten(node: MobileNode) -> None:
    come(node)
    node.wait(20.0)
    assert "q" not in node.content.router.srt.withheld
    assert not node.effects.timers.keys() & {("arrive", "q")}


def test_a_stray_handover_changes_nothing(node: MobileNode) -> None:
    node.hear("n9", HandedOver("q", 5))
    assert node.mobility.counts.strays == 1


# -- sounding -----------------------------------------------------------------------------------


def test_a_question_passes_on_and_the_answer_follows_the_ledger(node: MobileNode) -> None:
    node.tell("n1", AdvertisementLine("r/1", 1, OTHER, path=("n1",)))
    done = node.hear("n1", Sound("r/1", 3, False, 7, node.stamps["n1"]))
    assert sends(done, Sound) == [("n2", Sound("r/1", 3, False, *told(node, "n2")))]
    done = node.hear("n2", Sounded("r/1", 3, 7, node.stamps["n2"]))
    assert sends(done, Sounded) == [("n1", Sounded("r/1", 3, *told(node, "n1")))]
    # Who answered for this tree is not asked again, unless publications must pass.
    done = node.hear("n1", Sound("r/1", 4, False, 7, node.stamps["n1"]))
    assert not sends(done, Sound)
    assert len(sends(done, Sounded)) == 1
    node.tell("n2", sub("s/1", "z > 5", "n2"))
    done = node.hear("n1", Sound("r/1", 5, True, 7, node.stamps["n1"]))
    assert len(sends(done, Sound)) == 1


def test_who_has_not_read_so_far_does_not_answer(node: MobileNode) -> None:
    node.tell("n1", AdvertisementLine("r/1", 1, OTHER, path=("n1",)))
    done = node.hear("n1", Sound("r/1", 3, False, 7, node.stamps["n1"] + 1))
    assert done == []
    assert node.mobility.counts.unread == 1


def test_who_has_another_way_says_so(node: MobileNode) -> None:
    node.tell("n1", AdvertisementLine("r/1", 1, OTHER, path=("n1",)))
    node.tell("n2", AdvertisementLine("r/1", 1, OTHER, path=("n2", "n3")))
    done = node.hear("n2", Sound("r/1", 3, False, 7, node.stamps["n2"]))
    assert sends(done, Sounded) == [("n2", Sounded("r/1", 3, *told(node, "n2"), apart=True))]


def test_a_lost_branch_is_not_waited_for(node: MobileNode) -> None:
    node.tell("n1", AdvertisementLine("r/1", 1, OTHER, path=("n1",)))
    node.hear("n1", Sound("r/1", 3, False, 7, node.stamps["n1"]))
    node.content.unlink("n2", node.now)
    assert len(sends(node.done(), Sounded)) == 1


def test_a_branch_that_never_answers_is_given_up(node: MobileNode) -> None:
    node.tell("n1", AdvertisementLine("r/1", 1, OTHER, path=("n1",)))
    node.hear("n1", Sound("r/1", 3, False, 7, node.stamps["n1"]))
    done = node.wait(10.1)
    assert len(sends(done, Sound)) >= 19
    [(_, answer)] = sends(done, Sounded)
    assert isinstance(answer, Sounded)
    assert not answer.complete


def test_waves_are_bounded() -> None:
    node = MobileNode(moving=MobilitySettings(max_waves=1))
    node.meet("n1", "n2")
    node.tell("n1", AdvertisementLine("r/1", 1, OTHER, path=("n1",)))
    for number in range(3):
        node.hear("n1", Sound("r/1", number, True, 7, node.stamps["n1"]))
    assert node.mobility.counts.not_sounded == 2
