"""What a node is told when it starts: who it is, where it listens, and every setting by section."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from overlay.config import Settings, load_settings
from overlay.errors import ConfigError
from overlay.ids import NodeId
from overlay.limits import Limits
from overlay.net.addresses import parse_endpoint
from overlay.net.config import NetSettings
from overlay.profiles import load_profile
from overlay.toml_source import Source, Typed, overrides, read_toml
from overlay.traces.config import TraceSettings
from protocols.beacon.config import BeaconSettings
from protocols.colony.config import ColonySettings
from protocols.content.config import ContentSettings
from protocols.dht.config import DhtSettings
from protocols.discovery.config import BdnSettings, BrokerSettings, DiscoverySettings
from protocols.echo.config import EchoConfig
from protocols.gateways.config import GatewaysSettings
from protocols.membership.config import MembershipSettings
from protocols.mobility.config import MobilitySettings
from protocols.resources.config import ResourcesSettings
from protocols.routing.config import RoutingSettings
from protocols.timesync.config import TimeSettings
from protocols.topics.config import TopicsSettings
from protocols.topology.config import TopologySettings
from protocols.zones.config import ZonesSettings

SECTIONS: dict[str, type[Settings]] = {
    "net": NetSettings,
    "limits": Limits,
    "echo": EchoConfig,
    "membership": MembershipSettings,
    "topology": TopologySettings,
    "routing": RoutingSettings,
    "zones": ZonesSettings,
    "gateways": GatewaysSettings,
    "topics": TopicsSettings,
    "dht": DhtSettings,
    "time": TimeSettings,
    "beacon": BeaconSettings,
    "discovery": DiscoverySettings,
    "broker": BrokerSettings,
    "bdn": BdnSettings,
    "colony": ColonySettings,
    "content": ContentSettings,
    "resources": ResourcesSettings,
    "mobility": MobilitySettings,
    "traces": TraceSettings,
}
"""Everything that a config file may hold; a protocol adds its section here."""

DEFAULT_PROFILE = "lan"
SET_VARIABLE = "OVERLAY_SET"  # "section.key=value …" for all nodes that are started from a shell
DEFAULT_OVERLAY = "overlay"
AT_LOOPBACK = Source("--insecure", {"net": {"bind": ["tcp://127.0.0.1:0"]}})
DEFAULT_ZONE = "default"

S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, kw_only=True)
class NodeConfig:
    """Made by `node_config` from a profile, files and overrides, or by hand from settings."""

    name: NodeId | None = None  # None: as the key material says; insecure: made up
    zone: str = ""  # empty: DEFAULT_ZONE, or the only one that the certificate allows
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
    """Defaults < profile < $OVERLAY_SET < files < `sets` ("section.key=value") < bind, advertise.

    An insecure node listens at loopback unless one of these says otherwise.
    """
    sources = config_sources(profile, files, sets, bind=bind, advertise=advertise)
    if insecure:
        sources.insert(0, AT_LOOPBACK)
    return NodeConfig(
        name=name or None,
        zone=zone,
        overlay=overlay or None,
        insecure=insecure,
        keys=keys,
        state=state,
        seeds=tuple(_checked("--seed: ", seed) for seed in seeds),
        control=control,
        settings=load_settings(SECTIONS, *sources),
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
    surroundings = overrides(os.environ.get(SET_VARIABLE, "").split(), SET_VARIABLE)
    told = [*(read_toml(file) for file in files), *overrides(sets)]
    sources = [load_profile(profile), *surroundings, *told]
    if bind:
        sources.append(Source("--bind", {"net": {"bind": list(bind)}}))
    if advertise:
        sources.append(Source("--advertise", {"net": {"advertise": list(advertise)}}))
    for source in sources:
        _check_addresses(source)
    return sources


def _check_addresses(source: Source) -> None:
    """Refuse an address that cannot be one here, where the file that holds it is known."""
    table = source.tables.get("net")
    if not isinstance(table, Mapping):
        return
    for key in ("bind", "advertise"):
        value = table.get(key)
        addresses = value.readings()[0] if isinstance(value, Typed) else value
        for address in addresses if isinstance(addresses, list) else ():
            if isinstance(address, str):  # other types are refused where settings are loaded
                _checked(f"{source.origin}: net.{key} = ", address)


def _checked(where: str, address: str) -> str:
    try:
        return str(parse_endpoint(address))
    except ConfigError as error:
        raise ConfigError(f"{where}{error}") from None
