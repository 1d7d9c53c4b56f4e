"""What a declared setting tells about itself, in a user's words: type, bounds, unit, reason."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, get_type_hints

import msgspec
from msgspec import inspect

from overlay.errors import InvariantViolation

_PATH = re.compile(r" - at `\$(?P<path>.+)`$")
_VALUE_CHARACTERS = 60  # of a wrong value that an error line repeats


@dataclass(frozen=True, slots=True)
class Field:
    """One setting as its struct declares it."""

    annotation: Any
    kind: inspect.Type
    unit: str
    reason: str
    declared: inspect.Field

    def default(self) -> Any:
        """What holds when nobody sets it."""
        if self.declared.default is not msgspec.NODEFAULT:
            return self.declared.default
        return self.declared.default_factory()

    @property
    def bounds(self) -> str:
        """The values that can work: `0.1 to 3600`, `true or false`."""
        if isinstance(self.kind, inspect.IntType | inspect.FloatType):
            low, high = _range(self.kind)
            return f"{_number(low)} to {_number(high)}"  # the unit has a column of its own
        return _words(self.kind, self.unit)

    def wanted(self, refusal: msgspec.ValidationError) -> str:
        """What would have been right, and where inside of the value it was not."""
        line = f"must be {_words(self.kind, self.unit)}"
        inside = _PATH.search(str(refusal))
        return f"{line} (wrong at {inside['path']})" if inside else line


@cache
def fields_of(kind: type[msgspec.Struct]) -> Mapping[str, Field]:
    """The settings of a struct by name; a careless declaration is our own fault."""
    hints = get_type_hints(kind, include_extras=True)
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return MappingProxyType(
        {
            declared.name: _field(f"{kind.__name__}.{declared.name}", declared, hints)
            for declared in info.fields
        }
    )


def _field(label: str, declared: inspect.Field, hints: Mapping[str, Any]) -> Field:
    kind, unit, reason = declared.type, "", ""
    if isinstance(kind, inspect.Metadata):
        unit = (kind.extra or {}).get("unit", "")
        reason = (kind.extra_json_schema or {}).get("description", "")
        kind = kind.type
    if declared.required:
        raise InvariantViolation(f"setting {label} has no default: a node must start without files")
    if not reason:
        raise InvariantViolation(f"setting {label} has no reason: annotate it by overlay.config")
    field = Field(hints[declared.name], kind, unit, reason, declared)
    low, high = _range(kind)
    if isinstance(kind, (inspect.IntType, inspect.FloatType)) and not (
        unit and low is not None and high is not None
    ):
        raise InvariantViolation(f"number {label} needs bounded(unit, low, high, why)")
    try:
        msgspec.convert(field.default(), field.annotation)
    except msgspec.ValidationError as error:
        raise InvariantViolation(f"the default of setting {label}: {error}") from None
    return field


def shown(value: object) -> str:
    """A value as TOML would write it, on one line and never long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{...}"
    text = ascii(value)
    return text if len(text) <= _VALUE_CHARACTERS else text[:_VALUE_CHARACTERS] + "..."


def _words(kind: inspect.Type, unit: str = "") -> str:
    """Name a type as people do who never saw Python."""
    match kind:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return "a whole number" + _from_to(kind, unit)
        case inspect.FloatType():
            return "a number" + _from_to(kind, unit)
        case inspect.StrType():
            return "text in quotes" + _from_to(kind, "characters", "of")
        case inspect.LiteralType(values=values):
            return "one of " + ", ".join(shown(value) for value in values)
        case inspect.EnumType(cls=choices):
            return "one of " + ", ".join(shown(choice.value) for choice in choices)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return f"a list [...]{_from_to(kind, 'items', 'of')}, each {_words(item)}"
        case inspect.DictType(value_type=item):
            return f"a table of values, each {_words(item)}"
        case inspect.StructType(fields=fields):
            return "a table with " + ", ".join(field.name for field in fields)
        case inspect.UnionType(types=kinds):
            parts = (_words(part, unit) for part in kinds if not isinstance(part, inspect.NoneType))
            return ", or ".join(parts)  # TOML has no null: leaving a key out means None
        case inspect.Metadata(type=inner, extra=extra):
            return _words(inner, (extra or {}).get("unit", unit))
        case _:
            return f"a {type(kind).__name__.removesuffix('Type').lower()}"


def _from_to(kind: inspect.Type, unit: str, preposition: str = "from") -> str:
    low, high = _range(kind)
    if low is None or high is None:
        return ""
    return f" {preposition} {_number(low)} to {_number(high)} {unit}".rstrip()


def _range(kind: inspect.Type) -> tuple[float | None, float | None]:
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return kind.ge, kind.le
    if isinstance(kind, inspect.StrType | inspect.ListType | inspect.VarTupleType):
        return kind.min_length, kind.max_length
    return None, None


def _number(value: float | None) -> str:
    """A bound without a needless `.0`."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
