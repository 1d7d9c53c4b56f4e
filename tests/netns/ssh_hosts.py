"""Hosts that can be reached by ssh: each a namespace of the lab with its own sshd and file tree.

A host sees the machine's system, but its own /root, /tmp, /run and /etc/ssh: what is installed on
it lies there, and nobody else finds it. The desk is where the operator sits.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nodes.lab.operator import cache_folder
from tests.netns.commands import LabError, tool
from tests.netns.host import Host
from tests.netns.lab import Lab
from tests.netns.process import HostProcess
from tests.netns.sweep import end_processes
from tests.netns.waiting import until

TOOLS = {"sshd": "openssh-server", "ssh": "openssh-client", "ssh-keygen": "openssh-client"}
PYTHON = Path(getattr(sys, "_base_executable", sys.executable))  # not the tests' own environment
ROOT = Path(__file__).resolve().parents[2]
QUICK = ("membership.probe_period=0.5", "zones.settle=0.5", "zones.publish_pause=0.2")

SSHD = """\
Port 22
HostKey /etc/ssh/host_key
AuthorizedKeysFile /etc/ssh/authorized_keys
PidFile /run/sshd.pid
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
"""
# The python's own folder is brought back where one of the host's folders hides it.
TREE = """
set -e
tree=$1; prefix=$2; shift 2
mount --make-rprivate /
mount --bind "$tree/etc" /etc/ssh
[ ! -d "$tree/disk" ] || mount -t tmpfs -o size=4m tmpfs "$tree/root"
case "$prefix" in /root/*|/tmp/*)
    mkdir -p "$tree/prefix" "$tree$prefix"
    mount --bind "$prefix" "$tree/prefix"
    mount --bind "$tree/prefix" "$tree$prefix";;
esac
mount -t tmpfs tmpfs /run
mkdir -m 755 /run/sshd
mount --rbind "$tree/root" /root
mount --rbind "$tree/tmp" /tmp
cd /
exec "$@"
"""


def obstacle() -> str:
    """Which tool is missing; empty when all are there."""
    for name, package in TOOLS.items():
        try:
            tool(name)
        except LabError as error:
            return f"{error}: install {package}"
    return ""


class SshHosts:
    """A desk and some hosts; `overlay` runs the operator's command at the desk."""

    def __init__(self, lab: Lab, names: Sequence[str]) -> None:
        self.lab = lab
        self.desk = lab.host("desk")
        self._key = self.desk.folder / "key"
        _keygen(self._key)
        (self.desk.folder / "ssh_config").write_text(
            "Host *\n  User root\n"
            f"  IdentityFile {self._key}\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.desk.folder}/known_hosts\n"
            "  StrictHostKeyChecking accept-new\n  LogLevel ERROR\n"
        )
        self.source = ROOT  # of the operator's program
        self.inventory = self.desk.folder / "lab.toml"
        self.hosts: dict[str, Host] = {}
        self.daemons: dict[str, HostProcess] = {}
        for name in names:
            self.add(name)
        for name in names:
            self.await_sshd(name)

    def add(self, name: str, *, tiny_disk: bool = False, listens: bool = True) -> Host:
        """One host more, with an sshd that the desk's key opens."""
        host = self.hosts[name] = self.lab.host(name)
        for part in ("etc", "root", "tmp", *(["disk"] if tiny_disk else [])):
            (host.folder / part).mkdir(mode=0o700)
        _keygen(host.folder / "etc" / "host_key")
        shutil.copy(f"{self._key}.pub", host.folder / "etc" / "authorized_keys")
        (host.folder / "etc" / "sshd_config").write_text(SSHD)
        if listens:
            self.start_sshd(name)
        return host

    def start_sshd(self, name: str) -> None:
        """Start its sshd, in its own tree."""
        self.daemons[name] = self.in_tree(
            name, [tool("sshd"), "-D", "-e", "-f", "/etc/ssh/sshd_config"]
        )

    def await_sshd(self, name: str) -> None:
        """Wait until it listens."""
        until(
            lambda: "listening" in "".join(self.daemons[name].lines).lower(), what=f"sshd of {name}"
        )

    def in_tree(self, name: str, words: Sequence[str]) -> HostProcess:
        """Start something on a host that sees the host's files; it is the host's init, in a way."""
        host = self.hosts[name]
        prefix = PYTHON.resolve().parent.parent
        tree = ["unshare", "--mount", "sh", "-c", TREE, "sh", str(host.folder), str(prefix), *words]
        return host.start(tree, environment={"PATH": os.environ["PATH"]})

    def kill(self, name: str) -> None:
        """As if its plug had been pulled: every process ends, and nobody is told."""
        self.lab.unplug(self.hosts[name])
        end_processes(self.hosts[name].namespace)

    def write(
        self,
        *,
        peers: int,
        zones: Mapping[str, str] | None = None,
        hosts: Sequence[str] | None = None,
        lab: str = "",
        more: str = "",
        sets: Sequence[str] = QUICK,
    ) -> None:
        """Write the inventory: zones by host, lines for [lab], more for the end."""
        settings: dict[str, list[str]] = {}
        for word in sets:
            section, _, rest = word.partition(".")
            settings.setdefault(section, []).append(rest.replace("=", " = "))
        text = f'[lab]\nname = "test"\n{lab}\n[ssh]\nconfig = "ssh_config"\nconnect_within = 5\n'
        text += f'[peers]\ncount = {peers}\npython = "{PYTHON.resolve()}"\n'
        for section, lines in settings.items():
            text += "\n".join([f"[settings.{section}]", *lines, ""])
        text += more
        for name in self.hosts if hosts is None else hosts:
            zone = (zones or {}).get(name, "default")
            address = self.hosts[name].address
            text += f'\n[[host]]\nname = "{name}"\naddress = "{address}"\nzone = "{zone}"\n'
        self.inventory.write_text(text)

    def words(self, *words: str) -> list[str]:
        """The command line of the operator's program."""
        return [sys.executable, "-m", "nodes.cli", *words]

    def environment(self) -> dict[str, str]:
        """The operator's: the wheels are those that were made before the lab had no internet."""
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self.source),
            "PYTHONSAFEPATH": "1",
            "OVERLAY_HOME": str(self.desk.folder / "config"),
            "XDG_CACHE_HOME": str(cache_folder().parent.parent),
            "PIP_NO_INDEX": "1",
        }

    def overlay(
        self, *words: str, code: int = 0, within: float = 110.0
    ) -> subprocess.CompletedProcess[str]:
        """Run `overlay …` at the desk; AssertionError when it ends with another code."""
        done = self.desk.run(
            self.words(*words), check=False, within=within, environment=self.environment()
        )
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def lab_json(self, *words: str, code: int = 0) -> dict[str, Any]:
        """Run `overlay lab … --json` and read it."""
        told: dict[str, Any] = json.loads(self.overlay("lab", *words, "--json", code=code).stdout)
        return told


def _keygen(path: Path) -> None:
    subprocess.run(
        [tool("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True
    )
