"""Which links a member wants: how many of which kind, and how that follows the view."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from overlay.errors import ConfigError
from overlay.ids import Ring
from protocols.topology import Kind, TopologySettings
from protocols.topology.coverage import covered, greedy_pick, is_redundant, lacking, random_pick
from protocols.topology.interests import interests
from protocols.topology.selection import (
    draw_random,
    draw_structured,
    ring_neighbours,
    structured_count,
)
from protocols.topology.wishes import Wishes
from tests.unit.topology.fixed_view import FixedView, Roster

CROWD = [f"n{index}" for index in range(64)]
ANTS, BEES, CATS = frozenset({"ants"}), frozenset({"bees"}), frozenset({"cats"})


def wishes(
    config: TopologySettings, roster: Roster, me: str = "n0", seed: int = 1, rounds: int = 10
) -> Wishes:
    """What a member wants after some reviews in which all were granted."""
    wanted = Wishes(FixedView(me, roster), config, Random(seed))
    for _ in range(rounds):
        wanted.follow_ring()
        room = config.max_degree - sum(1 for peer in wanted.peers() if peer not in wanted.ring)
        wanted.choose(wanted.peers(), {}, room)
    return wanted


def test_nearest_on_the_ring_choose_each_other() -> None:
    ring = Ring(CROWD)
    for k in (1, 2, 5):
        near = {name: ring_neighbours(ring, name, k) for name in CROWD}
        assert all(name in near[peer] for name in CROWD for peer in near[name])
        assert all(len(near[name]) == 2 * k for name in CROWD)


def test_a_small_ring_has_each_neighbour_once() -> None:
    assert ring_neighbours(Ring(["a"]), "a", 2) == {}
    assert list(ring_neighbours(Ring(["a", "b"]), "a", 2)) == ["b"]


@pytest.mark.parametrize(
    ("n", "strangers", "count"), [(5, 0, 0), (6, 1, 1), (16, 11, 2), (64, 59, 3), (1024, 1019, 5)]
)
def test_structured_links_grow_with_the_logarithm(n: int, strangers: int, count: int) -> None:
    assert structured_count(n, strangers, TopologySettings(structured_links=0.5)) == count


def test_harmonic_distances_are_equally_likely_at_each_scale() -> None:
    rng = Random(5)
    others = [str(distance) for distance in range(1, 1024)]
    scales = Counter(int(draw_structured(others, rng, ()) or 0).bit_length() for _ in range(10_000))
    assert sorted(scales) == list(range(1, 11))
    assert all(800 < times < 1200 for times in scales.values()), scales


def test_random_picks_are_uniform() -> None:
    rng = Random(5)
    picks = Counter(draw_random(CROWD, rng, ()) for _ in range(6400))
    assert set(picks) == set(CROWD)
    assert all(60 < times < 140 for times in picks.values())


def test_draws_end_when_everybody_is_barred() -> None:
    assert draw_random(CROWD, Random(1), CROWD) is None
    assert draw_structured(CROWD, Random(1), CROWD) is None


def test_a_member_wants_as_many_of_each_kind_as_configured() -> None:
    config = TopologySettings(structured_links=0.5, random_links=3)
    wanted = wishes(config, Roster(CROWD))
    assert len(wanted.ring) == 4
    assert (wanted.count(Kind.STRUCTURED), wanted.count(Kind.RANDOM)) == (3, 3)
    assert wanted.missing == 0


def test_changes_are_limited_per_review() -> None:
    config = TopologySettings(structured_links=1, random_links=4, changes=2)
    wanted = Wishes(FixedView("n0", Roster(CROWD)), config, Random(1))
    wanted.follow_ring()
    assert wanted.choose((), (), 32)
    assert wanted.missing == 8
    assert len(wanted.peers()) == 4 + 2


def test_no_more_than_the_room_is_chosen() -> None:
    config = TopologySettings(structured_links=1, random_links=4)
    wanted = Wishes(FixedView("n0", Roster(CROWD)), config, Random(1))
    wanted.follow_ring()
    assert wanted.choose((), (), 1)
    assert len(wanted.peers()) == 4 + 1


def test_choices_stay_while_the_zone_stays() -> None:
    roster = Roster(CROWD)
    wanted = wishes(TopologySettings(), roster)
    before = wanted.peers()
    wanted.follow_ring()
    assert not wanted.choose(before, {}, 32)
    assert wanted.peers() == before


def test_who_is_gone_is_replaced() -> None:
    roster = Roster(CROWD)
    wanted = wishes(TopologySettings(random_links=2), roster)
    victim = next(peer for peer in wanted.peers() if wanted.kinds(peer) == Kind.RANDOM)
    roster.remove(victim)
    wanted.follow_ring()
    wanted.choose(wanted.peers(), {}, 32)
    assert victim not in wanted.peers()
    assert wanted.count(Kind.RANDOM) == 2


def test_structured_links_are_drawn_anew_when_the_zone_has_doubled() -> None:
    roster = Roster(CROWD[:30])
    wanted = wishes(TopologySettings(random_links=0), roster)
    before = wanted.peers()
    for name in CROWD[30:]:
        roster.add(name)
    wanted.follow_ring()
    wanted.choose(before, {}, 32)
    assert [peer for peer in wanted.peers() if peer in before] != list(before)
    assert wanted.count(Kind.STRUCTURED) == 3


def test_where_nobody_new_is_left_a_link_serves_two_purposes() -> None:
    config = TopologySettings(ring_links=1, structured_links=1, random_links=3)
    wanted = wishes(config, Roster(CROWD[:6]))
    picks = [wanted.kinds(peer) for peer in wanted.peers() if peer not in wanted.ring]
    assert len(picks) == 3
    assert wanted.count(Kind.RANDOM) == 3


def test_interests_are_words_between_commas() -> None:
    assert interests({"topics": " ants ,bees,, "}) == ANTS | BEES
    assert interests({"topics": 7}) == frozenset()
    assert interests({"likes": "cats"}, "likes") == CATS
    assert interests({}) == frozenset()


def test_greedy_takes_who_shares_most_of_what_lacks() -> None:
    counts = covered(ANTS | BEES | CATS, [ANTS])
    assert counts == {"ants": 1, "bees": 0, "cats": 0}
    sharers = {"ants": 3, "bees": 2, "cats": 1}
    lacks = lacking(counts, 2, sharers)
    assert lacks == {"ants": 1, "bees": 2, "cats": 1}
    candidates = [("x", ANTS), ("y", BEES | CATS), ("z", ANTS | BEES)]
    assert greedy_pick(lacks, candidates) == "y"
    assert greedy_pick({}, candidates) is None


def test_random_takes_anybody_who_shares_something_that_lacks() -> None:
    candidates = [("x", ANTS), ("y", BEES), ("z", BEES)]
    picks = {random_pick({"bees": 1}, candidates, Random(seed)) for seed in range(20)}
    assert picks == {"y", "z"}
    assert random_pick({"cats": 1}, candidates, Random(1)) is None


def test_a_link_is_redundant_only_if_every_topic_keeps_its_neighbours() -> None:
    counts, sharers = {"ants": 3, "bees": 2}, {"ants": 9, "bees": 9}
    assert is_redundant(ANTS, counts, 2, sharers)
    assert not is_redundant(ANTS | BEES, counts, 2, sharers)
    assert not is_redundant(BEES, counts, 2, sharers)


def test_each_topic_gets_its_neighbours_over_few_links() -> None:
    topics = {name: "ants,bees,cats" if int(name[1:]) % 4 == 0 else "" for name in CROWD}
    config = TopologySettings(
        structured_links=0, random_links=0, greedy_coverage=2, random_coverage=1
    )
    wanted = wishes(config, Roster(CROWD, topics))
    assert wanted.count(Kind.INTEREST) <= 3  # one link serves all three topics
    sharing = [peer for peer in wanted.peers() if topics[peer]]
    assert len(sharing) >= 3


def test_a_topic_that_nobody_else_has_wants_no_link() -> None:
    wanted = wishes(TopologySettings(), Roster(CROWD, {"n0": "mine"}))
    assert wanted.count(Kind.INTEREST) == 0


def test_without_an_interest_key_topics_do_not_count() -> None:
    topics = dict.fromkeys(CROWD, "ants")
    wanted = wishes(TopologySettings(interest_key=""), Roster(CROWD, topics))
    assert wanted.count(Kind.INTEREST) == 0


def test_a_lost_interest_is_not_wanted_any_more() -> None:
    roster = Roster(CROWD, dict.fromkeys(CROWD[::8], "ants"))
    wanted = wishes(TopologySettings(structured_links=0, random_links=0), roster)
    assert wanted.count(Kind.INTEREST) > 0
    roster.set("n0", "topics", "bees")
    wanted.follow_ring()
    wanted.choose(wanted.peers(), {}, 32)
    assert wanted.count(Kind.INTEREST) == 0


def test_one_redundant_link_is_released_at_a_time() -> None:
    roster = Roster(CROWD, dict.fromkeys(CROWD[::3], "ants"))
    config = TopologySettings(structured_links=0, random_links=0)
    wanted = wishes(config, roster)
    chosen = wanted.count(Kind.INTEREST)
    others = [name for name in CROWD[::3] if name != "n0" and name not in wanted.peers()][:2]
    assert wanted.release_redundant(wanted.peers()) is None  # nothing is too much
    linked = [*wanted.peers(), *others]  # two links more, that others wanted
    assert wanted.release_redundant(linked) is not None
    assert wanted.count(Kind.INTEREST) == chosen - 1


def test_more_random_links_than_the_degree_bound_are_a_mistake() -> None:
    with pytest.raises(ConfigError, match=r"random_links = 9: at most max_degree = 4"):
        TopologySettings(random_links=9, max_degree=4)
