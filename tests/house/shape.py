"""The shape of files and folders: one concept each, and every protocol laid out alike."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.house.source import imports, modules, protocol_folders
from tests.house.tags import message_classes

MOST_LINES = 500
PROTOCOL_FILES = ("__init__.py", "machine.py", "messages.py", "events.py", "config.py")


def long_files(root: Path) -> list[str]:
    """Past 500 lines there is a second concept in the file."""
    return [
        f"{module.where}: {lines} lines, at most {MOST_LINES}: look for the second concept"
        for module in modules(root, "overlay", "protocols", "nodes", "bench", "tests")
        if (lines := len(module.path.read_text(encoding="utf-8").splitlines())) > MOST_LINES
    ]


def incomplete_protocols(root: Path) -> list[str]:
    """Each folder has the same files, and a spec whose table names every message."""
    problems = []
    messages = message_classes(root)
    for folder in protocol_folders(root):
        where = folder.relative_to(root).as_posix()
        problems += [
            f"{where}/{name} is missing: every protocol has {', '.join(PROTOCOL_FILES)}"
            for name in PROTOCOL_FILES
            if not (folder / name).is_file()
        ]
        spec = _docstring(folder / "__init__.py")
        if not spec:
            problems.append(f"{where}/__init__.py has no docstring: it is the protocol's spec")
            continue
        rows = [_cells(line) for line in spec.splitlines()]
        problems += [
            f"{where}/__init__.py: its message table has no row `| {message.tag} | {message.name} |"
            " sent when | the receiver |`"
            for message in messages
            if message.owner == folder.name and {str(message.tag), message.name} not in rows
        ]
    return problems


def _cells(line: str) -> set[str]:
    """Tag and name, in either order, of a table's row that goes on to explain them."""
    cells = [cell.strip(" `") for cell in line.strip().strip("|").split("|")]
    return set(cells[:2]) if len(cells) >= 4 and all(cells) else set()


def _docstring(path: Path) -> str:
    if not path.is_file():
        return ""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def sleeping_tests(root: Path) -> list[str]:
    """A test waits for a condition with a deadline; a sleep is too short or too long."""
    problems = []
    for module in modules(root, "tests"):
        names = {"time"} | {
            alias.asname
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name == "time" and alias.asname
        }
        lines = [
            f"{module.where}:{node.lineno}"
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Attribute)
            and node.attr == "sleep"
            and isinstance(node.value, ast.Name)
            and node.value.id in names
        ]
        lines += [found.where for found in imports(module) if found.dotted == "time.sleep"]
        problems += [f"{line}: no time.sleep in tests: wait for a condition" for line in lines]
    return problems


_LOG_CALLS = {"debug", "info", "warning", "error", "exception", "critical", "log"}


def nameless_log_lines(root: Path) -> list[str]:
    """A program that reads our log looks for events, not for words that people may improve."""
    return [
        f"{module.where}:{node.lineno}: say extra=about(event, protocol), from overlay.logs"
        for module in modules(root, "overlay", "protocols", "nodes")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and (node.func.value.id, node.func.attr in _LOG_CALLS) == ("log", True)
        and not any(keyword.arg == "extra" for keyword in node.keywords)
    ]
