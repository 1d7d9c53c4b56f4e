"""The folder of a lab on one host, and files that are written whole or not at all."""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PLACE = "{folder}"  # stands for the folder in the words that start a peer


class Folder:
    """Paths of what the package's docstring lists."""

    def __init__(self, path: str) -> None:
        self.path = Path(path).expanduser().absolute()
        self.houses = self.path / "houses"
        self.envs = self.path / "envs"
        self.keys = self.path / "keys"
        self.peers = self.path / "peers"
        self.kept = self.path / "kept"
        self.logs = self.path / "logs"
        self.traces = self.path / "traces"

    def make(self) -> None:
        """Make it, for its owner alone: it will hold keys."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o700)
        for part in (self.houses, self.envs, self.keys, self.peers, self.kept, self.logs):
            part.mkdir(exist_ok=True, mode=0o700)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold it for one command at a time."""
        self.make()
        with (self.path / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def specs(self) -> dict[str, dict[str, Any]]:
        """How each peer of this host is started."""
        return read_all(self.peers)

    def python_of(self, env: str) -> Path:
        """The interpreter of an environment."""
        return self.envs / env / "bin" / "python"

    def command(self, spec: dict[str, Any]) -> list[str]:
        """The words that start a peer."""
        words = [word.replace(PLACE, str(self.path)) for word in spec["words"]]
        return [str(self.python_of(spec["env"])), "-m", "nodes.cli", *words]


def read_all(folder: Path) -> dict[str, dict[str, Any]]:
    """Every NAME.json of a folder, by name; one that is damaged counts as not there."""
    found = {}
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(told, dict):
            found[path.stem] = told
    return found


def write_json(path: Path, told: dict[str, Any]) -> None:
    """Write a small file, whole or not at all."""
    write_bytes(path, json.dumps(told, sort_keys=True).encode(), 0o600)


def write_bytes(path: Path, data: bytes, mode: int) -> None:
    """The same for any bytes."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
