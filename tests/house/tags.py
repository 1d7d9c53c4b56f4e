"""Tags are append-only: `protocols/tags.toml` pins the tag of every message class."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.house.source import Module, imports, modules

BLOCK = 16
THIRD_PARTIES_FROM = 10_000
FRAMEWORK = "framework"
FIRST_BLOCKS = {
    FRAMEWORK: 0,
    "echo": 16,
    "membership": 32,
    "topology": 48,
    "routing": 64,
    "zones": 80,
}
"""Blocks that the wire has promised; later ones are pinned by the file's history."""


class MessageClass(NamedTuple):
    """A subclass of Message, as the source says it."""

    name: str
    owner: str  # the protocol's folder, or "framework"
    tag: int | None  # None: no literal tag
    where: str


class Table(NamedTuple):
    """What one owner has in tags.toml."""

    blocks: list[int]
    retired: list[int]
    tags: dict[str, int]


def read_tables(root: Path) -> dict[str, Table]:
    """tags.toml by owner; names of classes start with a capital, so they meet no key of ours."""
    with (root / "protocols" / "tags.toml").open("rb") as file:
        raw = tomllib.load(file)
    return {
        owner: Table(
            list(table.get("blocks", [])),
            list(table.get("retired", [])),
            {name: tag for name, tag in table.items() if name[0].isupper()},
        )
        for owner, table in raw.items()
    }


def message_classes(root: Path) -> list[MessageClass]:
    """Every class of overlay/ and protocols/ that derives from Message, at any distance."""
    classes = [
        (module, node, [*_bases(module, node)])
        for module in modules(root, "overlay", "protocols")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    ]
    known = {"overlay.protocol.Message"}
    while True:
        derived = {
            f"{module.name}.{node.name}" for module, node, bases in classes if known & {*bases}
        }
        if derived <= known:
            break
        known |= derived
    parents = {base for _, _, bases in classes for base in bases}
    found = []
    for module, node, bases in classes:
        tag = _literal_tag(node)
        is_shared_base = tag is None and f"{module.name}.{node.name}" in parents
        if known & {*bases} and not is_shared_base:
            where = f"{module.where}:{node.lineno}"
            found.append(MessageClass(node.name, _owner(module), tag, where))
    return found


def _owner(module: Module) -> str:
    parts = module.name.split(".")
    return parts[1] if parts[0] == "protocols" and len(parts) > 1 else FRAMEWORK


def _bases(module: Module, node: ast.ClassDef) -> Iterator[str]:
    """The bases by full name, as far as imports of the same module tell."""
    imported = {found.bound: found.dotted for found in imports(module)}
    for base in node.bases:
        text = ast.unparse(base)
        head, dot, rest = text.partition(".")
        if head in imported:
            yield imported[head] + dot + rest
        else:
            yield text if dot else f"{module.name}.{text}"


def _literal_tag(node: ast.ClassDef) -> int | None:
    for keyword in node.keywords:
        if keyword.arg == "tag" and isinstance(keyword.value, ast.Constant):
            value = keyword.value.value
            return value if type(value) is int else None
    return None


def tag_problems(root: Path) -> list[str]:
    """Where classes and file differ, each with the line that would mend it."""
    tables = read_tables(root)
    return [*_unpinned(root, tables), *_clashes(tables), *_misplaced(tables)]


def _unpinned(root: Path, tables: dict[str, Table]) -> Iterator[str]:
    classes = message_classes(root)
    for message in classes:
        pinned = tables[message.owner].tags.get(message.name) if message.owner in tables else None
        if message.tag is None:
            yield f"{message.where}: {message.name} needs a literal tag: `tag=16`"
        elif message.owner not in tables:
            yield (
                f"{message.where}: add to protocols/tags.toml: `[{message.owner}]`, "
                f"`blocks = [{_next_block(tables)}]`, `retired = []`, "
                f"`{message.name} = {message.tag}`"
            )
        elif pinned is None:
            yield (
                f"{message.where}: add to protocols/tags.toml under [{message.owner}]: "
                f"`{message.name} = {message.tag}`"
            )
        elif pinned != message.tag:
            yield (
                f"{message.where}: {message.name} has tag={message.tag}, protocols/tags.toml pins "
                f"{pinned}: set `tag={pinned}`, peers know it by that"
            )
    existing = {(message.owner, message.name) for message in classes}
    for owner, table in tables.items():
        for name, tag in table.tags.items():
            if (owner, name) not in existing:
                yield (
                    f"protocols/tags.toml: [{owner}] {name} = {tag} has no class any more: "
                    f"delete the line and add {tag} to its `retired`"
                )


def _next_block(tables: dict[str, Table]) -> int:
    return max((block for table in tables.values() for block in table.blocks), default=0) + BLOCK


def _clashes(tables: dict[str, Table]) -> Iterator[str]:
    users: dict[int, str] = {}
    for owner, table in tables.items():
        for name, tag in table.tags.items():
            if tag in users:
                yield f"protocols/tags.toml: {tag} is both {users[tag]} and {owner}.{name}"
            users.setdefault(tag, f"{owner}.{name}")
    for owner, table in tables.items():
        for tag in table.retired:
            if tag in users:
                yield (
                    f"protocols/tags.toml: {users[tag]} uses {tag}, which [{owner}] retired: "
                    "take the next free tag"
                )


def _misplaced(tables: dict[str, Table]) -> Iterator[str]:
    owners: dict[int, str] = {}
    for owner, table in tables.items():
        first = FIRST_BLOCKS.get(owner)
        if not table.blocks or (first is not None and table.blocks[0] != first):
            right = _next_block(tables) if first is None else first
            yield f"protocols/tags.toml: [{owner}] needs `blocks = [{right}]`"
        for block in table.blocks:
            if block % BLOCK or not 0 <= block < THIRD_PARTIES_FROM:
                yield (
                    f"protocols/tags.toml: [{owner}] block {block} must be a multiple of {BLOCK} "
                    f"below {THIRD_PARTIES_FROM}, where third parties begin"
                )
            if block in owners:
                yield f"protocols/tags.toml: block {block} is both [{owners[block]}] and [{owner}]"
            owners.setdefault(block, owner)
        for name, tag in table.tags.items():
            if tag - tag % BLOCK not in table.blocks:
                yield (
                    f"protocols/tags.toml: [{owner}] {name} = {tag} is outside of its blocks "
                    f"{table.blocks} (each holds {BLOCK} tags)"
                )
