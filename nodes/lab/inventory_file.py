"""The inventory as text: a first one with comments, a host more, a host less; comments stay."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from nodes.lab.inventory import HOST, NAME, Inventory, parse_inventory
from overlay.errors import ConfigError
from overlay.toml_source import Source, parse_toml

EXAMPLES = ("192.0.2.11", "192.0.2.12", "192.0.2.13")  # addresses that nobody has

HEAD = """\
# A lab: which hosts, and which peers on them. `overlay lab up` makes it so, as often as you like.
# A line that begins with # shows a default: remove the # to change it.

[lab]
name = {name}                # also the overlay's name; its keys: ~/.config/zmq-overlay/labs/NAME
# profile = "lan"            # the base of all settings: lan, wan or local
# traces = "off"             # what peers record: off, delivery, messages or all
# supervise = "auto"         # who restarts peers: systemd (user units), keeper (ours), auto
# insecure = false           # true: no keys at all, only where nobody else is
# agree_within = 60.0        # s for all zone tables to agree

[ssh]
# user = ""                  # on the hosts; empty: as ssh's own config says
# port = 22
# config = ""                # a file for ssh -F
# options = []               # more, as after ssh -o: ["IdentityFile=~/.ssh/lab"]

[peers]                      # for every host that does not say otherwise
count = {peers}
# zone = "default"           # or a list: its peers are given to these zones in turn
# port = 7400                # of the first peer; the next ones follow
# roles = []                 # more processes: "supervisor", "broker", "bdn", "collector"
# python = "python3"         # on the hosts, 3.11 or newer
# folder = "~/.local/share/zmq-overlay/labs"

[checks]                     # before anything is done on a host
# clock = 2.0                # s that its clock may be off this one's
# free = 300                 # MB of disk
# multicast = "required"     # optional: warn only; off: peers meet by told addresses alone

# Settings of the overlay, as `overlay config show` lists them:
# [settings.membership]
# probe_period = 1.0
"""


def first_inventory(name: str, peers: int, zones: Sequence[str], hosts: Sequence[str]) -> str:
    """The text of a new file; ConfigError when it would not be a good one."""
    text = HEAD.format(name=json.dumps(name), peers=peers)
    names: list[str] = []
    for number, told in enumerate(hosts or EXAMPLES, start=1):
        user, address, port = split_address(told)
        plain = address.partition(".")[0].lower()
        host = plain if NAME.fullmatch(plain) and not plain[0].isdigit() else f"h{number}"
        if host in names:
            host = f"h{number}"
        names.append(host)
        zone = zones[(number - 1) % len(zones)] if zones else ""
        text += host_block(host, address, user=user, ssh_port=port, zone=zone)
    parse_inventory(Source("lab init", parse_toml(text)), Path())
    return text


def split_address(told: str) -> tuple[str, str, int | None]:
    """`[USER@]ADDRESS[:PORT]` in its parts."""
    user, _, rest = told.rpartition("@")
    found = re.fullmatch(r"\[?([^\]]+?)\]?(?::(\d{1,5}))?", rest)
    if found is None or not found[1]:
        raise ConfigError(f"{told!r}: write [USER@]ADDRESS[:PORT], as in me@192.168.1.11")
    return user, found[1], int(found[2]) if found[2] else None


def host_block(
    name: str,
    address: str,
    *,
    user: str = "",
    ssh_port: int | None = None,
    zone: str = "",
    peers: int | None = None,
) -> str:
    """One `[[host]]`."""
    told: dict[str, object] = {"name": name, "address": address}
    if user:
        told["user"] = user
    if ssh_port is not None:
        told["ssh_port"] = ssh_port
    if zone:
        told["zone"] = zone
    if peers is not None:
        told["peers"] = peers
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in told.items()]
    return "\n".join(["", "[[host]]", *lines, ""])


def add_host(text: str, path: Path, block: str) -> Inventory:
    """The inventory with one host more; ConfigError when it does not fit."""
    return parse_inventory(Source(str(path), parse_toml(text + block)), path)


def without_host(text: str, name: str, path: Path) -> str:
    """The text without the section of that host, and all the rest as it was."""
    lines = text.splitlines(keepends=True)
    starts = [at for at, line in enumerate(lines) if re.match(r"\s*\[\[\s*host\s*\]\]", line)]
    for start in starts:
        end = next(
            (
                at
                for at in range(start + 1, len(lines))
                if re.match(r"\s*\[", lines[at]) and not re.match(r"\s*\[\s*host\.", lines[at])
            ),
            len(lines),
        )
        # Comments right above the next section belong to that one.
        while end > start + 1 and end < len(lines) and lines[end - 1].lstrip().startswith("#"):
            end -= 1
        try:
            block = parse_toml("".join(lines[start:end]))
        except ConfigError:
            continue
        hosts = block.get(HOST)
        if isinstance(hosts, list) and hosts[0].get("name") == name:
            return "".join(lines[:start]).rstrip("\n") + "\n" + _gap(lines[end:])
    raise ConfigError(f"{path}: its text has no [[host]] named {name!r}: remove it by hand")


def _gap(rest: list[str]) -> str:
    text = "".join(rest)
    return f"\n{text.lstrip(chr(10))}" if text.strip() else ""
