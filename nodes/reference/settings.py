"""Every setting with its default, unit, bounds and reason, as a page."""

from __future__ import annotations

import inspect
from itertools import groupby

from nodes.reference.tables import code, table
from nodes.settings import SECTIONS
from overlay.config import describe
from overlay.profiles import profile_names

HEAD = f"""# Settings

Made from the settings themselves. They come from a profile ({", ".join(profile_names())}), then
`$OVERLAY_SET`, then files, then `--set section.key=value`; the last one wins. `overlay config show`
prints what holds for a node, `overlay config check FILE` says what is wrong with a file.
"""


def page() -> str:
    """The whole reference."""
    parts = [HEAD]
    for section, rows in groupby(describe(SECTIONS), lambda row: row.key.partition(".")[0]):
        about = inspect.getdoc(SECTIONS[section]) or ""
        cells = [
            (
                code(row.key.partition(".")[2]),
                code(shown(row.default)),
                row.unit,
                row.bounds,
                row.reason,
            )
            for row in rows
        ]
        columns = ("key", "default", "unit", "bounds", "why")
        parts.append(f"## {section}\n\n{about.splitlines()[0]}\n\n{table(columns, cells)}")
    return "\n".join(parts)


def shown(value: object) -> str:
    """As TOML would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(shown(one) for one in value) + "]"
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:g}" if isinstance(value, float) else str(value)
