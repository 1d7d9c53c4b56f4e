"""Peers as units of the user's systemd, which restarts them, also after the host was restarted."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from nodes.lab.onhost.folder import Folder
from nodes.lab.onhost.trouble import Trouble

PREFIX = "overlay-lab"
SECONDS = 30.0
GENERATION = "# generation "
STAMP = "# folder "


def obstacle() -> str:
    """Why this user has no systemd that outlives the login; empty when it has."""
    if shutil.which("systemctl") is None:
        return "systemctl is not installed"
    if _run("systemctl", "--user", "show-environment").returncode:
        return "no systemd runs for this user"
    user = getpass.getuser()
    shown = _run("loginctl", "show-user", user, "--property=Linger", "--value")
    if shown.stdout.strip() == "yes" or _run("loginctl", "enable-linger", user).returncode == 0:
        return ""
    return f"units would end with the login (`sudo loginctl enable-linger {user}` helps)"


def has_units(folder: Folder) -> bool:
    """Whether units of this folder are there."""
    return any(True for _ in _ours(folder))


def unit_text(folder: Folder, name: str, spec: dict[str, Any]) -> str:
    """The unit of one peer."""
    words = " ".join(_quoted(word) for word in folder.command(spec))
    return f"""\
{STAMP}{folder.path}
{GENERATION}{spec["generation"]}
[Unit]
Description=overlay peer {name}
After=network-online.target
StartLimitIntervalSec=0

[Service]
ExecStart={words}
WorkingDirectory={_escaped(str(folder.path))}
Environment=PYTHONSAFEPATH=1 PYTHONUNBUFFERED=1
Restart=always
RestartSec=1
TimeoutStopSec=5
KillMode=mixed

[Install]
WantedBy=default.target
"""


class Units:
    """The units of one folder."""

    kind = "systemd"

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def states(self) -> dict[str, dict[str, Any]]:
        """What systemd says of each."""
        found = {}
        for name, path in _ours(self.folder):
            keys = ("MainPID", "NRestarts", "Result", "ActiveEnterTimestampMonotonic")
            shown = _run("systemctl", "--user", "show", path.name, f"--property={','.join(keys)}")
            told = dict(line.partition("=")[::2] for line in shown.stdout.splitlines())
            age = time.monotonic() - int(told.get("ActiveEnterTimestampMonotonic") or 0) / 1e6
            found[name] = {
                "pid": int(told.get("MainPID") or 0),
                "generation": _generation(path),
                "starts": int(told.get("NRestarts") or 0) + 1,
                "since": time.time() - age,
                "ended": "" if told.get("Result", "success") == "success" else told["Result"],
            }
        return found

    def refresh(self) -> None:
        """Write units, and restart those whose generation is new."""
        specs = self.folder.specs()
        before = dict(_ours(self.folder))
        self._remove([path for name, path in before.items() if name not in specs])
        changed = []
        for name, spec in specs.items():
            path = _path(self.folder, name)
            if name not in before or _generation(path) != spec["generation"]:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(unit_text(self.folder, name, spec), encoding="utf-8")
                changed.append(path.name)
        if changed:
            _must("systemctl", "--user", "daemon-reload")
            _must("systemctl", "--user", "enable", "--quiet", *changed)
            _must("systemctl", "--user", "restart", *changed)

    def stop(self) -> None:
        """Stop and remove all."""
        self._remove([path for _, path in _ours(self.folder)])

    def _remove(self, paths: list[Path]) -> None:
        if not paths:
            return
        _must("systemctl", "--user", "disable", "--now", "--quiet", *(path.name for path in paths))
        for path in paths:
            path.unlink()
        _must("systemctl", "--user", "daemon-reload")

    def log(self, name: str, lines: int) -> list[str]:
        """From the journal."""
        unit = _path(self.folder, name).name
        words = (
            "--user",
            "--unit",
            unit,
            "--lines",
            str(lines),
            "--no-pager",
            "--output=short-iso",
        )
        return _run("journalctl", *words).stdout.splitlines()


def _path(folder: Folder, name: str) -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    lab, host = folder.path.parent.name, folder.path.name  # two labs may share a host, and a home
    return Path(home, "systemd/user", f"{PREFIX}-{lab}-{host}-{name}.service")


def _ours(folder: Folder) -> list[tuple[str, Path]]:
    pattern = _path(folder, "*").name
    head, tail = pattern.split("*")
    return [
        (path.name.removeprefix(head).removesuffix(tail), path)
        for path in sorted(_path(folder, "*").parent.glob(pattern))
        if path.read_text(encoding="utf-8").startswith(f"{STAMP}{folder.path}\n")
    ]


def _generation(path: Path) -> int:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(GENERATION):
            return int(line.removeprefix(GENERATION))
    return -1


def _quoted(word: str) -> str:
    """A word of ExecStart: % and $ mean something to systemd."""
    escaped = _escaped(word).replace("$", "$$").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    # A login by ssh may lack what names the user's systemd.
    environment.setdefault("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    return subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment,
        check=False,
    )


def _must(*words: str) -> None:
    done = _run(*words)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise Trouble(
            f"`{' '.join(words[:3])}` failed: {said}", 'set supervise = "keeper" in [lab]'
        )
