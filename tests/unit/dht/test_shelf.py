"""Records and the digests by which two copies find where they differ."""

from __future__ import annotations

from protocols.dht.messages import Row
from protocols.dht.shelf import Shelf, expiry, leaf_of, parts_of, ttl_left


def filled(*rows: tuple[bytes, bytes | None, int]) -> Shelf:
    shelf = Shelf()
    for key, value, sequence in rows:
        shelf.put(key, value, 1, sequence, 0.0)
    return shelf


def test_the_order_of_writes_does_not_show() -> None:
    one = filled((b"a", b"1", 1), (b"b", b"2", 2))
    other = filled((b"b", b"0", 1), (b"b", b"2", 2), (b"a", b"1", 1))
    assert (one.digest, one.tree()) == (other.digest, other.tree())
    assert one.differing(other.tree()) == ()


def test_a_difference_shows_in_its_leaf() -> None:
    one = filled((b"a", b"1", 1), (b"b", b"2", 2))
    other = filled((b"a", b"1", 1), (b"b", b"2", 3))
    assert one.digest != other.digest
    assert one.differing(other.tree()) == (leaf_of(b"b"),)
    assert one.keys_in([leaf_of(b"b")]) == [b"b"]


def test_what_is_dropped_leaves_no_trace() -> None:
    shelf = filled((b"a", b"1", 1), (b"gone", None, 2))
    assert list(shelf.removed) == [b"gone"]
    shelf.drop(b"gone")
    shelf.drop(b"never there")
    assert shelf.tree() == filled((b"a", b"1", 1)).tree()
    assert shelf.bytes == filled((b"a", b"1", 1)).bytes
    shelf.clear()
    assert (len(shelf), shelf.digest, shelf.tree(), shelf.bytes) == (0, 0, (), 0)


def test_time_left_travels_not_the_time_of_day() -> None:
    shelf = Shelf()
    shelf.put(b"a", b"1", 1, 1, expiry(2500, 10.0))
    assert shelf.row(b"a", 11.0) == Row(b"a", 1, 1, b"1", 1500)
    assert ttl_left(12.5, 20.0) == 1  # over, but not for ever
    assert shelf.expiring == {b"a": 12.5}
    shelf.put(b"a", b"2", 1, 2, 0.0)
    assert shelf.expiring == {}


def test_rows_leave_in_portions() -> None:
    rows = [Row(b"%d" % at, 1, at, b"x" * 100) for at in range(10)]
    assert [len(part) for part in parts_of(rows, 500, 100)] == [3, 3, 3, 1]
    assert [len(part) for part in parts_of(rows, 10_000, 4)] == [4, 4, 2]
    assert parts_of([], 500, 4) == [()]
