"""One host by the system's OpenSSH: one connection, which all commands share.

The connection is a child of ours (`ssh -MN`), so that it ends with us, and its words say why it
could not be made. ssh never asks anything: whoever needs a password gets a line that says so.
"""

from __future__ import annotations

import shlex
import subprocess
from contextlib import suppress
from pathlib import Path

import trio

from nodes.lab.failures import HostFailure, ssh_failure
from nodes.lab.inventory import Host
from nodes.lab.inventory_sections import SshSettings

LOOK_EVERY = 0.03  # s, for the connection's socket
SSH_FAILED = 255  # ssh's own exit code; any other is the command's
PATIENCE = 60.0  # s for a command that does not say otherwise


class Ssh:
    """Opened with `open`; `close` ends the connection."""

    def __init__(self, host: Host, settings: SshSettings, sockets: Path, beside: Path) -> None:
        self.host = host
        self._settings = settings
        self._socket = sockets / host.name
        self._beside = beside  # a relative config file lies beside the inventory
        self._master: trio.Process | None = None

    def words(self, *more: str) -> list[str]:
        """The command line up to the remote command; the user's options win."""
        told = ["ssh"]
        if self._settings.config:
            told += ["-F", str(self._beside / Path(self._settings.config).expanduser())]
        for option in self._settings.options:
            told += ["-o", option]
        for option in (
            "BatchMode=yes",
            f"ConnectTimeout={max(1, round(self._settings.connect_within))}",
            "ServerAliveInterval=5",
            "ServerAliveCountMax=3",
            f"ControlPath={self._socket}",
            "ForwardX11=no",
            "ForwardAgent=no",
        ):
            told += ["-o", option]
        if self.host.user:
            told += ["-l", self.host.user]
        return [*told, "-p", str(self.host.ssh_port), *more, "--", self.host.address]

    async def open(self) -> None:
        """Connect; HostFailure says why not."""
        try:
            self._master = await trio.lowlevel.open_process(
                self.words("-M", "-N"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        except FileNotFoundError:
            raise HostFailure("ssh is not installed here", "install openssh-client") from None
        with trio.move_on_after(self._settings.connect_within + 2):
            while self._master.poll() is None:
                if self._socket.exists():
                    return
                await trio.sleep(LOOK_EVERY)
        said = "timed out"
        if self._master.poll() is not None and self._master.stderr is not None:
            said = (await self._master.stderr.receive_some(65536)).decode(errors="replace")
        await self.close()
        raise self._failure(said)

    async def close(self) -> None:
        """End the connection; harmless twice."""
        master, self._master = self._master, None
        if master is None:
            return
        with trio.CancelScope(shield=True):
            with suppress(ProcessLookupError):
                master.terminate()
            with trio.move_on_after(2):
                await master.wait()
            if master.poll() is None:
                master.kill()
            if master.stderr is not None:
                await master.stderr.aclose()
        self._socket.unlink(missing_ok=True)

    async def run(
        self, command: str, *, input: bytes = b"", within: float = PATIENCE
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a line of sh there, whatever the user's login shell; HostFailure when ssh fails."""
        line = f"exec sh -c {shlex.quote(command)}"
        with trio.move_on_after(within):
            done = await trio.run_process(
                [*self.words(), line],
                stdin=input,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
            )
            if done.returncode == SSH_FAILED:
                raise self._failure(done.stderr.decode(errors="replace"))
            return done
        raise HostFailure(
            f"no answer within {within:g} s", f"look at its load: `ssh {self.host.at}`"
        )

    def _failure(self, said: str) -> HostFailure:
        host = self.host
        return ssh_failure(said, at=host.at, address=host.address, port=host.ssh_port)
