"""The view: ring, roster, digest and the dead belong together."""

from random import Random

import pytest

from overlay.errors import InvariantViolation
from overlay.ids import vid_of
from protocols.membership.attributes import Attribute, first_version
from protocols.membership.messages import BUCKET_BYTES, BUCKETS
from protocols.membership.table import MemberTable, bucket_of
from tests.unit.membership.member import BIRTH, DEAD, LEFT, SUSPECT, record


def make(*names: str) -> MemberTable:
    table = MemberTable("z", "me")
    for name in ("me", *names):
        table.put(record(name), 0.0)
    return table


def attribute(name: str, version: int, value: str | None = "v") -> Attribute:
    return Attribute(name, "key", first_version(BIRTH) + version, value)


def test_members_stand_clockwise_on_the_ring_and_suspects_among_them() -> None:
    table = make("a", "b", "c")
    table.put(record("b", SUSPECT), 1.0)
    table.put(record("c", DEAD), 2.0)
    assert list(table.members()) == sorted(["me", "a", "b"], key=vid_of)
    assert len(table) == 3
    assert [name in table for name in ("a", "b", "c", "d")] == [True, True, False, False]
    assert table.gone() == {"c": 2.0}
    known = table.record("b")
    assert known is not None
    assert known.vid == vid_of("b")
    table.audit()


def test_equal_views_have_equal_digests_in_whatever_order_they_came_about() -> None:
    one, other = make("a", "b"), make("b", "a")
    one.put_attribute(attribute("a", 1))
    one.put_attribute(attribute("a", 2))
    other.put(record("b", SUSPECT), 0.0)  # passes within seconds: no difference worth mending
    assert one.digest != other.digest
    assert one.differing(other.packed_buckets()) == [bucket_of("a")]
    other.put_attribute(attribute("a", 2))
    assert one.digest == other.digest
    assert one.differing(other.packed_buckets()) == []
    assert len(one.packed_buckets()) == BUCKETS * BUCKET_BYTES


def test_the_dead_and_their_oblivion_are_no_difference() -> None:
    one, other = make("a"), make()
    one.put(record("a", DEAD), 1.0)
    assert one.digest == other.digest
    one.forget("a")
    one.audit()
    assert one.record("a") is None
    assert one.digest == other.digest


def test_two_lives_of_one_incarnation_are_a_difference() -> None:
    one, other = make("a"), make()
    other.put(record("a", life=2), 0.0)
    assert one.digest != other.digest


def test_a_new_life_begins_without_the_attributes_of_the_old_one() -> None:
    table = make("a")
    table.put_attribute(attribute("a", 1))
    table.put(record("a", incarnation=BIRTH + 5, life=2, born=BIRTH + 5), 0.0)
    assert table.attributes("a") == {}
    table.audit()


def test_a_draw_gives_different_others() -> None:
    table, rng = make(*"abcdefgh"), Random(1)
    for count in range(10):
        drawn = table.draw(rng, count, "a")
        assert len(set(drawn)) == len(drawn) == min(count, 7)
        assert not {"me", "a"} & set(drawn)


def test_roles_are_words_of_one_attribute() -> None:
    table = make("a")
    assert table.roles("a") == ()
    table.put_attribute(Attribute("a", "roles", first_version(BIRTH) + 1, "dht,delegate"))
    assert table.roles("a") == ("dht", "delegate")
    table.put_attribute(Attribute("a", "roles", first_version(BIRTH) + 2, 7))
    assert table.roles("a") == ()


def test_neither_incarnations_nor_versions_go_back() -> None:
    table = make("a")
    with pytest.raises(InvariantViolation, match="went back"):
        table.put(record("a", incarnation=BIRTH - 1), 0.0)
    table.put_attribute(attribute("a", 2))
    with pytest.raises(InvariantViolation, match="went back"):
        table.put_attribute(attribute("a", 2))


@pytest.mark.parametrize("broken", ["ring", "roster", "gone", "record"])
def test_a_view_that_does_not_fit_together_is_noticed(broken: str) -> None:
    table = make("a", "b")
    table.put(record("b", LEFT), 1.0)
    table.check()
    table.put(record("a", SUSPECT), 1.0)
    if broken == "ring":
        table.ring().remove("a")
    elif broken == "roster":
        table._roster.remove("a")
    elif broken == "gone":
        table.gone().clear()
    else:
        table._records["a"] = record("a", DEAD)
    with pytest.raises(InvariantViolation):
        table.check()


def test_an_audit_finds_what_a_look_at_the_changes_cannot() -> None:
    table = make("a")
    table.check()
    table.audit()
    table._buckets[3] ^= 1
    table.check()
    with pytest.raises(InvariantViolation, match="digest"):
        table.audit()
