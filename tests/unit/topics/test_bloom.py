"""Filters: never a wrong no, a measured share of wrong yes, and a text that fits."""

from __future__ import annotations

import pytest

from protocols.topics.bloom import CountingFilter, Shape, read_slice, shape_for
from protocols.topics.names import hash_of

VALUE_BYTES = 1024


def hashes(count: int, prefix: str = "t") -> list[int]:
    return [hash_of(f"{prefix}/{number}") for number in range(count)]


def filled(topics: list[int], slices: int = 4) -> CountingFilter:
    made = CountingFilter(shape_for(len(topics), VALUE_BYTES, slices))
    for hashed in topics:
        made.add(hashed)
    return made


def says_yes(texts: list[str], hashed: int) -> bool:
    slices = [read_slice(text) for text in texts]
    (covering,) = (part for part in slices if part is not None and part.covers(hashed))
    return covering.holds(hashed)


@pytest.mark.parametrize(
    ("topics", "shape"),
    [
        (1, Shape(1, 6)),
        (86, Shape(1, 96)),
        (384, Shape(1, 384)),
        (765, Shape(1, 765)),
        (766, Shape(2, 765)),
        (3_060, Shape(4, 765)),
        (10_000, Shape(4, 765)),
    ],
)
def test_shapes_double_up_to_what_fits(topics: int, shape: Shape) -> None:
    assert shape_for(topics, VALUE_BYTES, 4) == shape


@pytest.mark.parametrize("value_bytes", [16, 17, 100, 683, 1024, 16_384])
@pytest.mark.parametrize("slices", [1, 2, 4, 8, 16])
def test_a_text_fits_and_uses_the_room(value_bytes: int, slices: int) -> None:
    largest = CountingFilter(shape_for(1_000_000, value_bytes, slices))
    longest = max(map(len, largest.texts()))
    assert value_bytes - 4 < longest <= value_bytes
    assert len(largest.texts()) == slices


# Measured on 50,000 others: 3.2, 3.1, 3.1 and 34.5 %. In theory, (1 - e^(-3 n / bits))^3, it is
# 3.1 % three times, and 35.2 %: 10,000 topics have 2.4 bits each in the 3 kB that are allowed.
@pytest.mark.parametrize(
    ("topics", "least", "most"),
    [(96, 0.02, 0.04), (765, 0.02, 0.04), (3_060, 0.025, 0.04), (10_000, 0.30, 0.40)],
)
def test_how_often_it_says_yes_wrongly(topics: int, least: float, most: float) -> None:
    inside = hashes(topics)
    texts = filled(inside).texts()
    assert all(says_yes(texts, hashed) for hashed in inside)
    wrong = sum(says_yes(texts, hashed) for hashed in hashes(5_000, "other"))
    assert least < wrong / 5_000 < most


def test_what_is_taken_out_leaves_no_trace() -> None:
    staying, going = hashes(300), hashes(300, "going")
    changed = filled(staying + going)
    again = CountingFilter(changed.shape)
    for hashed in going:
        changed.remove(hashed)
    for hashed in staying:
        again.add(hashed)
    assert changed.texts() == again.texts()


def test_a_topic_changes_one_slice_only() -> None:
    held = filled(hashes(3_000))
    before = held.texts()
    held.add(hash_of("one more topic"))
    assert sum(a != b for a, b in zip(before, held.texts(), strict=True)) == 1


@pytest.mark.parametrize(
    "text",
    [
        *("", "0/1", "0/1:", ":AAAA", "0/1:A", "0/1:AAAAA", "0/1:AA=A", "0/1:A A=", "0/1:ÄÄÄÄ"),
        *("1/1:AAAA", "4/4:AAAA", "0/3:AAAA", "0/0:AAAA", "0/32:AAAA", "-1/4:AAAA", "0/1:AAAA\n"),
        *("٠/1:AAAA", "0/1:AA+/", "0/1:AAAA,AAAA", "0" * 5_000 + "/1:AAAA"),
    ],
)
def test_other_texts_are_no_slices(text: str) -> None:
    assert read_slice(text) is None
