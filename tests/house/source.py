"""Reading the project as text: files, syntax trees and what they import, without running any."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple


class Module(NamedTuple):
    """One source file, named as Python would import it."""

    path: Path
    where: str  # the path below the root, for messages
    name: str  # "protocols.echo.machine"
    package: str  # what a relative import starts from
    tree: ast.Module


class Import(NamedTuple):
    """One name that a module imports; `from a import b` gives module "a" and name "b"."""

    module: str
    name: str
    bound: str  # what the module calls it
    where: str  # "path:line"

    @property
    def dotted(self) -> str:
        """The longest name that it may mean: `b` may be a submodule of `a`."""
        return f"{self.module}.{self.name}" if self.name else self.module

    def within(self, package: str) -> bool:
        """Whether it is that package or module, or a part of it."""
        return f"{self.dotted}.".startswith(f"{package}.")


@lru_cache(maxsize=4096)
def _parse(path: Path, _modified: int) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def modules(root: Path, *folders: str) -> Iterator[Module]:
    """Every source file below these folders, in a fixed order."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            package = name if is_package else name.rpartition(".")[0]
            tree = _parse(path, path.stat().st_mtime_ns)
            yield Module(path, path.relative_to(root).as_posix(), name, package, tree)


def imports(module: Module) -> Iterator[Import]:
    """Everything it imports, also late, under TYPE_CHECKING, or by a relative name."""
    for node in ast.walk(module.tree):
        where = f"{module.where}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, "", alias.asname or alias.name, where)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = module.package.split(".")
                kept = up[: len(up) - node.level + 1]
                base = ".".join([*kept, base] if base else kept)
            for alias in node.names:
                yield Import(base, alias.name, alias.asname or alias.name, where)


def protocol_folders(root: Path) -> list[Path]:
    """The folder of each protocol."""
    found = (path for path in (root / "protocols").glob("*") if path.is_dir())
    return sorted(path for path in found if any(path.glob("*.py")))
