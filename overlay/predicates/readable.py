"""The readable form of constraints: `system = "Linux", memory >= 2, available > 8:00`.

    constraint = [ predicate { "," predicate } ]
    predicate  = attribute "present" | attribute "prefix" text | attribute operator value
    operator   = "=" | "!=" | "<" | "<=" | ">" | ">="
    value      = number | text | "true" | "false" | time | date

A text stands in single or double quotes, with the escapes \\\\ \\' \\" \\n \\r \\t \\uXXXX and
\\UXXXXXXXX; a time is H:MM or H:MM:SS, a date YYYY-MM-DD.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from overlay.predicates.predicate import Predicate
from overlay.predicates.spans import OPERATORS, PREFIX, PRESENT
from overlay.predicates.values import Date, PredicateError, TimeOfDay, Value

MAX_LENGTH = 256 * 1024  # characters: every constraint fits, were all of its texts escaped
LONGEST_NUMBER = 400  # characters: the longest float has fewer, and Python refuses over 4,300

_SPACE = re.compile(r"\s*")
_ATTRIBUTE = re.compile(r"[^\W\d][\w.-]*")
_OPERATOR = re.compile(r"[=<>!~≤≥≠&|]+|[^\W\d]\w*")
_WORD = re.compile(r"[^\s,'\"]+")
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_FLOAT = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_TIME = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?", re.ASCII)
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([nrt\\'\"]))")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_UNESCAPED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", '"': '\\"'}
_MEANT = {"==": "=", "is": "=", "=<": "<=", "≤": "<=", "=>": ">=", "≥": ">="}
_MEANT |= {"<>": "!=", "≠": "!=", "exists": PRESENT, "startswith": PREFIX}
_EXAMPLES = 'such as 2, 1.5, "Linux", true, 8:00 or 2026-12-01'


def readable(predicate: Predicate) -> str:
    """One predicate as `parse_predicates` reads it."""
    if predicate.value is None:
        return f"{predicate.attribute} {predicate.operator}"
    return f"{predicate.attribute} {predicate.operator} {literal(predicate.value)}"


def literal(value: Value) -> str:
    """One value as `parse_predicates` reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{"".join(map(_quoted, value))}"'
    return str(value)


def parse_predicates(text: str) -> Iterator[tuple[Predicate, int]]:
    """Each predicate of a text, and where it begins.

    PredicateError says where the text is wrong and what would be right.
    """
    if len(text) > MAX_LENGTH:
        raise PredicateError(f"a constraint of {len(text)} characters: at most {MAX_LENGTH}")
    return _Parser(text).predicates()


class _Parser:
    """Reads from left to right; `at` is where it is."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def predicates(self) -> Iterator[tuple[Predicate, int]]:
        self._skip()
        while self.at < len(self.text):
            start = self.at
            yield self._predicate(), start
            self._skip()
            if self.at == len(self.text):
                return
            if not self.text.startswith(",", self.at):
                raise self._wrong("a comma between predicates")
            self.at += 1
            self._skip()
            if self.at == len(self.text):
                raise self._wrong("a predicate after the comma")

    def _predicate(self) -> Predicate:
        start = self.at
        name = self._take(_ATTRIBUTE)
        if not name:
            raise self._wrong("the name of an attribute")
        operator = self._operator()
        value = None if operator == PRESENT else self._value(operator)
        try:
            return Predicate(name, operator, value).check()
        except PredicateError as error:
            raise PredicateError(str(error), start) from None

    def _operator(self) -> str:
        self._skip()
        start = self.at
        operator = self._take(_OPERATOR)
        if operator in OPERATORS:
            return operator
        self.at = start
        meant = f": write {_MEANT[operator]}" if operator in _MEANT else ""
        raise self._wrong(f"an operator ({' '.join(OPERATORS)})", meant)

    def _value(self, operator: str) -> Value:
        self._skip()
        if self.text.startswith(("'", '"'), self.at):
            return self._quoted_text()
        start = self.at
        word = self._take(_WORD)
        try:
            value = _plain_value(word)
        except PredicateError as error:
            raise PredicateError(str(error), start) from None
        if value is None:
            self.at = start
            meant = f': write "{word[:32]}"' if _ATTRIBUTE.fullmatch(word) else ""
            raise self._wrong(f"a value after {operator}, {_EXAMPLES}", meant)
        return value

    def _quoted_text(self) -> str:
        start, quote = self.at, self.text[self.at]
        self.at += 1
        parts: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == quote:
                self.at += 1
                return "".join(parts)
            if char == "\\":
                char = self._escaped()
            else:
                self.at += 1
            parts.append(char)
        raise PredicateError(f"the text that begins here has no closing {quote}", start)

    def _escaped(self) -> str:
        found = _ESCAPE.match(self.text, self.at)
        if not found:
            raise self._wrong("an escape (\\n \\r \\t \\\\ \\' \\\" \\uXXXX \\UXXXXXXXX)")
        code, plain = found[1] or found[2], found[3]
        if code and int(code, 16) > 0x10FFFF:
            raise PredicateError(f"there is no character {found[0]}", self.at)
        self.at = found.end()
        return chr(int(code, 16)) if code else _ESCAPED.get(plain, plain)

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if not found:
            return ""
        self.at = found.end()
        return found[0]

    def _skip(self) -> None:
        self._take(_SPACE)

    def _wrong(self, expected: str, hint: str = "") -> PredicateError:
        found = _WORD.match(self.text, self.at)
        word = found[0] if found else self.text[self.at : self.at + 1]
        there = f"{word[:32]!r}" if word else "the end"
        return PredicateError(f"expected {expected}, found {there}{hint}", self.at)


def _plain_value(word: str) -> Value | None:
    """What a word without quotes stands for; None if for no value."""
    if word in ("true", "false"):
        return word == "true"
    if len(word) > LONGEST_NUMBER:
        return None
    if _INTEGER.fullmatch(word):
        return int(word)
    if _FLOAT.fullmatch(word):
        number = float(word)
        if not math.isfinite(number):
            raise PredicateError(f"{word[:32]} is too large for a float")
        return number
    if found := _TIME.fullmatch(word):
        return TimeOfDay.at(int(found[1]), int(found[2]), int(found[3] or 0))
    if found := _DATE.fullmatch(word):
        return Date.on(int(found[1]), int(found[2]), int(found[3]))
    return None


def _quoted(char: str) -> str:
    if char in _UNESCAPED:
        return _UNESCAPED[char]
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
