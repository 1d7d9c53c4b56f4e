"""What can be written into the sections of an inventory, with units, bounds and reasons."""

from __future__ import annotations

from typing import Annotated, Literal

from overlay.config import Settings, because, bounded, sized

Zone = Annotated[str, sized(1, 64, "a zone's name")]
Zones = Annotated[tuple[Zone, ...], sized(1, 16, "zones, to which peers are given in turn")]
Roles = Annotated[
    tuple[Literal["supervisor", "broker", "bdn", "collector"], ...],
    sized(0, 4, "processes beside the peers, one for each role"),
]


class LabSettings(Settings, frozen=True, kw_only=True):
    """`[lab]`: what all hosts share."""

    name: Annotated[
        str, sized(1, 32, "the lab's and its overlay's; its keys are kept under it")
    ] = "lab"
    profile: Annotated[Literal["lan", "wan", "local"], because("the base of all settings")] = "lan"
    insecure: Annotated[bool, because("no keys at all: only where nobody else is")] = False
    supervise: Annotated[
        Literal["auto", "systemd", "keeper"],
        because("who restarts peers: systemd's user units, or a supervisor of ours where none are"),
    ] = "auto"
    traces: Annotated[
        Literal["off", "delivery", "messages", "all"],
        because("what peers record; other than off, hosts get pyarrow (50 MB)"),
    ] = "off"
    extras: Annotated[
        tuple[Literal["traces", "web"], ...],
        sized(0, 2, "optional parts of zmq-overlay to install"),
    ] = ()
    agree_within: Annotated[
        float, bounded("s", 1, 3600, "for all zone tables to agree before that is a failure")
    ] = 60.0


class SshSettings(Settings, frozen=True, kw_only=True):
    """`[ssh]`: how hosts are reached."""

    user: Annotated[str, sized(0, 64, "on the hosts; empty: as ssh's own config says")] = ""
    port: Annotated[int, bounded("port", 1, 65_535, "of the hosts' sshd")] = 22
    config: Annotated[str, sized(0, 500, "a config file for ssh -F; empty: ssh's own")] = ""
    options: Annotated[
        tuple[Annotated[str, sized(3, 500, "Key=Value")], ...],
        sized(0, 32, "more options, each as after ssh -o: IdentityFile=~/.ssh/lab"),
    ] = ()
    connect_within: Annotated[
        float, bounded("s", 1, 300, "for a connection before the host counts as unreachable")
    ] = 10.0
    parallel: Annotated[int, bounded("hosts", 1, 256, "worked on at a time")] = 32


class PeerDefaults(Settings, frozen=True, kw_only=True):
    """`[peers]`: for every host that does not say otherwise."""

    count: Annotated[int, bounded("peers", 0, 200, "on each host")] = 2
    zone: Annotated[
        Zone | Zones, because("or a list of zones, to which peers are given in turn")
    ] = "default"
    port: Annotated[int, bounded("port", 1, 65_535, "of a host's first peer; others follow")] = 7400
    roles: Roles = ()
    python: Annotated[str, sized(1, 200, "on the hosts: 3.11 or newer")] = "python3"
    folder: Annotated[
        str, sized(1, 200, "on the hosts; below it one for each lab and host: a home may be shared")
    ] = "~/.local/share/zmq-overlay/labs"


class CheckSettings(Settings, frozen=True, kw_only=True):
    """`[checks]`: what a host must satisfy before anything is done there."""

    clock: Annotated[
        float, bounded("s", 0.01, 86_400, "off this machine's clock; traces are compared by it")
    ] = 2.0
    free: Annotated[
        int, bounded("MB", 1, 10**7, "of disk; an environment takes 70, traces more")
    ] = 300
    multicast: Annotated[
        Literal["required", "optional", "off"],
        because("between all hosts; without it peers meet by the addresses that they are told"),
    ] = "required"


class HostSettings(Settings, frozen=True, kw_only=True):
    """`[[host]]`: one host; what is left out is as `[ssh]` and `[peers]` say."""

    name: Annotated[str, sized(0, 64, "in all commands, and first in its peers' names")] = ""
    address: Annotated[str, sized(0, 255, "for ssh: a name or an address")] = ""
    user: Annotated[str | None, because("as [ssh] user")] = None
    ssh_port: Annotated[
        Annotated[int, bounded("port", 1, 65_535, "as [ssh] port")] | None, because("of its sshd")
    ] = None
    peers: Annotated[
        Annotated[int, bounded("peers", 0, 200, "as [peers] count")] | None, because("how many")
    ] = None
    zone: Annotated[Zone | Zones | None, because("as [peers] zone")] = None
    port: Annotated[
        Annotated[int, bounded("port", 1, 65_535, "as [peers] port")] | None, because("the first")
    ] = None
    roles: Annotated[Roles | None, because("as [peers] roles")] = None
    python: Annotated[str | None, because("as [peers] python")] = None
    folder: Annotated[str | None, because("as [peers] folder")] = None
    overlay_address: Annotated[
        str | None, because("where its peers listen, if not at every address it has")
    ] = None
