"""Every command with its arguments and options, as a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nodes.reference.tables import code, table

HEAD = """# Commands

Made from the commands themselves. Each has `--help`, most have `--json`; all exit with 0 (done), 1
(failed) or 2 (wrong usage), and say what went wrong in one line.
"""
NAME = "overlay"


def page() -> str:
    """The whole reference."""
    from typer.main import get_command

    from nodes.cli.app import app

    parts = [HEAD]
    for path, command in commands(NAME, get_command(app)):
        help_text = " ".join((command.help or "").split())
        parts.append(f"## {path}\n\n{help_text}\n\n```text\n{usage(path, command)}\n```\n")
        rows = [row(one) for one in command.params if getattr(one, "hidden", False) is False]
        if rows:
            parts.append(table(("option", "default", "meaning"), rows))
    return "\n".join(parts)


def commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words that call it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, one in sorted(inner.items()):
        if not one.hidden:
            yield from commands(f"{path} {name}", one)


def usage(path: str, command: Any) -> str:
    """`overlay pub [OPTIONS] TOPIC [TEXTS]...`."""
    words = [path, "[OPTIONS]"]
    for one in command.params:
        if one.param_type_name == "argument":
            name = one.name.upper() if one.required else f"[{one.name.upper()}]"
            words.append(f"{name}..." if one.nargs == -1 else name)
    return " ".join(words)


def row(parameter: Any) -> tuple[str, str, str]:
    """One line of the table."""
    if parameter.param_type_name == "argument":
        names = parameter.name.upper()
    else:
        names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    default = parameter.default
    told = getattr(parameter, "show_default", None)
    if isinstance(told, str):
        shown = told
    elif callable(default) or default in (None, "", False, ()) or parameter.required:
        shown = "required" if parameter.required else ""
    else:
        shown = code(default)
    return code(names), shown, getattr(parameter, "help", "") or ""
