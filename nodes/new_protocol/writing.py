"""Fills the templates in for one name, and takes the next free block of tags for it."""

import keyword
import re
import shutil
import tomllib
from pathlib import Path
from string import Template
from typing import Any

import msgspec

from overlay.errors import ConfigError
from overlay.toml_source import parse_toml

TEMPLATES = Path(__file__).parent / "templates"
TEST_TEMPLATE = "test.py.tmpl"
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
LONGEST_NAME = 20  # with more, lines of the templates would be longer than the linter takes
BLOCK = 16  # tags that one protocol gets
THIRD_PARTIES_FROM = 10_000  # tags from here on are theirs


class Written(msgspec.Struct, frozen=True):
    """What was written, as paths below the clone, and the first tag of the protocol's block."""

    name: str
    class_name: str
    files: list[str]
    first_tag: int


def write_protocol(root: Path, name: str) -> Written:
    """Write protocols/NAME and tests/unit/test_NAME.py, and pin the tags; nothing is replaced."""
    _check_name(name)
    tags_file = root / "protocols" / "tags.toml"
    if not tags_file.is_file():
        raise ConfigError(f"{root} is no clone of zmq-overlay: go into one, or name it by --folder")
    folder = root / "protocols" / name
    test = root / "tests" / "unit" / f"test_{name}.py"
    for path in (folder, test):
        if path.exists():
            raise ConfigError(f"{path.relative_to(root)} is there already: choose another name")
    tags = tags_file.read_text(encoding="utf-8")
    first_tag, pinned = _pin(tags, name)
    words = {
        "name": name,
        "Name": _class_name(name),
        "request_tag": str(first_tag),
        "reply_tag": str(first_tag + 1),
    }
    unfinished = folder.with_name(f".{name}.new")
    unfinished.mkdir()
    try:
        for template in sorted(TEMPLATES.glob("*.tmpl")):
            if template.name != TEST_TEMPLATE:
                target = unfinished / template.name.removesuffix(".tmpl")
                target.write_text(_filled(template, words), encoding="utf-8")
        test.parent.mkdir(parents=True, exist_ok=True)
        test.write_text(_filled(TEMPLATES / TEST_TEMPLATE, words), encoding="utf-8")
        unfinished.rename(folder)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        test.unlink(missing_ok=True)
        raise ConfigError(f"{error.filename}: cannot be written: {error.strerror}") from None
    tags_file.write_text(pinned, encoding="utf-8")
    files = [*sorted(folder.iterdir()), test, tags_file]
    return Written(
        name, words["Name"], [path.relative_to(root).as_posix() for path in files], first_tag
    )


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name) or keyword.iskeyword(name) or len(name) > LONGEST_NAME:
        raise ConfigError(
            f"protocol name {name[:60]!a}: write small letters, digits and single underscores, like"
            f" ping_pong; at most {LONGEST_NAME}, a letter first, and no word of Python itself"
        )


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _filled(template: Path, words: dict[str, str]) -> str:
    return Template(template.read_text(encoding="utf-8")).substitute(words)


def _pin(text: str, name: str) -> tuple[int, str]:
    """The protocol's first tag, and tags.toml with its messages in it."""
    tables: dict[str, Any] = parse_toml(text)
    entry = tables.get(name)
    if entry is None:
        taken = [block for table in tables.values() for block in table.get("blocks", ())]
        first = max(taken, default=0) + BLOCK
        if first >= THIRD_PARTIES_FROM:
            raise ConfigError(f"protocols/tags.toml has no free block below {THIRD_PARTIES_FROM}")
        added = f"\n[{name}]\nblocks = [{first}]\nretired = []\n{_lines(name, first)}"
        return first, text.rstrip("\n") + "\n" + added
    used = [key for key in entry if key not in ("blocks", "retired")]
    if used or entry.get("retired") or not entry.get("blocks"):
        raise ConfigError(f"protocols/tags.toml pins tags of {name} already: choose another name")
    first = entry["blocks"][0]  # a block that was reserved for this name
    table = re.compile(rf"^\[{name}\]\n(?:(?!\[).*\n)*?retired = \[\]\n", re.MULTILINE)
    filled, count = table.subn(lambda found: found[0] + _lines(name, first), text + "\n", count=1)
    if not count:
        raise ConfigError(f"protocols/tags.toml: [{name}] needs a line `retired = []`")
    filled = filled.rstrip("\n") + "\n"
    tomllib.loads(filled)
    return first, filled


def _lines(name: str, first: int) -> str:
    return f"{_class_name(name)}Request = {first}\n{_class_name(name)}Reply = {first + 1}\n"
