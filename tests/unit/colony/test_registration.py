"""Log, delog and tables: what leaders and individuals say to each other."""

from __future__ import annotations

import pytest

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.protocol import LinkLost
from protocols.colony import (
    ColonySettings,
    IndividualLoggedIn,
    IndividualLoggedOut,
    LeaderFound,
    LeaderLost,
    LeaderRefused,
    RequestEnded,
    Wish,
)
from protocols.colony.attaching import BEAT, LOGIN, LOST
from protocols.colony.messages import (
    Ancestry,
    Beat,
    LogIn,
    LogInRefused,
    LogOut,
    Offers,
    Welcome,
)
from tests.recording import Emit, Send, TickEnd
from tests.unit.colony.units import CPU, DISK, Community, Unit


def test_a_unit_logs_in_with_all_that_it_offers() -> None:
    unit = Unit("c", offers=[CPU])
    unit.machine.follow("p", 0.0)
    (knock,) = unit.sent(LogIn)
    assert isinstance(knock.msg, LogIn)
    assert (knock.to, knock.msg.unit, knock.msg.services) == ("p", "computer", (str(CPU),))
    done = unit.deliver("p", Welcome(knock.msg.serial, ("q",), knock.msg.version), 0.1)
    assert done == [Emit(LeaderFound("p", ("p", "q")))]


def test_a_leader_registers_and_says_welcome() -> None:
    unit = Unit("p", leads=True)
    done = unit.deliver("c", LogIn(5, "computer", 2, (str(CPU),)))
    assert done == [Send("c", Welcome(5, (), 2)), Emit(IndividualLoggedIn("c", "computer", 1))]
    assert unit.machine.table.union == (str(CPU),)


def test_who_leads_nobody_refuses() -> None:
    assert Unit("x").deliver("c", LogIn(5, "computer", 1, ())) == [
        Send("c", LogInRefused(5, "not a leader"))
    ]


def test_a_full_leader_refuses() -> None:
    unit = Unit("p", leads=True, settings=ColonySettings(max_individuals=1))
    unit.add("a")
    assert unit.deliver("b", LogIn(5, "computer", 1, ())) == [
        Send("b", LogInRefused(5, "full: 1 individuals"))
    ]


def test_a_cycle_is_refused_with_the_way_it_would_close() -> None:
    unit = Unit("p", leads=True)
    unit.machine.follow("q", 0.0)
    unit.log_in("q", ("r",))
    (refused,) = unit.deliver("r", LogIn(5, "broker", 1, ()))
    assert refused == Send("r", LogInRefused(5, "that would close a cycle of leaders: p → q → r"))
    with pytest.raises(LocalProtocolError, match="its own leader"):
        unit.machine.follow("p", 0.0)


def test_two_who_follow_each_other_at_one_moment_end_up_as_a_tree() -> None:
    community = Community()
    world = community.world
    one = community.unit("a", leads=True)
    other = community.unit("b", leads=True)
    one.follow("b", 0.0)
    other.follow("a", 0.0)
    world.settle()
    assert (one.leader, other.leader) == ("", "a"), "the least name leaves"
    assert "cycle" in community.heard("a", LeaderRefused)[0].reason


def test_a_change_of_the_union_goes_up_once() -> None:
    unit = Unit("p", leads=True)
    unit.machine.follow("q", 0.0)
    unit.log_in("q")
    version = unit.machine.table.version
    unit.machine.message_handlers()[LogIn]("c", LogIn(5, "computer", 1, (str(CPU),)), 1.0)
    unit.machine.message_handlers()[LogIn]("d", LogIn(6, "computer", 1, (str(CPU),)), 1.0)
    late = [one for one in unit.effects.drain() if isinstance(one, TickEnd)]
    assert len(late) >= 1
    late[0].callback(1.0)
    (offers,) = unit.sent(Offers)
    assert offers == Send("q", Offers(version + 1, version, (str(CPU),), ()))
    unit.deliver("c", LogOut("leaves"))
    assert not unit.machine.table.changed, "another one offers it still"


def test_a_leader_that_has_another_version_gets_all() -> None:
    unit = Unit("c", leader="p", offers=[CPU])
    version = unit.machine.table.version
    unit.machine.message_handlers()[Ancestry]("p", Ancestry(0, (), version + 3), 1.0)
    assert unit.sent(Offers) == [Send("p", Offers(version, 0, (str(CPU),)))]


def test_changes_on_another_version_are_not_taken() -> None:
    unit = Unit("p", leads=True)
    unit.add("c", CPU)
    unit.machine.message_handlers()[Offers]("c", Offers(9, 8, (str(DISK),)), 1.0)
    assert unit.effects.drain()[0] == Send("c", Ancestry(0, (), 1))
    assert unit.machine.table.union == (str(CPU),)
    unit.deliver("c", Offers(9, 0, (str(DISK),)))
    assert unit.machine.table.union == (str(DISK),)


def test_a_bad_service_is_the_peers_fault_and_changes_nothing() -> None:
    unit = Unit("p", leads=True)
    with pytest.raises(RemoteProtocolError, match="bad-service"):
        unit.deliver("c", LogIn(5, "computer", 1, ("no service at all",)))
    assert unit.machine.individuals() == []


