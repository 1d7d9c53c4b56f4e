"""The inventory: what a user wrote about a lab, checked; whatever is wrong is one line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from nodes.lab.inventory_sections import (
    CheckSettings,
    HostSettings,
    LabSettings,
    PeerDefaults,
    SshSettings,
)
from nodes.settings import SECTIONS
from overlay.config import Settings, load_settings
from overlay.errors import ConfigError
from overlay.profiles import load_profile
from overlay.toml_source import Source, read_toml

DEFAULT_FILE = Path("lab.toml")
PARTS: dict[str, type[Settings]] = {
    "lab": LabSettings,
    "ssh": SshSettings,
    "peers": PeerDefaults,
    "checks": CheckSettings,
}
HOST, SETTINGS = "host", "settings"
MOST_HOSTS = 1000
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_EXAMPLE = "like h1, lab-7 or gpu: small letters, digits and -, 32 at most"

Role = Literal["supervisor", "broker", "bdn", "collector"]


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """One host, with the defaults filled in."""

    name: str
    address: str  # for ssh
    user: str
    ssh_port: int
    peers: int
    zones: tuple[str, ...]  # its peers are spread over them in turn
    port: int  # of its first peer; the next ones follow
    roles: tuple[Role, ...]
    python: str
    folder: str  # on the host; the lab's and the host's name follow
    overlay_address: str  # where its peers listen; empty: everywhere
    settings: Annotated[Mapping[str, Any], "by section, over those of the lab"]

    @property
    def at(self) -> str:
        """As ssh takes it."""
        return f"{self.user}@{self.address}" if self.user else self.address


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """A whole lab."""

    path: Path
    lab: LabSettings
    ssh: SshSettings
    checks: CheckSettings
    settings: Mapping[str, Any]
    hosts: tuple[Host, ...]

    @property
    def name(self) -> str:
        """The lab's, which is also the overlay's."""
        return self.lab.name

    def host(self, name: str) -> Host:
        """The host of that name; ConfigError names those that there are."""
        for host in self.hosts:
            if host.name == name:
                return host
        known = ", ".join(host.name for host in self.hosts)
        raise ConfigError(f"{self.path}: no host {name!r} (there are {known})")


def load_inventory(path: Path) -> Inventory:
    """Read and check a file; ConfigError is one line with the key and what would be right."""
    if not path.exists():
        raise ConfigError(f"{path}: no such file: `overlay lab init` writes one, or say --lab FILE")
    return parse_inventory(read_toml(path), path)


def parse_inventory(source: Source, path: Path) -> Inventory:
    """The same for what was read already."""
    tables = dict(source.tables)
    hosts = tables.pop(HOST, [])
    settings = tables.pop(SETTINGS, {})
    where = source.origin
    if isinstance(hosts, Mapping):
        raise ConfigError(f"{where}: [host]: write [[host]], with two brackets, for each host")
    if not isinstance(hosts, list) or not all(isinstance(one, Mapping) for one in hosts):
        raise ConfigError(f"{where}: host: write a [[host]] section for each host")
    known: dict[str, type[Settings]] = {**PARTS, HOST: HostSettings, SETTINGS: Settings}
    for section in tables:
        if section not in known:
            load_settings(known, Source(where, {section: tables[section]}))  # says what is meant
    parts = load_settings(PARTS, Source(where, tables))
    lab, ssh, defaults, checks = (parts[name] for name in PARTS)
    assert isinstance(lab, LabSettings)
    assert isinstance(ssh, SshSettings)
    assert isinstance(defaults, PeerDefaults)
    assert isinstance(checks, CheckSettings)
    _check_name(where, "lab.name", lab.name)
    common = _overlay_settings(where, lab.profile, settings, "settings")
    found = [
        _host(where, number, table, ssh, defaults, lab.profile, common)
        for number, table in enumerate(hosts, start=1)
    ]
    _check_hosts(where, found)
    return Inventory(
        path=path, lab=lab, ssh=ssh, checks=checks, settings=common, hosts=tuple(found)
    )


def _host(
    where: str,
    number: int,
    table: Mapping[str, object],
    ssh: SshSettings,
    defaults: PeerDefaults,
    profile: str,
    common: Mapping[str, Any],
) -> Host:
    name = table.get("name")
    label = f"host[{name if isinstance(name, str) and name else number}]"
    own = dict(table)
    settings = own.pop(SETTINGS, {})
    told = load_settings({label: HostSettings}, Source(where, {label: own}))[label]
    assert isinstance(told, HostSettings)
    if not told.name:
        raise ConfigError(f'{where}: {label}: name is missing: add name = "h{number}"')
    _check_name(where, f"{label}.name", told.name)
    if not told.address or re.search(r"[\s@/]", told.address) or told.address.startswith("-"):
        raise ConfigError(
            f"{where}: {label}.address = {told.address!r}: must be a host name or an address, "
            'as in "192.168.1.11" (the user goes into user =, the port into ssh_port =)'
        )

    def either(value: Any, default: Any) -> Any:
        return default if value is None else value

    zone = either(told.zone, defaults.zone)
    host = Host(
        name=told.name,
        address=told.address,
        user=either(told.user, ssh.user),
        ssh_port=either(told.ssh_port, ssh.port),
        peers=either(told.peers, defaults.count),
        zones=(zone,) if isinstance(zone, str) else zone,
        port=either(told.port, defaults.port),
        roles=either(told.roles, defaults.roles),
        python=either(told.python, defaults.python),
        folder=either(told.folder, defaults.folder),
        overlay_address=either(told.overlay_address, ""),
        settings=_overlay_settings(where, profile, settings, f"{label}.settings", common),
    )
    last = host.port + host.peers + len(host.roles) - 1
    if last > 65_535:
        raise ConfigError(
            f"{where}: {label}.port = {host.port}: its last peer would get port {last}, "
            "at most 65535: choose a smaller one"
        )
    if not host.peers + len(host.roles):
        raise ConfigError(f"{where}: {label}: neither peers nor roles: remove it, or set peers = 1")
    return host


def _check_name(where: str, key: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise ConfigError(f"{where}: {key} = {name!r}: must be a name {_EXAMPLE}")


def _check_hosts(where: str, hosts: list[Host]) -> None:
    if not hosts:
        raise ConfigError(f"{where}: no hosts: add a [[host]] with name and address for each")
    if len(hosts) > MOST_HOSTS:
        raise ConfigError(f"{where}: {len(hosts)} hosts, at most {MOST_HOSTS}")
    names: dict[str, Host] = {}
    places: dict[tuple[str, int], Host] = {}
    for host in hosts:
        if host.name in names:
            raise ConfigError(f"{where}: host[{host.name}]: two hosts have this name: rename one")
        names[host.name] = host
        other = places.setdefault((host.address, host.ssh_port), host)
        if other is not host:
            raise ConfigError(
                f"{where}: host[{host.name}].address = {host.address!r}: "
                f"{other.name} has the same address and ssh port: each host once"
            )


def _overlay_settings(
    where: str,
    profile: str,
    told: object,
    label: str,
    base: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Settings of the overlay, merged over others, and as they would be accepted by a node."""
    if not isinstance(told, Mapping):
        raise ConfigError(f"{where}: {label}: must be sections, as [{label}.membership]")
    merged = {section: dict(table) for section, table in (base or {}).items()}
    for section, table in told.items():
        if not isinstance(table, Mapping):
            raise ConfigError(
                f"{where}: {label}.{section}: outside of any section: write [{label}.SECTION]"
            )
        merged.setdefault(section, {}).update(table)
    load_settings(SECTIONS, load_profile(profile), Source(f"{where}: {label}", merged))
    return merged
