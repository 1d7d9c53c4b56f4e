"""Who stands for a zone: elected alike by all, in office after a moment, out of it when not."""

from __future__ import annotations

from overlay.ids import vid_of
from protocols.membership.events import NameTaken
from protocols.zones import MANAGEMENT, DelegateAppointed, DelegateDismissed, ZonesSettings
from protocols.zones.election import elect
from tests.unit.zones.node import ZONE, FixedMembership, ZonesNode


def chosen(view: FixedMembership, count: int = 2) -> list[str]:
    return [name for *_, name in elect(view, count)]


def test_the_oldest_are_elected_and_the_ring_decides_between_equals() -> None:
    view = FixedMembership(ZONE, "me", 300)
    view.put("old", 100)
    view.put("young", 900)
    view.put("twin", 300)
    assert chosen(view, 1) == ["old"]
    assert chosen(view, 3) == ["old", *sorted(["me", "twin"], key=vid_of)]


def test_who_serves_stays_whoever_comes() -> None:
    view = FixedMembership(ZONE, "me", 300)
    view.put("serving", 900, roles="broker,delegate")
    view.put("old", 100)
    assert chosen(view) == ["serving", "old"]


def test_of_too_many_who_serve_the_oldest_stay() -> None:
    view = FixedMembership(ZONE, "me", 300)
    for name, born in (("a", 3), ("b", 1), ("c", 2)):
        view.put(name, born, roles="delegate")
    assert chosen(view) == ["b", "c"]


def test_the_dead_and_the_unwilling_are_no_candidates() -> None:
    view = FixedMembership(ZONE, "me", 300)
    view.put("dead", 1, roles="delegate")
    view.drop("dead")
    view.put("roaming", 2, delegate=False)
    view.put("willing", 3, delegate=True)
    assert chosen(view) == ["willing", "me"]


def test_a_node_alone_serves_once_its_view_had_time_to_fill() -> None:
    node = ZonesNode()
    node.pass_time(0.99)
    assert not node.serves()
    node.pass_time(0.01)
    assert node.serves()
    assert node.zones.wants_management
    assert node.base.roles("me") == ("delegate",)
    assert node.events() == [DelegateAppointed(ZONE, "me")]
    assert node.zones.counts.appointed == 1


def test_roles_of_the_application_stay() -> None:
    node = ZonesNode()
    node.base.put("me", 100, roles="broker,dht")
    node.pass_time(2.0)
    assert node.base.roles("me") == ("broker", "dht", "delegate")
    node.says("me", roles="broker")
    node.pass_time(0.1)
    assert node.base.roles("me") == ("broker", "delegate")
    assert node.zones.delegates == ("me",)


def test_others_serve_and_this_node_only_tells() -> None:
    node = ZonesNode(born=900)
    node.joins("a", 100, roles="delegate")
    node.joins("b", 200, roles="delegate")
    node.pass_time(2.0)
    assert node.zones.delegates == ("a", "b")
    assert node.events() == [DelegateAppointed(ZONE, "a"), DelegateAppointed(ZONE, "b")]
    assert not node.zones.wants_management


def test_a_delegate_that_fails_is_replaced_after_a_moment() -> None:
    node = ZonesNode(born=900)
    node.joins("a", 100, roles="delegate")
    node.joins("b", 200, roles="delegate")
    node.pass_time(2.0)
    node.effects.drain()
    node.fails("a")
    node.pass_time(0.1)
    assert node.events() == [DelegateDismissed(ZONE, "a")]
    node.pass_time(0.24)
    assert not node.serves()
    node.pass_time(0.02)
    assert node.serves()
    assert node.events() == [DelegateAppointed(ZONE, "me")]
    assert node.zones.delegates == ("b", "me")


def test_who_leaves_is_replaced_as_well() -> None:
    node = ZonesNode(born=900)
    node.joins("a", 100, roles="delegate")
    node.joins("b", 200, roles="delegate")
    node.pass_time(2.0)
    node.leaves("b")
    node.pass_time(0.36)
    assert node.serves()


