"""Marzullo's intersection: the largest set that shares a point, the senior one of equals."""

from overlay.intervals import Interval, agreement


def test_nobody_agrees_on_nothing() -> None:
    assert agreement([]) == ()


def test_one_is_enough() -> None:
    assert agreement([Interval(1, 2)]) == (0,)


def test_the_majority_wins_wherever_it_stands() -> None:
    assert agreement([Interval(9, 10), Interval(0, 3), Interval(2, 5)]) == (1, 2)


def test_intervals_that_touch_agree() -> None:
    assert agreement([Interval(0, 1), Interval(1, 2)]) == (0, 1)


def test_of_equal_sets_that_of_the_first_wins() -> None:
    assert agreement([Interval(0, 1), Interval(5, 6)]) == (0,)
    split = [Interval(0, 1), Interval(5, 6), Interval(5, 6), Interval(0, 1)]
    assert agreement(split) == (0, 3)


def test_a_wide_interval_can_be_on_both_sides() -> None:
    assert agreement([Interval(0, 9), Interval(0, 1), Interval(8, 9), Interval(8, 8.5)]) == (
        0,
        2,
        3,
    )
