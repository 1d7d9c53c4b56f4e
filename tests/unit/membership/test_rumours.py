"""News on its way: the newest first, each a few times, and room for everybody."""

from protocols.membership.attributes import Attribute
from protocols.membership.counts import MembershipCounts
from protocols.membership.rumours import Rumours
from tests.unit.membership.member import ALIVE, SUSPECT, record


def make(limit: int = 100) -> tuple[Rumours, MembershipCounts]:
    counts = MembershipCounts()
    return Rumours(limit, limit, counts), counts


def test_the_newest_leaves_first_and_each_as_often_as_asked() -> None:
    rumours, _ = make()
    for name in ("a", "b"):
        rumours.states.push(name, record(name), 3)
    room = record("a").cost
    taken = [rumours.take(room)[0][0].name for _ in range(6)]
    assert taken == ["b", "a", "b", "a", "b", "a"]
    assert rumours.take(room) == ((), ())
    assert not rumours


def test_a_packet_to_several_counts_for_each_of_them() -> None:
    rumours, _ = make()
    rumours.states.push("a", record("a"), 5)
    assert rumours.take(1000, receivers=4)[0] == (record("a"),)
    assert rumours
    rumours.take(1000, receivers=4)
    assert not rumours


def test_later_news_of_a_member_takes_the_place_of_older() -> None:
    rumours, _ = make()
    rumours.states.push("a", record("a", ALIVE), 3)
    rumours.states.push("a", record("a", SUSPECT), 1)
    assert rumours.take(1000)[0] == (record("a", SUSPECT),)
    assert not rumours


def test_what_is_corrected_on_its_way_is_passed_on_as_often_as_the_original() -> None:
    rumours, _ = make()
    rumours.states.push("a", record("a", SUSPECT), 2)
    accusers = record("a", SUSPECT, accusers=("b",))
    rumours.states.update("a", accusers)
    assert rumours.states.bytes == accusers.cost
    assert [rumours.take(1000)[0] for _ in range(3)] == [(accusers,), (accusers,), ()]
    rumours.states.update("a", accusers)
    assert not rumours, "nothing was on its way"


def test_what_others_tell_me_is_passed_on_once_less_for_each_of_them() -> None:
    rumours, _ = make()
    rumours.states.push("a", record("a"), 3)
    rumours.states.echo("a")
    rumours.states.echo("b")
    assert [rumours.take(1000)[0] for _ in range(3)] == [(record("a"),), (record("a"),), ()]
    rumours.states.push("a", record("a"), 1)
    rumours.states.echo("a")
    assert not rumours
    assert rumours.states.bytes == 0


def test_a_wave_of_joins_leaves_half_of_each_packet_to_attributes() -> None:
    rumours, _ = make()
    for number in range(100):
        rumours.states.push(number, record(f"member-{number}"), 9)
    for number in range(20):
        update = Attribute("ada", f"key{number}", 1, "x" * 50)
        rumours.attributes.push(("ada", update.key), update, 9)
    states, attributes = rumours.take(1200)
    spent = [sum(one.cost for one in half) for half in (states, attributes)]
    assert 500 < spent[0] <= 600
    assert 500 < spent[1] <= 600


def test_without_the_other_kind_a_packet_is_filled() -> None:
    rumours, _ = make()
    for number in range(100):
        rumours.states.push(number, record(f"member-{number}"), 9)
    states, attributes = rumours.take(1200)
    assert 1100 < sum(state.cost for state in states) <= 1200
    assert attributes == ()


def test_one_that_is_larger_than_its_half_still_leaves() -> None:
    rumours, _ = make()
    for number in range(100):
        rumours.states.push(number, record(f"member-{number}"), 9)
    large = Attribute("ada", "large", 1, "x" * 1024)
    rumours.attributes.push(("ada", "large"), large, 1)
    assert rumours.take(1200)[1] == (large,)


def test_a_full_queue_drops_its_oldest_and_counts_it() -> None:
    rumours, counts = make(limit=2)
    for name in "abc":
        rumours.states.push(name, record(name), 9)
    assert [state.name for state in rumours.take(1000)[0]] == ["c", "b"]
    assert counts.news_dropped == 1
    assert rumours.states.bytes == 2 * record("a").cost
