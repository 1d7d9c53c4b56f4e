"""Running iproute2 and nftables: every failure is one line with the tool's own words."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

# A user's PATH may lack the folders of the system's tools.
_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
TOOL_SECONDS = 60  # what a starved machine may need for one `ip`; without load it takes 2 ms


class LabError(Exception):
    """The lab could not be built or changed."""


def tool(name: str) -> str:
    """The path of a tool; LabError names the missing one."""
    path = shutil.which(name, path=_PATH)
    if path is None:
        raise LabError(f"`{name}` is not installed")
    return path


def run(words: Sequence[str], *, text: str = "") -> str:
    """Run a tool to its end and return what it printed."""
    done = subprocess.run(
        [tool(words[0]), *words[1:]],
        input=text,
        capture_output=True,
        text=True,
        timeout=TOOL_SECONDS,
        check=False,
    )
    if done.returncode:
        complaint = done.stderr.strip() or f"exit code {done.returncode}"
        raise LabError(f"`{' '.join(words)}` failed: {complaint}")
    return done.stdout


def ip(namespace: str, *lines: str) -> None:
    """Run lines of iproute2 in a namespace, as one process."""
    run(["ip", "-n", namespace, "-batch", "-"], text="\n".join(lines) + "\n")


def nft(namespace: str, script: str) -> None:
    """Load rules in a namespace: all of them or none."""
    run(inside(namespace, ["nft", "-f", "-"]), text=script)


def inside(namespace: str, words: Sequence[str]) -> list[str]:
    """The words that run a command in a namespace; `ip` becomes it, so the pid is the command's."""
    return ["ip", "netns", "exec", namespace, *words]


def block(namespace: str, where: str) -> None:
    """Let the host's kernel drop multicast to these addresses, in both directions."""
    nft(
        namespace,
        f"""
        table inet blocked {{
            chain inward {{ type filter hook input priority 0; ip daddr {where} drop; }}
            chain outward {{ type filter hook output priority 0; ip daddr {where} drop; }}
        }}
        """,
    )
