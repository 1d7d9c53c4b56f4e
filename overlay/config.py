"""Settings: frozen structs whose every field has a default, a unit, bounds and a reason.

A protocol declares what can be set:

    class EchoSettings(Settings, frozen=True, kw_only=True):
        interval: Annotated[float, bounded("s", 0.01, 3600, "pause between two requests")] = 1.0

and `load_settings` fills it from profile, files and command line, the last one winning. An
instance that exists is valid, however it was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import NamedTuple

import msgspec

from overlay.errors import ConfigError
from overlay.setting_fields import Field, fields_of, shown
from overlay.toml_source import Source, Typed


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all settings; a subclass repeats `frozen=True, kw_only=True`."""

    def __post_init__(self) -> None:
        for name, field in fields_of(type(self)).items():
            value = getattr(self, name)
            try:
                msgspec.convert(value, field.annotation)
            except msgspec.ValidationError as error:
                raise ConfigError(
                    f"{type(self).__name__}.{name} = {shown(value)}: {field.wanted(error)}"
                ) from None
        self.check()

    def check(self) -> None:
        """Raise ConfigError when fields that are fine alone do not fit together."""


def bounded(unit: str, low: float, high: float, why: str) -> msgspec.Meta:
    """Annotate a number: its unit, the range that can work, and why it exists."""
    return msgspec.Meta(ge=low, le=high, description=why, extra={"unit": unit})


def sized(low: int, high: int, why: str) -> msgspec.Meta:
    """Annotate text or a list: how long it may be, and why it exists."""
    return msgspec.Meta(min_length=low, max_length=high, description=why)


def because(why: str) -> msgspec.Meta:
    """Annotate a switch or a choice, which bounds itself, with why it exists."""
    return msgspec.Meta(description=why)


class SettingRow(NamedTuple):
    """One line of `overlay config show`."""

    key: str
    default: object
    unit: str
    bounds: str
    reason: str


def describe(sections: Mapping[str, type[Settings]]) -> Iterator[SettingRow]:
    """Everything that can be set, in the order of its declaration."""
    for section, kind in sections.items():
        for name, field in fields_of(kind).items():
            yield SettingRow(
                f"{section}.{name}", field.default(), field.unit, field.bounds, field.reason
            )


def load_settings(sections: Mapping[str, type[Settings]], *sources: Source) -> dict[str, Settings]:
    """Merge the sources over the defaults, later ones winning; every section is in the result."""
    for kind in sections.values():
        fields_of(kind)  # a careless declaration shows before any value of a user is blamed
    merged: dict[str, dict[str, object]] = {section: {} for section in sections}
    origins: dict[str, dict[str, None]] = {section: {} for section in sections}
    for source in sources:
        for section, table in source.tables.items():
            if section not in sections and source.skips_unknown_sections:
                continue
            for key, value in _keys(source, section, table, sections):
                field = fields_of(sections[section])[key]
                merged[section][key] = _value(source, f"{section}.{key}", value, field)
                origins[section][source.origin] = None
    loaded: dict[str, Settings] = {}
    for section, kind in sections.items():
        try:
            loaded[section] = kind(**merged[section])
        except ConfigError as error:
            where = ", ".join(origins[section]) or "defaults"
            raise ConfigError(f"{where}: [{section}]: {error}") from None
    return loaded


def _keys(
    source: Source, section: str, table: object, sections: Mapping[str, type[Settings]]
) -> Iterator[tuple[str, object]]:
    """The keys of one section, each known to exist."""
    if not isinstance(table, Mapping):
        home = [name for name, kind in sections.items() if section in fields_of(kind)]
        raise ConfigError(
            f"{source.origin}: {_shown_key(section)} = {shown(table)}: outside of any section: "
            + (f"move it below [{home[0]}]" if home else f"use one of {_listed(sections)}")
        )
    if section not in sections:
        raise ConfigError(
            f"{source.origin}: [{_shown_key(section)}]: no such section: "
            + _nearest(section, sections)
        )
    known = fields_of(sections[section])
    for key, value in table.items():
        if key not in known:
            raise ConfigError(
                f"{source.origin}: {section}.{_shown_key(key)} = {shown(_plain(value))}: "
                f"no such key: {_nearest_key(section, key, sections)}"
            )
        yield key, value


def _value(source: Source, dotted: str, value: object, field: Field) -> object:
    """The value as its field's type, or one line that says what would be right."""
    readings = value.readings() if isinstance(value, Typed) else (value,)
    refusals: list[msgspec.ValidationError] = []
    for reading in readings:
        try:
            return msgspec.convert(reading, field.annotation)
        except msgspec.ValidationError as error:
            refusals.append(error)
    raise ConfigError(
        f"{source.origin}: {dotted} = {shown(readings[0])}: {field.wanted(refusals[0])}"
    )


def _plain(value: object) -> object:
    return value.readings()[0] if isinstance(value, Typed) else value


def _shown_key(key: str) -> str:
    """A key as an error line shows it: short and printable."""
    return ascii(key[:60])[1:-1]


def _nearest(word: str, known: Iterable[str], prefix: str = "") -> str:
    known = list(known)
    close = get_close_matches(word[:60], known, n=1)
    return f"did you mean {prefix}{close[0]}?" if close else f"use one of {_listed(known)}"


def _nearest_key(section: str, key: str, sections: Mapping[str, type[Settings]]) -> str:
    """Prefer the same key of another section to a like key of this one."""
    for other, kind in sections.items():
        if key in fields_of(kind):
            return f"did you mean {other}.{key}?"
    return _nearest(key, fields_of(sections[section]), f"{section}.")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none: nothing can be set here"
