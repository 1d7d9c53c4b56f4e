"""Which filters are at work on this machine: hints for whoever finds something blocked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from nodes.doctor.case import Case
from nodes.doctor.finding import Finding, hint, skipped, well
from overlay.net.addresses import parse_endpoint
from overlay.net.config import NetSettings
from protocols.beacon.config import BeaconSettings

WITHIN = 5.0  # s for a tool
_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
_HOOK = re.compile(r"hook (input|output)\b")
_BLOCKS = re.compile(r"\b(drop|reject)\b")


def check(case: Case) -> Iterator[Finding]:
    """Rules that drop or refuse what comes in or goes out."""
    beacon = case.config.section(BeaconSettings)
    bound = [parse_endpoint(text).port for text in case.config.section(NetSettings).bind]
    ports = ", ".join(str(port) for port in bound if port) or "those of peers (--bind sets them)"
    needed = (
        f"peers need UDP port {beacon.port} of the beacons, and TCP and UDP {ports}, in and out"
    )
    found = [*_ufw(), *_nft()]
    if os.geteuid() != 0:
        yield skipped("only root can read the rules of nftables and iptables")
    for one in found:
        yield hint(one, needed)
    if not found and os.geteuid() == 0:
        yield well("no rule of nftables or iptables blocks anything here")


def _ufw() -> Iterator[str]:
    config = Path("/etc/ufw/ufw.conf")
    if config.exists() and re.search(r"^ENABLED=yes", config.read_text(), re.MULTILINE):
        yield "ufw is enabled"


def _nft() -> Iterator[str]:
    """Chains with a rule or a policy that blocks; iptables of our days writes its rules there."""
    rules = _run("nft", "list", "ruleset")
    yield from blocking_chains(rules)
    if not rules and shutil.which("iptables-legacy", path=_PATH):
        for line in _run("iptables-legacy", "-S").splitlines():
            if re.match(r"-(P|A) (INPUT|OUTPUT) .*(DROP|REJECT)", line):
                yield f"iptables blocks: {line}"


def blocking_chains(ruleset: str) -> Iterator[str]:
    """The first line of each chain at input or output that drops or refuses something."""
    table = chain = ""
    hooked = told = False
    for line in map(str.strip, ruleset.splitlines()):
        if line.startswith("table "):
            table = line.removeprefix("table ").rstrip(" {")
        elif line.startswith("chain "):
            chain, hooked, told = line.removeprefix("chain ").rstrip(" {"), False, False
        elif _HOOK.search(line):
            hooked = True
        if hooked and not told and _BLOCKS.search(line):
            told = True
            yield f"nftables blocks, in table {table}, chain {chain}: {line}"


def _run(*words: str) -> str:
    tool = shutil.which(words[0], path=_PATH)
    if tool is None:
        return ""
    try:
        done = subprocess.run(
            [tool, *words[1:]], capture_output=True, text=True, timeout=WITHIN, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
