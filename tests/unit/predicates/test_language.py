"""The readable form, its errors, the normal form, and what is refused."""

from __future__ import annotations

import math

import msgspec
import pytest

from overlay.errors import RemoteProtocolError
from overlay.predicates import (
    MAX_ATTRIBUTE,
    MAX_ATTRIBUTES,
    MAX_PREDICATES,
    MAX_TEXT,
    Constraint,
    Date,
    Predicate,
    PredicateError,
    TimeOfDay,
    Value,
    WireConstraint,
    check_item,
    item_from_wire,
    matches,
)


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ('system = "Linux", memory >= 2', 'memory >= 2, system = "Linux"'),
        ("a>10,a<50, a!=20", "a > 10, a < 50, a != 20"),
        ("a >= 3, a != 3, a < 9, a > 1", "a > 3, a < 9"),
        ("a >= 3, a <= 3.0", "a = 3"),
        ("a > 3, a < 4", "a > 3, a < 4"),
        ("b != true", "b = false"),
        ("gpu present, gpu = 'A100'", 'gpu = "A100"'),
        ("available > 8:00, available < 15:00:00", "available > 8:00, available < 15:00"),
        ("available > 7:59:59", "available >= 8:00"),
        ("until > 2026-11-30, until < 2026-12-02", "until = 2026-12-01"),
        ('s prefix "ab", s >= "abc"', 's >= "abc", s < "ac"'),
        ('s >= "ab", s < "ac"', 's prefix "ab"'),
        ('s > "a", s <= "a\\u0000"', 's = "a\\u0000"'),
        ("s = 'it\\'s \"\\t\"'", 's = "it\'s \\"\\t\\""'),
        ("x = -1.5e3, y = +7", "x = -1500.0, y = 7"),
        ("", ""),
    ],
)
def test_the_readable_form_is_normal(written: str, normal: str) -> None:
    constraint = Constraint.parse(written)
    assert str(constraint) == normal
    assert Constraint.parse(normal) == constraint


def test_the_forms_of_one_constraint_are_equal() -> None:
    parsed = Constraint.parse('system = "Linux", memory >= 2, until <= 2026-12-01, at = 8:30')
    built = Constraint.of(
        Predicate("memory", ">=", 2.0),
        Predicate("until", "<=", Date.on(2026, 12, 1)),
        Predicate("at", "=", TimeOfDay.at(8, 30)),
        Predicate("system", "=", "Linux"),
    )
    assert parsed == built
    assert hash(parsed) == hash(built)
    assert repr(parsed) == f"Constraint.parse({str(parsed)!r})"
    assert len({parsed, built, Constraint.parse("")}) == 2
    assert parsed != "system"


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ("a > 10, a < 5", "column 9: a < 5 contradicts a > 10: no value satisfies both"),
        ("a = 1, a = '1'", 'column 8: a = "1" contradicts a = 1: no value satisfies both'),
        ("b != true, b != false", "column 12: b != false contradicts b = false: "),
        ('s > "a", s < "a\\u0000"', 'column 10: s < "a\\u0000" contradicts s > "a": '),
        ("d > 9999-12-31", "column 1: nothing can satisfy d > 9999-12-31"),
        ("t < 0:00", "column 1: nothing can satisfy t < 0:00"),
        ("a >", "column 4: expected a value after >, such as 2"),
        ("a == 3", "column 3: expected an operator (= != < <= > >= present prefix), found '==': "),
        ("system = Linux", "found 'Linux': write \"Linux\""),
        (", a = 3", "column 1: expected the name of an attribute, found ','"),
        ("3 = a", "column 1: expected the name of an attribute, found '3'"),
        ("a = 3,", "column 7: expected a predicate after the comma, found the end"),
        ("a = 3 and b = 4", "column 7: expected a comma between predicates, found 'and'"),
        ('a = "x', 'column 5: the text that begins here has no closing "'),
        ('a = "\\q"', "column 6: expected an escape"),
        ('a = "\\U00110000"', "column 6: there is no character \\U00110000"),
        ('a = "\\ud800"', "a text holds half of a surrogate pair"),
        ("a < true", "column 1: a: a boolean has no order: use = or !="),
        ("a prefix 3", "column 1: a: 'prefix' needs a text, not a number"),
        ("a = nan", "expected a value after =, such as 2"),
        ("a = 1e999", "column 5: 1e999 is too large for a float"),
        ("a = 18446744073709551616", "an integer has over 64 bits"),
        ("a = " + "9" * 500, "expected a value after ="),
        ("a = 25:00", "column 5: no day has a time 25:00:00"),
        ("a = 2026-02-30", "column 5: no date 2026-02-30"),
        ("x" * 65 + " = 1", "has 65 characters: at most 64"),
        ("a = '" + "x" * 257 + "'", "a text of 257 characters: at most 256"),
    ],
)
def test_errors_say_where_and_what_would_be_right(written: str, error: str) -> None:
    with pytest.raises(PredicateError) as raised:
        Constraint.parse(written)
    assert error in str(raised.value)


