"""The address book: what works comes first, and only what a peer told of itself is tried."""

from __future__ import annotations

import pytest

from overlay.net.addresses import Endpoint, parse_endpoint
from overlay.net.book import AddressBook

WEST = parse_endpoint("10.1.0.1:7400")
EAST = parse_endpoint("10.2.0.1:7400")
SIX = parse_endpoint("[fd00::1]:7400")


@pytest.fixture
def book() -> AddressBook:
    known = AddressBook(size=2)
    known.learn("ada", [WEST, EAST, WEST])
    return known


def test_the_order_is_as_told_until_something_is_proven(book: AddressBook) -> None:
    assert book["ada"] == (WEST, EAST)
    assert book.prove("ada", "10.2.0.1")
    assert book["ada"] == (EAST, WEST)


def test_what_is_proven_outlives_what_is_told_again(book: AddressBook) -> None:
    book.prove("ada", "10.2.0.1")
    moved = EAST._replace(port=7500)  # restarted at another port of the same host
    book.learn("ada", [WEST, moved])
    assert book["ada"] == (moved, WEST)


def test_an_address_that_is_told_no_more_is_gone(book: AddressBook) -> None:
    book.prove("ada", "10.2.0.1")
    book.learn("ada", [WEST])
    assert book["ada"] == (WEST,)


@pytest.mark.parametrize("host", ["10.9.0.1", "", "not an address"])
def test_an_address_that_was_never_told_proves_nothing(book: AddressBook, host: str) -> None:
    assert not book.prove("ada", host)
    assert not book.prove("bob", host)
    assert book["ada"] == (WEST, EAST)
    assert book["bob"] == ()


@pytest.mark.parametrize(
    ("seen", "first"), [("::ffff:10.2.0.1", EAST), ("fd00:0:0::1", SIX), ("fd00::1", SIX)]
)
def test_a_socket_may_spell_an_address_otherwise(
    book: AddressBook, seen: str, first: Endpoint
) -> None:
    book.learn("ada", [WEST, EAST, SIX])
    assert book.prove("ada", seen)
    assert book["ada"][0] == first


def test_who_tells_nothing_changes_nothing(book: AddressBook) -> None:
    book.learn("ada", [])
    book.learn("bob", [])
    assert book["ada"] == (WEST, EAST)
    assert "bob" not in book


def test_a_full_book_forgets_the_oldest_and_counts_it(book: AddressBook) -> None:
    book.prove("ada", "10.2.0.1")
    book.learn("bob", [WEST])
    book.learn("cyd", [WEST])
    assert ("ada" in book, "bob" in book, "cyd" in book) == (False, True, True)
    assert book.forgotten == 1
    book.learn("ada", [WEST, EAST])
    assert book["ada"] == (WEST, EAST)
