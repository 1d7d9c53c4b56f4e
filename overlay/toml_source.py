"""Where settings come from: TOML files and `section.key=value` words of a command line."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from overlay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FILE_BYTES = 1 << 20  # no config written by people is longer: a wrong file fails at once
_AT_LINE = re.compile(r"(?P<what>.*) \(at line (?P<line>\d+), column (?P<column>\d+)\)")


@dataclass(frozen=True, slots=True)
class Typed:
    """A value as typed after `--set`: TOML where it reads as TOML, otherwise plain text."""

    text: str

    def readings(self) -> tuple[object, ...]:
        """What it may mean, likeliest first: `7` is a number, but may be a name as well."""
        try:
            document = tomllib.loads(f"value = {self.text}")
        except (ValueError, RecursionError):
            return (self.text,)
        if document.keys() != {"value"}:  # a line break smuggled further keys in
            return (self.text,)
        return (document["value"], self.text)


@dataclass(frozen=True, slots=True)
class Source:
    """Some settings of one origin, not yet checked; a later source wins over an earlier one."""

    origin: str  # what an error line names: a file, or the word after --set
    tables: Mapping[str, object]
    skips_unknown_sections: bool = False  # a profile serves nodes that run other protocols


def read_toml(path: str | Path) -> Source:
    """Read one TOML file; every way in which that fails is one line with file and reason."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file: check the path") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if len(raw) > FILE_BYTES:
        raise ConfigError(f"{path}: longer than {FILE_BYTES} bytes: this is no config file")
    try:
        return Source(str(path), parse_toml(raw.decode()))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}: line {line}: not UTF-8: save it as UTF-8 text") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse_toml(text: str) -> dict[str, object]:
    """Parse TOML; ConfigError reads `line L, column C: what is wrong`."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError("nested too deeply: settings need two levels") from None
    except ValueError as error:  # TOMLDecodeError, and what int() and the calendar refuse
        found = _AT_LINE.fullmatch(str(error))
        if found:
            raise ConfigError(
                f"line {found['line']}, column {found['column']}: broken TOML: {found['what']}"
            ) from None
        last = max(1, len(text.splitlines()))
        what = str(error).removesuffix(" (at end of document)")
        raise ConfigError(f"line {last}: broken TOML: {what}") from None


def overrides(words: Iterable[str], origin: str = "--set") -> list[Source]:
    """The sources for `--set section.key=value`, one for each word."""
    return [_override(word, origin) for word in words]


def _override(word: str, origin: str) -> Source:
    dotted, equals, text = word.partition("=")
    section, dot, key = dotted.strip().rpartition(".")
    if not (equals and dot and section and key):
        raise ConfigError(
            f"{origin} {word[:80]!a}: write it as section.key=value, like net.heartbeat=5"
        )
    return Source(origin, {section: {key: Typed(text.strip())}})