@pytest.mark.parametrize(
    ("predicate", "error"),
    [
        (Predicate("a", "~", 1), "a: no operator '~'"),
        (Predicate("a", "present", 1), "a: 'present' takes no value"),
        (Predicate("a", "="), "a: '=' needs a value"),
        (Predicate("a", "=", math.nan), "a: nan is no number"),
        (Predicate("a", "<", math.inf), "a: inf is no number"),
        (Predicate("a", "=", 2**64), "a: an integer has over 64 bits"),
        (Predicate("a", "=", b"x"), "a: a value cannot be of type bytes"),  # type: ignore[arg-type]
        (Predicate("a", "=", TimeOfDay(86_400)), "a: a time of day has from 0 to 86,399 seconds"),
        (Predicate("a", "=", Date(0)), "a: a date lies from 0001-01-01 to 9999-12-31"),
        (Predicate("a b", "=", 1), "an attribute cannot be called 'a b'"),
        (Predicate("x" * 2**20, "=", 1), "the name of an attribute has 1048576 characters"),
        (Predicate(3, "=", 1), "the name of an attribute is a str, not int"),  # type: ignore[arg-type]
    ],
)
def test_a_bad_predicate_is_our_error_or_the_peers(predicate: Predicate, error: str) -> None:
    with pytest.raises(PredicateError, match="^" + error):
        Constraint.of(predicate)
    with pytest.raises(RemoteProtocolError, match=f"^bad-constraint: {error}"):
        Constraint.from_wire((predicate,))


def test_a_million_predicates_are_refused() -> None:
    many = [Predicate("a", "!=", n) for n in range(1_000_000)]
    with pytest.raises(PredicateError, match=f"over {MAX_PREDICATES} predicates"):
        Constraint.of(*many)
    sent = msgspec.msgpack.encode(many[: MAX_PREDICATES + 1])
    with pytest.raises(msgspec.ValidationError, match=f"length <= {MAX_PREDICATES}"):
        msgspec.msgpack.decode(sent, type=WireConstraint)


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ({"a": math.nan}, "a: nan is no number"),
        ({"a": None}, "a: a value cannot be of type NoneType"),
        ({"a": "x" * 2000}, "a: a text of 2000 characters"),
        ({"": 1}, "an attribute cannot be called ''"),
        ({"x" * (MAX_ATTRIBUTE + 1): 1}, "has 65 characters"),
        ({f"a{n}": n for n in range(MAX_ATTRIBUTES + 1)}, "an item of 65 attributes: at most 64"),
    ],
)
def test_a_bad_item_is_our_error_or_the_peers(item: dict[str, Value], error: str) -> None:
    with pytest.raises(PredicateError, match=error):
        check_item(item)
    with pytest.raises(RemoteProtocolError, match=r"^bad-item: "):
        item_from_wire(item)


def test_items_travel_with_their_times_and_dates() -> None:
    item = check_item({"at": TimeOfDay.at(8, 30), "until": Date.on(2026, 12, 1), "n": 1, "f": 1.0})
    sent = msgspec.msgpack.encode(item)
    assert msgspec.msgpack.decode(sent, type=dict[str, Value]) == item
    assert matches(item, Constraint.parse("at > 8:00, until <= 2026-12-01, n = 1.0"))
    assert not matches(item, Constraint.parse("at present, until > 8:00"))


def test_integers_and_floats_compare_exactly() -> None:
    assert not matches({"a": 2**53 + 1}, Constraint.parse("a <= 9007199254740992.0"))
    assert matches({"a": 2**53}, Constraint.parse("a = 9007199254740992.0"))


def test_a_value_of_another_kind_satisfies_only_presence() -> None:
    for written in ("a != 3", "a < 3", "a = 3", "a prefix ''", "a != 8:00", "a >= 0001-01-01"):
        assert not matches({"a": True}, Constraint.parse(written))
    assert matches({"a": True}, Constraint.parse("a present"))


def test_the_largest_constraint_comes_back_from_its_readable_form() -> None:
    names = [f"{'n' * (MAX_ATTRIBUTE - 2)}{n:02}" for n in range(MAX_PREDICATES)]
    largest = Constraint.of(*(Predicate(name, "!=", "\U0010ffff" * MAX_TEXT) for name in names))
    assert Constraint.parse(str(largest)) == largest
