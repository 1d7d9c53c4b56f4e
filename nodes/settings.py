"""What a node is told when it starts: who it is, where it listens, and every setting by section."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from overlay.config import Settings, load_settings
from overlay.errors import ConfigError
from overlay.ids import NodeId
from overlay.limits import Limits
from overlay.net.config import NetSettings
from overlay.profiles import load_profile
from overlay.toml_source import Source, overrides, read_toml
from protocols.echo.config import EchoConfig

SECTIONS: dict[str, type[Settings]] = {
    "net": NetSettings,
    "limits": Limits,
    "echo": EchoConfig,
}
"""Everything that a config file may hold; a protocol adds its section here."""

DEFAULT_PROFILE = "lan"
DEFAULT_OVERLAY = "overlay"

S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, kw_only=True)
class NodeConfig:
    """Made by `node_config` from a profile, files and overrides, or by hand from settings."""

    name: NodeId | None = None  # None: as the key material says; insecure: made up
    zone: str = ""
    overlay: str | None = None  # None: as the key material says; insecure: DEFAULT_OVERLAY
    insecure: bool = False  # no CURVE, no certificates: everybody is believed
    keys: Path | None = None  # None: where `overlay keys` writes
    state: Path | None = None  # None: what protocols store ends with the process
    seeds: tuple[str, ...] = ()  # endpoints to meet at the start
    control: bool = True  # opens a control socket for `overlay status`
    settings: Mapping[str, Settings] = field(default_factory=lambda: load_settings(SECTIONS))

    def section(self, kind: type[S]) -> S:
        """The settings of that type."""
        for settings in self.settings.values():
            if isinstance(settings, kind):
                return settings
        raise ConfigError(f"{kind.__name__} is no section: add it to nodes.settings.SECTIONS")


def node_config(
    name: NodeId | None = None,
    *,
    zone: str = "",
    overlay: str | None = None,
    insecure: bool = False,
    keys: Path | None = None,
    state: Path | None = None,
    seeds: Iterable[str] = (),
    control: bool = True,
    profile: str = DEFAULT_PROFILE,
    files: Iterable[Path | str] = (),
    sets: Iterable[str] = (),
    bind: Sequence[str] = (),
    advertise: Sequence[str] = (),
) -> NodeConfig:
    """Defaults < profile < files < `sets` ("section.key=value") < bind and advertise."""
    return NodeConfig(
        name=name or None,
        zone=zone,
        overlay=overlay or None,
        insecure=insecure,
        keys=keys,
        state=state,
        seeds=tuple(endpoint(seed) for seed in seeds),
        control=control,
        settings=load_settings(
            SECTIONS, *config_sources(profile, files, sets, bind=bind, advertise=advertise)
        ),
    )


def config_sources(
    profile: str,
    files: Iterable[Path | str],
    sets: Iterable[str],
    *,
    bind: Sequence[str] = (),
    advertise: Sequence[str] = (),
) -> list[Source]:
    """Where settings come from, the strongest last."""
    sources = [load_profile(profile), *(read_toml(file) for file in files), *overrides(sets)]
    if bind:
        sources.append(Source("--bind", {"net": {"bind": [endpoint(one) for one in bind]}}))
    if advertise:
        addresses = [endpoint(one) for one in advertise]
        sources.append(Source("--advertise", {"net": {"advertise": addresses}}))
    return sources


def endpoint(text: str) -> str:
    """`HOST:PORT` means tcp; `tcp://HOST:PORT` and `ipc://PATH` stay as they are."""
    scheme, found, rest = text.partition("://")
    if not found:
        scheme, rest = "tcp", text
    host, _, port = rest.rpartition(":")
    if scheme == "ipc" and rest:
        return text
    if scheme == "tcp" and host and port.isascii() and port.isdigit() and int(port) <= 65_535:
        return f"tcp://{rest}"
    raise ConfigError(
        f"address {text[:80]!a}: write HOST:PORT, tcp://HOST:PORT (IPv6 in [brackets]) or ipc://PATH"
    )