def test_an_appointment_that_was_overtaken_does_not_happen() -> None:
    node = ZonesNode(born=900)
    node.joins("a", 100, roles="delegate")
    node.joins("b", 200, roles="delegate")
    node.pass_time(2.0)
    node.fails("a")
    node.pass_time(0.2)
    node.joins("c", 300, roles="delegate")
    node.pass_time(5.0)
    assert not node.serves()
    assert node.zones.counts.appointed == 0


def test_of_three_after_a_merge_the_youngest_resigns_but_not_at_once() -> None:
    node = ZonesNode(born=900)
    node.serve()
    node.joins("a", 100, roles="delegate")
    node.joins("b", 200, roles="delegate")
    node.pass_time(1.9)
    assert node.serves()
    node.effects.drain()
    node.pass_time(0.3)
    assert not node.serves()
    assert node.base.roles("me") == ()
    assert node.events() == [DelegateDismissed(ZONE, "me")]
    assert node.zones.delegates == ("a", "b")


def test_a_newcomer_changes_nothing() -> None:
    node = ZonesNode()
    node.joins("a", 200)
    node.serve()
    node.says("a", roles="delegate")
    node.pass_time(1.0)
    node.effects.drain()
    node.joins("older", 1)
    node.pass_time(5.0)
    assert node.zones.delegates == ("me", "a")
    assert node.events() == []


def test_who_is_not_eligible_says_so_and_never_serves() -> None:
    node = ZonesNode(settings=ZonesSettings(eligible=False))
    node.pass_time(60.0)
    assert node.base.attributes("me") == {"delegate": False}
    assert not node.serves()


def test_who_is_refused_by_the_management_zone_lets_others_serve_for_a_while() -> None:
    node = ZonesNode()
    node.serve()
    node.hear(NameTaken(MANAGEMENT, "me", "somebody else is called so"))
    assert not node.serves()
    assert node.events() == [DelegateDismissed(ZONE, "me")]
    node.zones.leave_management(node.now)
    node.pass_time(59.0)
    assert not node.serves()
    node.pass_time(3.0)
    node.says("me")  # the base zone tells that the attribute is gone
    node.pass_time(20.0)
    assert node.serves()


def test_who_lost_its_name_serves_no_more() -> None:
    node = ZonesNode()
    node.serve()
    node.base.stopped = True
    node.hear(NameTaken(ZONE, "me", "somebody else is called so"))
    assert not node.serves()
    node.zones.leave_management(node.now)
    node.pass_time(60.0)
    assert not node.serves()


def test_a_birth_that_changed_without_an_event_is_noticed_in_time() -> None:
    node = ZonesNode(born=900)
    node.joins("a", 100)
    node.joins("b", 200)
    node.pass_time(3.0)
    assert not node.serves()
    node.base.put("b", 2000)  # it had to begin above an earlier life
    node.pass_time(15.0)
    assert node.serves()


def test_who_has_no_room_for_the_role_does_not_serve() -> None:
    node = ZonesNode()
    node.base.full = True
    node.pass_time(5.0)
    assert not node.serves()
    assert node.events() == []
    assert node.zones.counts.attributes_refused > 0
    node.base.full = False
    node.base.put("me", 100)
    node.pass_time(15.0)
    assert node.serves()


def test_a_clock_set_back_delays_nothing() -> None:
    node = ZonesNode()
    node.now = 10_000.0
    node.hear(NameTaken("elsewhere", "x", ""))  # any input shows the clock
    node.now = 5_000.0
    node.hear(NameTaken("elsewhere", "x", ""))
    assert all(at <= 5_020.0 for at in node.effects.timers.values())


def test_nothing_happens_after_the_stop() -> None:
    node = ZonesNode()
    node.zones.on_stop(0.0)
    assert node.effects.timers == {}
    node.effects.drain()
    node.joins("a", 1)
    node.zones.on_timer("election", 1.0)
    assert node.effects.drain() == []
    assert not node.zones.wants_management
