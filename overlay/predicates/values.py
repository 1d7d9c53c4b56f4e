"""What an attribute may be: five kinds of values, each of them a line with exact cuts.

| Kind        | Python               | The domain that the relations are exact for           |
|-------------|----------------------|-------------------------------------------------------|
| number      | `int`, `float`       | the real line: between any two numbers lies a third   |
| text        | `str`                | every Unicode text, ordered by code points            |
| boolean     | `bool`               | two values, without an order                          |
| time of day | `TimeOfDay`          | the 86,400 whole seconds of a day                     |
| date        | `Date`               | whole days, from 0001-01-01 to 9999-12-31             |

Values of two kinds never compare: neither is equal to, unequal to, below or above the other.
An `int` and a `float` are one kind, and compare exactly (2**53 + 1 is not 2.0**53).

A *cut* lies between two neighbours of a line, or before its first or after its last value. So
`> v` begins at the cut after v, and `<= v` ends there; with cuts for bounds every range is
half open, whether its line is dense (numbers), discrete (dates) or neither (after the text "a"
comes "a\\0" at once, but before "b" there is no last text).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date as calendar_date
from typing import Any, TypeAlias

import msgspec

from overlay.errors import LocalProtocolError

MAX_TEXT = 256  # characters of a text value
LEAST_INT, GREATEST_INT = -(2**63), 2**64 - 1  # what MessagePack can carry
SECONDS_OF_DAY = 86_400
GREATEST_CHARACTER = 0x10FFFF
SURROGATES = range(0xD800, 0xE000)  # code points that are no characters: no text holds them


class PredicateError(LocalProtocolError):
    """A predicate, a constraint or an item is not well formed; the message says what would be."""

    def __init__(self, problem: str, position: int | None = None) -> None:
        where = "" if position is None else f"column {position + 1}: "
        super().__init__(where + problem)
        self.position = position  # in the text that was parsed, from 0


class TimeOfDay(msgspec.Struct, frozen=True, array_like=True, tag="time", gc=False):
    """A whole second of any day: `8:00` in the readable form is `TimeOfDay.at(8)`."""

    seconds: int  # since midnight

    @classmethod
    def at(cls, hour: int, minute: int = 0, second: int = 0) -> TimeOfDay:
        """By the clock."""
        if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
            raise PredicateError(
                f"no day has a time {hour}:{minute:02}:{second:02}: 0:00:00 to 23:59:59"
            )
        return cls(hour * 3600 + minute * 60 + second)

    def __str__(self) -> str:
        hour, rest = divmod(self.seconds, 3600)
        minute, second = divmod(rest, 60)
        return f"{hour}:{minute:02}" + (f":{second:02}" if second else "")


class Date(msgspec.Struct, frozen=True, array_like=True, tag="date", gc=False):
    """A day: `2026-12-01` in the readable form is `Date.on(2026, 12, 1)`."""

    ordinal: int  # days; 1 is 0001-01-01

    @classmethod
    def on(cls, year: int, month: int, day: int) -> Date:
        """By the calendar."""
        try:
            return cls(calendar_date(year, month, day).toordinal())
        except ValueError as error:
            raise PredicateError(f"no date {year:04}-{month:02}-{day:02}: {error}") from None

    def __str__(self) -> str:
        return calendar_date.fromordinal(self.ordinal).isoformat()


Value: TypeAlias = bool | int | float | str | TimeOfDay | Date
"""What an attribute of an item may be; a field of a message may have this type."""

Cut: TypeAlias = Any
"""A place between values: compares with the cuts of its own kind alone."""


class Kind:
    """One line of values: where it begins and ends, and the cuts around each of its values."""

    __slots__ = ("after", "before", "bottom", "key", "key_at", "name", "ordered", "top", "value_at")

    def __init__(
        self,
        name: str,
        *,
        ends: tuple[Cut, Cut],
        before: Callable[[Any], Cut],
        after: Callable[[Any], Cut],
        value_at: Callable[[Cut], Value],
        key: Callable[[Any], Any] | None = None,
        key_at: Callable[[Cut], Any],
        ordered: bool = True,
    ) -> None:
        self.name = name
        self.bottom, self.top = ends
        self.before = before
        self.after = after
        self.value_at = value_at  # the value after the cut `before(value)`; else any value
        self.key = key  # sorts values like their cuts, and fast; None: a value is its own key
        self.key_at = key_at  # the key next to a cut: a lower cut never has a greater key
        self.ordered = ordered  # has < and its like

    def __repr__(self) -> str:
        return self.name


NUMBER = Kind(
    "number",
    ends=((-math.inf, 1), (math.inf, 0)),
    before=lambda number: (number, 0),
    after=lambda number: (number, 1),
    value_at=lambda cut: cut[0],
    key_at=lambda cut: cut[0],
)
TEXT = Kind(
    "text",
    ends=((0, ""), (1, "")),
    before=lambda text: (0, text),
    after=lambda text: (0, text + "\0"),
    value_at=lambda cut: cut[1],
    key_at=lambda cut: cut[1],
)
BOOLEAN = Kind(
    "boolean",
    ends=(0, 2),
    before=int,
    after=lambda truth: truth + 1,
    value_at=lambda cut: cut > 0,
    key=int,
    key_at=lambda cut: cut,
    ordered=False,
)
TIME = Kind(
    "time of day",
    ends=(0, SECONDS_OF_DAY),
    before=lambda time: time.seconds,
    after=lambda time: time.seconds + 1,
    value_at=TimeOfDay,
    key=lambda time: time.seconds,
    key_at=lambda cut: cut,
)
DATE = Kind(
    "date",
    ends=(1, calendar_date.max.toordinal() + 1),
    before=lambda date: date.ordinal,
    after=lambda date: date.ordinal + 1,
    value_at=Date,
    key=lambda date: date.ordinal,
    key_at=lambda cut: cut,
)

KINDS: dict[type, Kind] = {
    bool: BOOLEAN,
    int: NUMBER,
    float: NUMBER,
    str: TEXT,
    TimeOfDay: TIME,
    Date: DATE,
}


def kind_of(value: Value) -> Kind:
    """The line on which a checked value lies."""
    return KINDS[type(value)]


def check_value(value: object) -> Value:
    """Return the value if items and predicates may hold it; otherwise PredicateError says why."""
    if isinstance(value, bool):
        return value
    if type(value) is int:
        if not LEAST_INT <= value <= GREATEST_INT:
            raise PredicateError("an integer has over 64 bits: write a larger one as a float")
    elif type(value) is float:
        if not math.isfinite(value):
            raise PredicateError(f"{value} is no number: a value must be finite")
    elif type(value) is str:
        _check_text(value)
    elif type(value) is TimeOfDay:
        if not 0 <= value.seconds < SECONDS_OF_DAY:
            raise PredicateError("a time of day has from 0 to 86,399 seconds")
    elif type(value) is Date:
        if not DATE.bottom <= value.ordinal < DATE.top:
            raise PredicateError("a date lies from 0001-01-01 to 9999-12-31")
    else:
        raise PredicateError(
            f"a value cannot be of type {type(value).__name__}: "
            "use bool, int, float, str, TimeOfDay or Date"
        )
    return value


def after_prefix(prefix: str) -> Cut:
    """The cut after every text that begins with this one."""
    for end in range(len(prefix), 0, -1):
        code = ord(prefix[end - 1])
        if code < GREATEST_CHARACTER:
            following = SURROGATES.stop if code + 1 in SURROGATES else code + 1
            return TEXT.before(prefix[: end - 1] + chr(following))
    return TEXT.top


def _check_text(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise PredicateError(f"a text of {len(text)} characters: at most {MAX_TEXT}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PredicateError("a text holds half of a surrogate pair: no valid Unicode") from None