def test_a_beat_of_an_unknown_sends_it_away() -> None:
    unit = Unit("p", leads=True)
    assert unit.deliver("c", Beat(1, 1, 0.0)) == [Send("c", LogOut("unknown here"))]


def test_who_is_unknown_logs_in_again() -> None:
    unit = Unit("c", leader="p")
    done = unit.deliver("p", LogOut("unknown here"), 1.0)
    assert Emit(LeaderLost("p", "unknown here")) in done
    assert [one.to for one in done if isinstance(one, Send)] == ["p"]


def test_a_silent_leader_is_left_for_the_grandparent() -> None:
    unit = Unit("c")
    unit.machine.follow("p", 0.0)
    unit.log_in("p", ("g", "r"))
    lease = unit.machine.config.lease
    done = unit.fire(BEAT, lease + 0.1)
    assert done[0] == Emit(LeaderLost("p", "silent"))
    assert [one.to for one in done if isinstance(one, Send)] == ["g"]
    unit.fire(LOGIN, lease + 0.6)
    unit.fire(LOGIN, lease + 1.1)
    done = unit.fire(LOGIN, lease + 1.6)
    assert [one.to for one in done if isinstance(one, Send)] == ["r"], "three tries each"


def test_a_lost_link_asks_for_a_sign_of_life() -> None:
    unit = Unit("c", leader="p")
    unit.machine.event_handlers()[LinkLost](LinkLost("p"), 1.0)
    assert unit.sent(Beat)
    assert unit.effects.timers[LOST] == 3.0
    done = unit.fire(LOST, 3.0)
    assert Emit(LeaderLost("p", "link lost")) in done


def test_an_individual_that_is_silent_is_forgotten() -> None:
    unit = Unit("p", leads=True)
    unit.add("c", CPU)
    lease = unit.machine.config.lease
    done = unit.fire("sweep", lease + 0.1)
    assert done == [
        Send("c", LogOut("unknown here")),
        Emit(IndividualLoggedOut("c", "silent")),
    ]
    assert unit.machine.table.union == ()


def test_what_a_lost_colony_offered_stays_for_a_lease() -> None:
    unit = Unit("p", leads=True)
    unit.add("b", CPU, unit="broker")
    lease = unit.machine.config.lease
    unit.fire("sweep", lease + 0.1)
    assert unit.machine.individuals() == []
    assert list(unit.machine.table.union) == [str(CPU)]
    assert unit.machine.table.offering([str(CPU)]) == ()
    unit.fire("sweep", 2 * lease + 0.2)
    assert not list(unit.machine.table.union)


def test_a_leader_that_stops_sends_everybody_away() -> None:
    unit = Unit("p", leads=True, leader="q")
    unit.add("a")
    unit.add("b")
    unit.machine.on_stop(1.0)
    sent = [one for one in unit.effects.drain() if isinstance(one, Send)]
    assert [(one.to, one.msg) for one in sent if isinstance(one.msg, LogOut)] == [
        ("a", LogOut("its leader leaves")),
        ("b", LogOut("its leader leaves")),
        ("q", LogOut("leaves")),
    ]


def test_merge_and_split() -> None:
    community = Community()
    one = community.unit("p", leads=True)
    other = community.unit("q", leads=True)
    community.unit("c", "q", offers=[CPU])
    assert not list(one.table.union)
    community.world.call(other.follow, "p")
    assert list(one.table.union) == [str(CPU)]
    assert community.world.machines["c"].path == ("q", "p")
    community.world.call(other.delog)
    assert not list(one.table.union)
    assert list(community.world.machines["c"].path) == ["q"]


def test_a_computer_that_becomes_a_broker_is_one_to_its_leader() -> None:
    community = Community()
    boss = community.unit("p", leads=True)
    unit = community.unit("c", "p", offers=[CPU])
    community.world.call(unit.lead)
    assert [one.unit for one in boss.individuals()] == ["broker"]
    community.unit("d", "c", offers=[DISK])
    assert sorted(boss.table.union) == sorted((str(CPU), str(DISK)))
    community.world.call(unit.stop_leading)
    assert next(one.unit for one in boss.individuals()) == "computer"
    assert community.world.machines["d"].leader in ("", "p")


def test_expelled_and_not_taken_again_for_a_while() -> None:
    community = Community()
    boss = community.unit("p", leads=True)
    community.unit("c", "p")
    community.world.call(boss.expel, "c")
    assert boss.individuals() == []
    with pytest.raises(LocalProtocolError, match="no individual"):
        community.world.call(boss.expel, "c")


def test_leaders_that_were_told_are_few() -> None:
    unit = Unit("c")
    unit.machine.learn_leaders([f"p{number}" for number in range(50)], 0.0)
    assert len(unit.machine._attachment.others) == 32


def test_a_colony_that_has_just_begun_waits_for_its_first_individuals() -> None:
    community = Community()
    world = community.world
    boss = community.unit("p")
    world.call(boss.lead)
    community.ask("p", Wish((CPU,)))
    assert not community.heard("p", RequestEnded)
    community.unit("c", "p", offers=[CPU])
    assert [one.found for one in community.heard("p", RequestEnded)] == [1]
    community.ask("p", Wish((DISK,)))
    world.pass_time(3.1)
    assert [one.found for one in community.heard("p", RequestEnded)] == [1, 0]
