"""How many of a group must agree, and whose ballot is whose."""

from __future__ import annotations

from protocols.dht.groups import Group, Member, ballot_of, next_ballot, place_of, version_of


def group(*names: str) -> Group:
    return Group(1, tuple(Member(name, 1, name[0]) for name in names))


def test_a_majority_is_of_the_group_and_of_nobody_else() -> None:
    three = group("a1", "a2", "a3")
    assert three.majority == 2
    assert three.is_majority(["a1", "a3"])
    assert not three.is_majority(["a1", "b1", "b2"])
    assert not group().is_majority(["a1"])


def test_an_acknowledgement_needs_a_second_zone_where_there_is_one() -> None:
    two = group("a1", "a2", "a3", "b1", "b2")
    assert not two.suffices(["a1", "a2", "a3"], 0)
    assert two.suffices(["a1", "a2", "b1"], 0)
    assert not two.suffices(["a1", "b1"], 0)
    assert group("a1", "a2", "a3").suffices(["a1", "a2"], 0)


def test_a_quorum_raises_what_is_needed_and_never_lowers_it() -> None:
    three = group("a1", "a2", "a3")
    assert not three.suffices(["a1", "a2"], 3)
    assert three.suffices(["a1", "a2", "a3"], 7)
    assert not three.suffices(["a1"], 1)


def test_ballots_grow_with_version_round_and_place() -> None:
    ballots = [ballot_of(v, r, p) for v in (1, 2) for r in (1, 2) for p in (0, 4)]
    assert ballots == sorted(set(ballots))
    assert (version_of(ballots[-1]), place_of(ballots[-1])) == (2, 4)
    assert next_ballot(ballot_of(1, 7, 4), 1, 2) == ballot_of(1, 8, 2)
    assert next_ballot(ballot_of(1, 7, 4), 2, 0) == ballot_of(2, 1, 0)
