"""Which claim about a member wins."""

from itertools import pairwise, permutations

import pytest

from protocols.membership.records import Record, accused, ended, is_good_name, supersedes
from tests.unit.membership.member import ALIVE, BIRTH, DEAD, LEFT, SUSPECT, record

ORDER = [
    record("a", ALIVE),
    record("a", SUSPECT),
    record("a", DEAD),
    record("a", LEFT),
    record("a", ALIVE, BIRTH + 1),
    record("a", DEAD, BIRTH + 1),
    record("a", ALIVE, BIRTH + 2, life=9, born=BIRTH + 2),  # two lives, one incarnation:
    record("a", ALIVE, BIRTH + 2, life=1),  # the one that was born first wins
]


@pytest.mark.parametrize(("older", "newer"), list(pairwise(ORDER)))
def test_each_wins_against_the_one_before_and_never_the_other_way(
    older: Record, newer: Record
) -> None:
    assert supersedes(newer, older)
    assert not supersedes(older, newer)
    assert not supersedes(older, older)


def test_the_order_in_which_claims_arrive_does_not_matter() -> None:
    for order in permutations(ORDER[3:]):
        known = order[0]
        for claim in order[1:]:
            known = claim if supersedes(claim, known) else known
        assert known is ORDER[-1]


def test_accusers_add_up_to_a_limit() -> None:
    suspicion = accused(record("a"), ("b", "c"), False, 3)
    assert suspicion == record("a", SUSPECT, accusers=("b", "c"))
    assert accused(suspicion, ("c", "d", "e"), False, 3).accusers == ("b", "c", "d")
    assert accused(suspicion, ("c",), False, 3) is suspicion
    assert accused(suspicion, ("c",), True, 3).abrupt


def test_the_dead_have_no_accusers() -> None:
    assert ended(record("a", SUSPECT, accusers=("b",), abrupt=True), DEAD) == record("a", DEAD)


@pytest.mark.parametrize("name", ["", "a\n", "a/b", "a b", "\x1b[2J", "x" * 65, "..", "a\u202eb"])
def test_a_bad_name_is_known_as_such(name: str) -> None:
    assert not is_good_name(name)
    assert is_good_name("ada-1.lab")
