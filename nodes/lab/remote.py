"""A host of the lab as commands see it: the agent there, asked over ssh."""

from __future__ import annotations

import io
import json
import shlex
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodes.lab.agent_archive import agent
from nodes.lab.failures import HostFailure
from nodes.lab.inventory import Host
from nodes.lab.ssh import PATIENCE, Ssh

NO_AGENT = 42  # exit code of our own line: it must be sent first
NOT_FOUND = 127


class Remote:
    """What the agent of one host can be asked."""

    def __init__(self, host: Host, ssh: Ssh, lab: str, supervise: str) -> None:
        self.host = host
        self.ssh = ssh
        self.supervise = supervise
        self.folder = f"{host.folder.rstrip('/')}/{lab}/{host.name}"
        self.facts: dict[str, Any] = {}
        self.asked_at = (0.0, 0.0)  # when the facts were asked for and came, by this clock

    @property
    def name(self) -> str:
        """The host's."""
        return self.host.name

    async def learn(self, ports: Mapping[str, int]) -> None:
        """Read the facts of the host, with its clock's reading between two of ours."""
        await self._send_agent()
        before = time.time()
        self.facts = await self.call("facts", ports=dict(ports))
        self.asked_at = (before, time.time())

    async def call(self, command: str, *, within: float = PATIENCE, **asked: Any) -> Any:
        """Ask the agent; HostFailure when it cannot."""
        request = {"folder": self.folder, "supervise": self.supervise, **asked}
        return await self._answer(command, json.dumps(request).encode(), within)

    async def unpack(self, files: Mapping[str, tuple[bytes, int] | Path], within: float) -> None:
        """Write files below the host's folder: bytes and a mode, or a file of ours."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for name, content in files.items():
                entry = tarfile.TarInfo(name)
                data, mode = (content.read_bytes(), 0o644) if isinstance(content, Path) else content
                entry.size, entry.mode = len(data), mode
                archive.addfile(entry, io.BytesIO(data))
        words = f"unpack {_shell_path(self.folder)}"
        await self._answer(words, packed.getvalue(), within)

    async def fetch(self, command: str, *, within: float, **asked: Any) -> bytes:
        """Ask for something whose answer is bytes."""
        request = {"folder": self.folder, "supervise": self.supervise, **asked}
        done = await self.ssh.run(
            self.agent_line(command), input=json.dumps(request).encode(), within=within
        )
        if done.returncode:
            raise _broken(done.stderr)
        return done.stdout

    def agent_line(self, words: str) -> str:
        """The line of sh that runs the agent."""
        place = self._agent_path()
        python = shlex.quote(self.host.python)
        return f"[ -f {place} ] || exit {NO_AGENT}; exec {python} {place} {words}"

    def environment_line(self, command: str) -> str:
        """The line of sh that runs a command where `overlay` is the lab's own."""
        folder = _shell_path(self.folder)
        newest = f"$(ls -td {folder}/envs/*/bin 2>/dev/null | head -n 1)"
        return f'PATH="{newest}:$PATH"; export PATH; {command}'

    async def _answer(self, words: str, data: bytes, within: float) -> Any:
        line = self.agent_line(words)
        done = await self.ssh.run(line, input=data, within=within)
        if done.returncode == NO_AGENT:
            await self._send_agent()
            done = await self.ssh.run(line, input=data, within=within)
        if done.returncode == NOT_FOUND:
            raise HostFailure(
                f"no {self.host.python} there",
                "install Python 3.11 or newer, or set python = in its [[host]]",
            )
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            raise _broken(done.stderr) from None
        if "error" in answer:
            raise HostFailure(answer["error"], answer["fix"])
        return answer["result"]

    async def _send_agent(self) -> None:
        place, data = self._agent_path(), agent()[1]
        folder = _shell_path(self.folder)
        line = (
            f"[ -f {place} ] || {{ umask 077; mkdir -p {folder} && cat > {place}.$$ "
            f"&& mv {place}.$$ {place} || {{ rm -f {place}.$$; exit 1; }}; }}"
        )
        done = await self.ssh.run(line, input=data)
        if done.returncode:
            raise _broken(done.stderr)

    def _agent_path(self) -> str:
        return f"{_shell_path(self.folder)}/{agent()[0]}"


def _shell_path(path: str) -> str:
    """A path for sh, where `~/` means the user's home."""
    if path.startswith("~/"):
        return f'"$HOME"/{shlex.quote(path[2:])}'
    return shlex.quote(path)


def _broken(said: bytes) -> HostFailure:
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    last = lines[-1].strip() if lines else "no word of why"
    for sign, fix in (
        ("No space left", "free some space there"),
        ("Permission denied", "choose another folder = in its [[host]]"),
        ("Read-only", "choose another folder = in its [[host]]"),
    ):
        if sign in last:
            return HostFailure(last[:200], fix)
    return HostFailure(
        f"its agent failed: {last[:200]}", "`overlay lab up` again; if it stays, report it"
    )
