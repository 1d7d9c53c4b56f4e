"""Who is asked: three seniors at most, never oneself, and nobody by more than a few."""

from collections import Counter
from random import Random

from protocols.timesync.seniority import BELOW, COMMITTEE, Order
from tests.unit.timesync.zone import SeniorView

NAMES = [f"n{number:04}" for number in range(1000)]


def seniors_of(me: str, names: list[str]) -> list[str]:
    return Order(SeniorView(me, names)).seniors()


def test_the_root_follows_nobody_and_the_first_three_each_other() -> None:
    assert seniors_of("n0000", NAMES) == []
    assert seniors_of("n0001", NAMES) == ["n0000"]
    assert seniors_of("n0002", NAMES) == ["n0000", "n0001"]
    assert seniors_of("n0003", NAMES) == NAMES[:3]
    assert seniors_of("n0011", NAMES) == NAMES[:3]
    assert seniors_of("n0012", NAMES) == NAMES[3:6]


def test_everybody_is_senior_to_those_who_follow_it_and_serves_few() -> None:
    served: Counter[str] = Counter()
    for place, name in enumerate(NAMES):
        seniors = seniors_of(name, NAMES)
        assert all(NAMES.index(senior) < place for senior in seniors)
        served.update(seniors)
    assert max(served.values()) <= COMMITTEE * (BELOW + 1)


def test_a_thousand_members_are_six_deep() -> None:
    depth = {NAMES[0]: 1}
    for name in NAMES[1:]:
        depth[name] = 1 + min(depth[senior] for senior in seniors_of(name, NAMES))
    assert max(depth.values()) == 6


def test_random_others_are_neither_this_node_nor_known_ones() -> None:
    order = Order(SeniorView("n0000", NAMES[:6]))
    drawn = order.others(Random(1), 9, ("n0001",))
    assert sorted(drawn) == ["n0002", "n0003", "n0004", "n0005"]
    assert len(order.others(Random(1), 2, ())) == 2


def test_when_the_root_is_gone_the_next_one_follows_nobody() -> None:
    view = SeniorView("n0001", NAMES[:5])
    order = Order(view)
    assert order.seniors() == ["n0000"]
    view.change(NAMES[1:5])
    assert order.seniors() == []
